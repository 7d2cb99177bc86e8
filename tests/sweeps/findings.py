"""What the sweeps find: an error in the tests, a line of a file under `make fuzz`, which goes on."""

import json
import os
import re


def is_fuzzing() -> bool:
    """Whether `make fuzz` runs the sweeps, with new examples."""
    return bool(os.environ.get("PLURIBUS_FUZZ"))


def report(complaint: str, example: str) -> None:
    """Raise AssertionError about a complaint or, when fuzzing, add it to the file of the findings."""
    path = os.environ.get("PLURIBUS_FUZZ")
    if not path:
        assert not complaint, f"{example}\n{complaint}"
        return
    if not complaint:
        return
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps({"example": example, "complaint": complaint}) + "\n")


def name_class(complaint: str) -> str:
    """What findings of one cause share: the line of the code that raised, or the complaint without its numbers."""
    places = re.findall(r'File "[^"]*pluribus/([^"]+\.py)", line (\d+)', complaint)
    lines = complaint.strip().splitlines()
    if places:
        error = next((line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception|TooLong)\b", line)), lines[-1])
        return f"{places[-1][0]}:{places[-1][1]}: {error.split(':')[0]}"
    return re.sub(r"\d+", "N", lines[0].split(": ", 1)[-1])[:120]
