"""Finished folders, and the commands that read them: what each writes, and what its answer is."""

import fnmatch
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pluribus
from pluribus.core.errors import PluribusError
from pluribus.models import mlp

from ..cli.files import rows
from .commands import Answer, call_command, call_within_limits
from .profiles import IS_FUZZ

TRAIN = ["train", "--quiet", "--batch-size", "32", "--model", "mlp:hidden=[4]"]
RUN_OUTPUT = ("checkpoints", "checkpoints/*", "weights.*", "result.json", "metrics.csv", "judgement.json", "rows.safetensors")
PAGE = ("results.csv", "results.md", "picture.svg", "report.html")


@dataclass(frozen=True)
class Command:
    """A command of a folder called "it", which lies in the working folder."""

    name: str
    words: tuple[str, ...]
    writes: tuple[str, ...] = ()
    """Patterns of what the command may write in the folder."""
    may_report: bool = False
    follow: tuple[str, ...] = ()
    """A second command, whose answer counts."""
    read_answer: Callable[[Answer], Any] = field(default=lambda answer: answer.out)
    admits: Callable[[Any], bool] = field(default=lambda value: False)
    """Whether an answer says itself that a part of it is missing."""

    def run(self) -> tuple[Answer, Any]:
        """How the command ended, and its answer."""
        answer = load_weights() if not self.words else call_command(self.words)
        if answer.code == 0 and self.follow:
            answer = call_command(self.follow)
        return answer, self.read_answer(answer) if answer.code == 0 else None

    def may_write(self, name: str) -> bool:
        return any(fnmatch.fnmatch(name, pattern) for pattern in (".lock", "*/.lock", *self.writes))


def read_lines(answer: Answer) -> list[Any]:
    """Strict JSON, one value a line: NaN and ∞ are no JSON."""

    def refuse(text: str) -> None:
        raise ValueError(f"{text} is no JSON")

    return [json.loads(line, parse_constant=refuse) for line in answer.out.splitlines()]


def read_scores(answer: Answer) -> str:
    """What `train` prints, without the line that tells the time."""
    return "".join(line for line in answer.out.splitlines(keepends=True) if " epochs, " not in line)


def read_page(_: Answer) -> Any:
    return [Path("it", name).read_text() for name in PAGE[:2]]


def read_comparison(_: Answer) -> Any:
    """The results without what is a measurement of time."""
    content = json.loads(Path("it/results.json").read_text())
    for key in ("seconds", "digest"):
        content.pop(key, None)
    for method in content["methods"]:
        method.pop("cost"), method.pop("seconds")
    content.pop("recommendation")  # it depends on measured latency
    return content


def tells_failures(results: Any) -> bool:
    """A comparison goes on without a run that cannot be made again, and names it in its notes."""
    return any(" failed: " in note for note in results["notes"])


def load_weights() -> Answer:
    """Load the weights in Python, and answer for a few rows."""
    said: list[str] = []

    def load() -> None:
        try:
            ensemble = pluribus.load("it/weights.safetensors", mlp(64, 10, hidden=(4,)))
            said.append(str(ensemble.predict(torch.linspace(0, 1, 128).view(2, 1, 8, 8)).probs.tolist()))
        except PluribusError as error:
            said.append(f"pluribus: {' '.join(str(error).split())}\n")
            raise SystemExit(2) from None

    code, more = call_within_limits(load, 20)
    return Answer(code, said[0] if code == 0 else "", (said[0] if code == 2 else "") + more)


def list_commands(folder: str, rows: str) -> list[Command]:
    """The commands that read a run, the cheap ones first; `folder` is the run, `rows` a file to predict."""
    place = "" if folder == "it" else folder.removeprefix("it/") + "/"
    return [
        Command("predict --json", ("predict", folder, rows, "--json"), read_answer=read_lines),
        Command("predict", ("predict", folder, rows)),
        Command(
            "train --resume",
            ("train", "--resume", folder, "--quiet"),
            tuple(place + name for name in RUN_OUTPUT),
            read_answer=read_scores,
        ),
        Command("evaluate", ("evaluate", folder, "--no-cost", "--json"), (f"{place}evaluation.json",), read_answer=read_lines),
    ]


@dataclass(frozen=True)
class Subject:
    """A finished folder, with its commands and their answers."""

    path: Path
    commands: list[Command]
    answers: dict[str, Any] = field(default_factory=dict)

    def list_files(self) -> list[str]:
        return sorted(
            path.relative_to(self.path).as_posix()
            for path in self.path.rglob("*")
            if path.is_file() and path.name != ".lock" and "tensorboard" not in path.parts
        )

    def copy(self, work: Path) -> None:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.path, work / "it")

    def record_answers(self, work: Path) -> None:
        """Run every command on an untouched copy; when fuzzing twice, and both answers must be the same."""
        for command in self.commands:
            for _ in range(2 if IS_FUZZ else 1):
                self.copy(work)
                os.chdir(work)
                answer, value = command.run()
                assert answer.code == 0, answer
                assert self.answers.setdefault(command.name, value) == value, command.name


def build_subjects(home: Path) -> dict[str, Subject]:
    """Train the runs and the comparison that are mutated, and record the answers of the untouched folders."""
    home.mkdir(parents=True, exist_ok=True)
    np.savez(home / "rows.npz", x=np.random.default_rng(0).integers(0, 256, (2, 1, 8, 8)).astype(np.uint8))
    (home / "houses.csv").write_text(rows(target="price"))
    (home / "flowers.csv").write_text(rows())
    few = home / "few.csv"
    few.write_text("".join(rows().splitlines(keepends=True)[:4]))
    digits = ["--data", "digits", "--rows", "64", "--epochs", "2"]
    for name, data in {
        "digits": [*digits, "--method", "batch-ensemble:members=2"],
        "houses": ["--data", f"{home}/houses.csv", "--epochs", "1"],
        "flowers": ["--data", f"{home}/flowers.csv", "--epochs", "1", "--method", "mc-dropout:samples=2"],
    }.items():
        run_well([*TRAIN, *data, "--out", f"{home}/{name}"])
    run_well(["evaluate", f"{home}/digits", "--no-cost"])
    shutil.copytree(home / "digits", home / "stopped")
    for name in ("result.json", "weights.safetensors", "weights.json", "evaluation.json"):
        (home / "stopped" / name).unlink()
    words = ["--methods", "single,batch-ensemble:members=2", "--seeds", "1", "--workers", "1", "--out", f"{home}/comparison"]
    run_well(["compare", *TRAIN[2:], *digits[:-1], "1", *words])
    run_well(["evaluate", f"{home}/comparison/single-seed0", "--no-cost"])

    npz, table = f"{home}/rows.npz", str(few)
    resume = ("train", "--resume", "it", "--quiet")
    compare = ("compare", "--resume", "it", "--workers", "1")
    outputs = (*PAGE, "results.json", "grid.csv", "costs.json", "*/failed.txt", *(f"*/{name}" for name in RUN_OUTPUT))
    subjects = {
        "digits": Subject(home / "digits", [*list_commands("it", npz), Command("load", ())]),
        "houses": Subject(home / "houses", list_commands("it", table)),
        "flowers": Subject(home / "flowers", list_commands("it", table)),
        "stopped": Subject(
            home / "stopped",
            [Command("train --resume", resume, RUN_OUTPUT, follow=("predict", "it", npz, "--json"), read_answer=read_lines)],
        ),
        "comparison": Subject(
            home / "comparison",
            [
                Command("report", ("report", "it"), PAGE, read_answer=read_page),
                Command(
                    "compare --resume", compare, outputs, may_report=True, read_answer=read_comparison, admits=tells_failures
                ),
                *list_commands("it/single-seed0", npz),
            ],
        ),
    }
    for subject in subjects.values():
        subject.record_answers(home / "work")
    return subjects


def run_well(words: list[str]) -> None:
    answer = call_command(words, seconds=120)
    assert answer.code == 0, answer


# --- what changed ------------------------------------------------------------------------------------------------------


def take_stock(folder: Path) -> dict[str, str]:
    """Everything in a folder, by name: what a file holds (of a large one, when it was written), or what it is."""
    found = {}
    for base, folders, files in os.walk(folder):
        for path in (Path(base, name) for name in (*folders, *files)):
            about = path.lstat()
            if not stat.S_ISREG(about.st_mode):
                content = stat.filemode(about.st_mode)[0]
            elif about.st_size > 500_000:
                content = str(about.st_mtime_ns)
            else:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[path.relative_to(folder).as_posix()] = content
    return found
