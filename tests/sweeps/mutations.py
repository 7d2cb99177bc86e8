"""Mutations of files: of their bytes, and of what they hold.

A mutation of the content comes in two forms. *Damage* leaves the digest as it was; a *hostile* one computes it anew, so that
the file is formally right.
"""

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from . import sealing

DEPTH = 20_000
TEXTS = {  # what json.dumps and yaml.safe_dump cannot write, by the text that stands for it
    "@deep@": "[" * DEPTH + "]" * DEPTH,
    "@digits@": "9" * 5000,
    "@surrogate@": '"\\ud800"',
    "@tag@": '!!python/object/apply:os.mkdir ["sprung"]',
    "@bomb@": "[&a [x,x,x,x,x,x,x,x,x], &b [*a,*a,*a,*a,*a,*a,*a,*a,*a], &c [*b,*b,*b,*b,*b,*b,*b,*b,*b], "
    "&d [*c,*c,*c,*c,*c,*c,*c,*c,*c], &e [*d,*d,*d,*d,*d,*d,*d,*d,*d], &f [*e,*e,*e,*e,*e,*e,*e,*e,*e], "
    "&g [*f,*f,*f,*f,*f,*f,*f,*f,*f], &h [*g,*g,*g,*g,*g,*g,*g,*g,*g], &i [*h,*h,*h,*h,*h,*h,*h,*h,*h]]",
}
CALL = {"name": "os:mkdir", "path": "sprung"}
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, -1, 0.0, -0.5, 1e-300, 1e308, 10**30, -(10**30), float("nan"), float("inf"), -float("inf")),
    *(
        "",
        "x",
        "0",
        "nan",
        "x" * 100_000,
        "[/red]",
        "[red]",
        "a\nb",
        "a\x00b",
        "../../outside",
        "/",
        "os:mkdir",
        "<Net>",
        "F16",
        "I32",
        "C64",
        "é\u202e😀",
    ),
    *([], {}, [None], [[]], {"a": {"b": []}}, [1, "x", None], [0], [1e308] * 3, [10**9], [-1, 8, 8], [1] * 2000, CALL),
    *TEXTS,
]
ADDED = ["extra", "name", "digest", "format", "__class__", "", "0", "a.b", "[red]", "model", "classes", "x" * 10_000]

BYTES = ("cut", "empty", "remove", "folder", "loop", "flip", "noise")
STRUCTURED = (".json", ".yaml", ".safetensors")


@dataclass(frozen=True)
class Mutation:
    """What happens to one file. `place` is a share of the file, or of the places in its content."""

    kind: str
    place: float = 0.0
    value: Any = None
    is_hostile: bool = False

    def __str__(self) -> str:
        value = repr(self.value)
        form = "hostile" if self.is_hostile else "damage"
        return f"{self.kind} at {self.place:.6f} ({value if len(value) < 80 else value[:60] + '…'}), {form}"

    def apply(self, path: Path) -> str:
        """Change the file, and say what was done; "" if the file has no such place."""
        if self.kind in BYTES:
            return mutate_bytes(self, path)
        content = read_content(path)
        places = list(list_places(content))
        where = places[min(int(self.place * len(places)), len(places) - 1)]
        if self.kind == "fill":
            done = sealing.fill_tensor(path, self.place, self.value)
        else:
            write_content(path, mutate_content(self, content, where))
            done = f"{self.kind} {'.'.join(map(str, where)) or 'the whole'}"
        if self.is_hostile:
            sealing.seal(path)
        return done


def draw_mutations(name: str) -> st.SearchStrategy[Mutation]:
    """Strategy of the mutations of a file with this name."""
    places = st.floats(0, 1, exclude_max=True, width=32)
    seeds = st.integers(0, 2**16)
    by_bytes = st.builds(Mutation, st.sampled_from(BYTES), places, seeds)
    if not name.endswith(STRUCTURED):
        return by_bytes
    values = st.sampled_from(VALUES)
    by_content = st.one_of(
        st.builds(Mutation, st.just("set"), places, values, st.booleans()),
        st.builds(Mutation, st.sampled_from(("drop", "wrap")), places, st.none(), st.booleans()),
        st.builds(Mutation, st.just("add"), places, st.sampled_from(ADDED), st.booleans()),
    )
    if name.endswith(".safetensors"):
        numbers = st.sampled_from([float("nan"), float("inf"), 1e30, 0.0, -1.0])
        by_content |= st.builds(Mutation, st.just("fill"), places, numbers, st.booleans())
    return st.one_of(by_bytes, by_content, by_content)


def mutate_bytes(mutation: Mutation, path: Path) -> str:
    data = bytearray(path.read_bytes())
    start = int(mutation.place * len(data))
    if mutation.kind in ("cut", "flip", "noise") and not data:
        return ""
    if mutation.kind == "flip":
        data[start] ^= 1 << mutation.value % 8
    elif mutation.kind == "noise":
        width = 1 + mutation.value % 40
        data[start : start + width] = random.Random(mutation.value).randbytes(width)
    else:
        data = data[:start] if mutation.kind == "cut" else bytearray()
    path.unlink()
    if mutation.kind == "folder":
        path.mkdir()
    elif mutation.kind == "loop":
        os.symlink(path.name, path)
    elif mutation.kind != "remove":
        path.write_bytes(data)
    return f"{mutation.kind} at byte {start}"


# --- what files hold ---------------------------------------------------------------------------------------------------


def read_content(path: Path) -> Any:
    """The content of a JSON, YAML or safetensors file; of the last, its header and what is JSON in it."""
    if path.suffix == ".json":
        return json.loads(path.read_text())
    if path.suffix == ".yaml":
        return yaml.safe_load(path.read_text())
    if path.suffix == ".safetensors":
        return sealing.read_header(path)[0]
    raise ValueError(f"{path} has no content that can be mutated")


def write_content(path: Path, content: Any) -> None:
    """Write the content, with the digest as it was."""
    if path.suffix == ".safetensors":
        sealing.write_header(path, content, expand)
    elif path.suffix == ".json":
        path.write_text(expand(json.dumps(content, indent=1)))
    else:
        line = path.read_text().splitlines(keepends=True)[0]
        path.write_text((line if line.startswith("#") else "") + expand(yaml.safe_dump(content, sort_keys=False)))


def expand(text: str) -> str:
    """Put the texts that no writer writes in the place of what stands for them."""
    for mark, meant in TEXTS.items():
        for quoted in (f'"{mark}"', f"'{mark}'", mark):
            text = text.replace(quoted, meant)
    return text


def list_places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value, the whole first. Of a long list the first and the last items stand for the others."""
    yield path
    if isinstance(content, dict):
        for key, value in content.items():
            yield from list_places(value, (*path, key))
    if isinstance(content, list):
        for index in sorted({0, 1, len(content) - 1} & set(range(len(content)))):
            yield from list_places(content[index], (*path, index))


def mutate_content(mutation: Mutation, content: Any, where: tuple[Any, ...]) -> Any:
    """The content with the value at this place dropped, set, wrapped in a list, or given one key more."""
    holder = {"": content}
    inner: Any = holder
    steps = ("", *where)
    for step in steps[:-1]:
        inner = inner[step]
    last = steps[-1]
    if mutation.kind == "drop":
        if where:
            del inner[last]
        else:
            holder[""] = {}
    elif mutation.kind == "set":
        inner[last] = mutation.value
    elif mutation.kind == "wrap":
        inner[last] = [inner[last]]
    elif isinstance(inner[last], dict):
        inner[last][mutation.value] = 1
    else:
        inner[last] = {mutation.value: inner[last]}
    return holder[""]
