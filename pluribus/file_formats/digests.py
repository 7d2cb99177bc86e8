"""The digest of a record: the SHA-256 of its content, by which a change after writing is noticed.

A JSON record has it under its first key, `digest`, over the canonical JSON of the other keys: so the order of keys and
white space do not matter. A YAML record has it in its first line, `# digest: …`, over the text below that line.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

DIGEST = "digest"
YAML_PREFIX = f"# {DIGEST}: "


def digest_content(content: dict[str, Any]) -> str:
    """The digest of a JSON object without its own `digest`.

    >>> digest_content({"a": 1, "b": [2.5]}) == digest_content({"digest": "sha256:…", "b": [2.5], "a": 1})
    True
    """
    rest = {key: value for key, value in content.items() if key != DIGEST}
    return digest_text(json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False))


def digest_text(text: str) -> str:
    """The digest of a text."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def digest_file(path: Path) -> str:
    """The digest of a whole file."""
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def split_yaml_digest(text: str) -> tuple[str | None, str]:
    """The digest in the first line of a YAML record, None if it has none, and the text below it.

    >>> split_yaml_digest("# digest: sha256:00\\nseed: 1\\n")
    ('sha256:00', 'seed: 1\\n')
    """
    line, _, rest = text.partition("\n")
    return (line.removeprefix(YAML_PREFIX).strip(), rest) if line.startswith(YAML_PREFIX) else (None, text)
