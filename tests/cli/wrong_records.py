"""Rows of the table of wrong invocations: records of a run that were damaged, and sizes and networks that cannot be trained."""

import json

from .cases import TRAIN, case
from .files import UNFINISHED, cut, file, without_digest

CURE = "take it from a copy of the run, or train again"
DIGITS = "9" * 5000


def change(name, **values):
    """A record with other values, as a version without digests would have written it; None removes a key."""

    def write(folder):
        content = json.loads((folder / name).read_text()) | values
        kept = {key: value for key, value in content.items() if value is not None and key != "digest"}
        (folder / name).write_text(json.dumps(kept))

    return write


def edit(name, key, value):
    """A record in which a number was changed by hand; its digest stays."""

    def write(folder):
        (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | {key: value}))

    return write


def prepare(**values):
    """data.json with another preparation of pixels."""
    pixels = {"kind": "pixels", "target": [0.0, 1.0], "mean": [0.3], "std": [0.4]} | values
    return change("run/data.json", preparation=pixels)


def of_run(name, line, said, *has):
    return case(name, line, said, *has, run="digits")


RECORDS = [
    of_run(
        "result empty", "train --resume run", f"result.json is damaged, it lacks the key|{CURE}", file("run/result.json", "{}")
    ),
    of_run(
        "result edited",
        "train --resume run",
        f"result.json was changed or damaged|{CURE}",
        edit("run/result.json", "steps", 9),
    ),
    of_run(
        "result a list", "train --resume run", "result.json is damaged, it must hold an object", file("run/result.json", "[]")
    ),
    of_run("result cut", "train --resume run", "result.json is damaged, it is no JSON", cut("run/result.json")),
    of_run("data edited", "evaluate run", "data.json was changed or damaged", edit("run/data.json", "train", 9)),
    of_run(
        "std of zero",
        "evaluate run",
        "data.json|more than 0 for 'preparation.pixels.std.0', got 0",
        prepare(std=[0.0]),
    ),
    of_run("std of a text", "evaluate run", "data.json|a number for 'preparation.pixels.std.0'", prepare(std=["1"])),
    of_run("no mean", "evaluate run", "data.json is damaged|at least 1 entries", prepare(mean=[])),
    of_run(
        "means of other images",
        "evaluate run",
        "data.json is damaged|do not fit images",
        prepare(mean=[0.1] * 3, std=[1.0] * 3),
    ),
    of_run(
        "target of zero",
        "evaluate run",
        "data.json|more than 0 for 'preparation.pixels.target.1'",
        prepare(target=[0.0, 0.0]),
    ),
    of_run("an unknown preparation", "evaluate run", "data.json is damaged", prepare(kind="magic")),
    of_run("shape a text", "evaluate run", "data.json|a list for 'shape', got 'abc'", change("run/data.json", shape="abc")),
    of_run(
        "shape of texts",
        "evaluate run",
        "data.json|a whole number for 'shape.0'",
        change("run/data.json", shape=["a", 8, 8]),
    ),
    of_run("shape of zero", "evaluate run", "data.json|at least 1 for 'shape.0'", change("run/data.json", shape=[0, 8, 8])),
    of_run("shape huge", "evaluate run", "at most 100,000,000 numbers", change("run/data.json", shape=[1, 99999, 99999])),
    of_run(
        "a record without classes",
        "evaluate run",
        "a classification must have some classes",
        change("run/data.json", classes=[]),
    ),
    of_run("a class twice", "evaluate run", "it names a class twice", change("run/data.json", classes=["1"] * 10)),
    of_run(
        "an unknown task",
        "evaluate run",
        "data.json|classification or regression for 'task'",
        change("run/data.json", task="x"),
    ),
    of_run(
        "an unknown key",
        "evaluate run",
        "data.json is damaged, it has the unknown key 'more'",
        change("run/data.json", more=1),
    ),
    of_run(
        "a missing key",
        "evaluate run",
        "data.json is damaged, it lacks the key 'test'",
        change("run/data.json", test=None),
    ),
    of_run(
        "config of aliases",
        "evaluate run",
        "run/config.yaml is damaged, it has an anchor or an alias",
        file("run/config.yaml", "a: &a [x]\nb: [*a, *a]\n"),
    ),
    of_run("config nested", "evaluate run", "config.yaml|nested more than 40", file("run/config.yaml", "data: " + "{a: " * 99)),
    of_run("config emptied", "evaluate run", "config.yaml is damaged, it must hold settings", file("run/config.yaml", "")),
    of_run(
        "config without settings", "evaluate run", "config.yaml is damaged|at least 1 entries", file("run/config.yaml", "{}")
    ),
    of_run(
        "seed of thousands of digits in a file",
        "train --resume run",
        "run/config.yaml is damaged, it holds a value that cannot be read",
        UNFINISHED,
        without_digest("run/config.yaml"),
        file("run/config.yaml", f"seed: {DIGITS}\n"),
    ),
    case("nested settings", "train -c a.yaml", "a.yaml is nested more than 40 levels deep", file("a.yaml", "[" * 5000)),
    case("settings of aliases", "train -c a.yaml", "a.yaml has an anchor or an alias", file("a.yaml", "a: &a [1]\nb: *a\n")),
    case("a grid of no runs", "train --resume g", "g/grid.yaml is damaged|at least 1 entries", file("g/grid.yaml", "{}")),
    case("a grid emptied", "train --resume g", "g/grid.yaml is damaged|got nothing", file("g/grid.yaml", "")),
    case("a comparison cut", "compare --resume c", "c/compare.yaml is damaged", file("c/compare.yaml", "budget: epochs\njudg")),
    case(
        "a comparison without a grid",
        "compare --resume c",
        "there is no file c/grid.yaml",
        file("c/compare.yaml", "budget: epochs\njudging: {}\ncommand: x\nnotes: []\n"),
    ),
    case(
        "results without methods",
        "report a.json",
        "a.json does not hold the results of a comparison|lacks the key",
        file("a.json", '{"format": 1, "methods": []}'),
    ),
]

SIZES = [
    case("seed of thousands of digits", f"{TRAIN} --seed {DIGITS}", "seed must be a smaller number, got 999|…"),
    case("seed of 101 digits", f"{TRAIN} --seed {10**100}", "seed must be less than 1e+100"),
    case("seeds of thousands of digits", f"{TRAIN} --seeds {DIGITS}", "seeds must be a number of them|…"),
    case("seeds without end", f"{TRAIN} --seeds {10**10}", "seeds must be at most 10,000, got 10,000,000,000"),
    case("epochs beyond a float", "train --data digits --epochs 1e400", "epochs must be a whole number, got '1e400'"),
    case("batches beyond memory", f"{TRAIN} --batch-size {10**30}", "batch_size must be less than 2.14748e+09"),
    case("nodes without end", f"{TRAIN} --nodes {10**20}", "nodes must be less than 2.14748e+09"),
    case("lr beyond float32", f"{TRAIN} --lr 1e300", "lr must be at most 1e+30, got '1e300'"),
    case(
        "members without end",
        f"{TRAIN} --method mimo:members=100000",
        "members must be at most 1,000|got 100,000|Python has no",
    ),
    case(
        "members of thousands of digits", f"{TRAIN} --method mimo --members {DIGITS}", "--members must be a whole number, got|…"
    ),
    case(
        "members of members",
        "train -c a.yaml",
        "members must be at most 1,000 in a run, got 10,000",
        file("a.yaml", "method: {name: deep-ensemble, members: 100, of: {name: mimo, members: 100}}"),
    ),
    case("samples without end", f"{TRAIN} --method mc-dropout:samples=99999999", "samples must be at most 100,000"),
    case("repeats without end", f"bench --repeats {10**20}", "repeats must be at most 10,000, got"),
]

NETS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)
        self.norm = nn.BatchNorm1d(inputs)
    def forward(self, x):
        return self.layer(x.flatten(1))

class Raises(Net):
    def forward(self, x): raise KeyError("cupboard")
class Exits(Net):
    def forward(self, x): raise SystemExit(0)
class Detached(Net):
    def forward(self, x): return super().forward(x).detach()
class Without(Net):
    def forward(self, x):
        with torch.no_grad():
            return super().forward(x)
class Empty(nn.Module):
    def forward(self, x): return x.flatten(1)[:, :10]
class Frozen(Net):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.requires_grad_(False)
class Lost(Net):
    def forward(self, x): return super().forward(x) * float("nan")
class Whole(Net):
    def forward(self, x): return super().forward(x).long()
class Normed(Net):
    def forward(self, x): return self.layer(self.norm(x.flatten(1)))
class Later(Net):
    def forward(self, x):
        if self.training and len(x) > 2:
            raise KeyError("cupboard")
        return super().forward(x)
"""
own_nets = file("nets.py", NETS)
OWN = "train --data digits --rows 64 --epochs 1 --quiet --model nets:"

UNTRAINABLE = [
    case("a network that raises", f"{OWN}Raises", "nets:Raises cannot take inputs of 1×8×8: KeyError: 'cupboard'", own_nets),
    case("a network that exits", f"{OWN}Exits", "nets:Exits cannot take inputs of 1×8×8: SystemExit: 0", own_nets),
    case("a detached network", f"{OWN}Detached", "nets:Detached|does not depend on its parameters|detach()", own_nets),
    case("a network without gradients", f"{OWN}Without", "nets:Without|does not depend on its parameters|no_grad", own_nets),
    case("a network without parameters", f"{OWN}Empty", "nets:Empty must have parameters to train, and has none", own_nets),
    case("a frozen network", f"{OWN}Frozen", "nets:Frozen must have parameters|none that requires a gradient", own_nets),
    case("a network of NaN", f"{OWN}Lost", "nets:Lost answers with NaN or infinity", own_nets),
    case("a network of whole numbers", f"{OWN}Whole", "nets:Whole must answer with real numbers, got torch.int64", own_nets),
    case("BatchNorm of one row", f"{OWN}Normed --batch-size 1", "batch_size must be at least 2|BatchNorm", own_nets),
]
