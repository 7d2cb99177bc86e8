"""Wrong invocations and files: each ends with exit code 2 and one sentence that names the thing and the cure.

Nothing that was there changes, nothing is left behind, and no payload runs.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pluribus import Inner

from . import files
from .files import UNFINISHED, cut, file, mnist, nets, npz, photos, png, removed, replaced, rows, swapped

FLOWERS = file("flowers.csv", rows())
TRAIN = "train --data digits --model mlp --rows 64 --epochs 1 --quiet"


@dataclass(frozen=True)
class Case:
    name: str
    line: str
    """`pluribus LINE`, in a folder that holds what `has` made, and a copy of the run, if one is named, as "run"."""
    said: str
    """What the sentence must contain: pieces between bars."""
    has: tuple[Callable[[Path], object], ...] = ()
    run: str = ""
    leaves: str = ""
    """A folder that may be made: the run had begun."""


def case(name, line, said, *has, run="", leaves=""):
    return Case(name, line, said, has, run, leaves)


COMMANDS = [
    case("unknown command", "trian", "No such command 'trian'|Did you mean 'train'"),
    case("unknown command of data", "data chekc mnist", "No such command 'chekc'|Did you mean 'check'"),
    case("unknown flag", "train --epoch 3", "No such option: --epoch|--epochs"),
    case("unknown flag of evaluate", "evaluate run --sample 3", "No such option: --sample|--samples", run="digits"),
    case("a flag without a value", "train --epochs", "'--epochs' requires an argument"),
    case("a word too much", "train digits", "unexpected extra argument (digits)"),
    case("no run", "evaluate", "Missing argument 'RUN'"),
    case("no files", "predict run", "Missing argument 'FILES", run="digits"),
    case("unknown model to show", "models resnt20", "no model 'resnt20'|'resnet20'"),
    case("unknown method to show", "methods mino", "no method 'mino'|did you mean 'mimo'"),
    case("data check without a name", "data check", "Missing argument 'NAME'"),
]

SETTINGS = [
    case("unknown method", "train --method mino", "no method 'mino': did you mean 'mimo'"),
    case("unknown method of a grid", "train --method inner,mino", "no method 'mino': did you mean 'mimo'"),
    case("unknown model", "train --model lenet", "no model 'lenet'|'lenet5'"),
    case("unknown data", "train --data minst", "no data set 'minst'|'mnist'"),
    case("unknown option of a method", "train --method mimo:member=3", "mimo has no option 'member'|members"),
    case("unknown option of a model", "train --model mlp:width=3", "mlp has no option 'width'|hidden"),
    case("unknown option of data", "train --data digits:split=3", "digits has no option 'split'|it has none"),
    case("an option without a value", "train --method mimo:members=3,x", "no method 'x'|choose one of"),
    case("an option without a name", "train --method mimo:=3", "option=value|'=3'"),
    case("an empty method", "train --method ''", "method|NAME"),
    case("an empty data set", "train --data ''", "NAME|''"),
    case("a member too few", "train --method mimo:members=1", "mimo|members must be at least 2, got 1"),
    case("members in letters", "train --method mimo:members=three", "members|whole number|'three'"),
    case("--members in letters", "train --method mimo --members abc", "--members must be a whole number, got 'abc'"),
    case("--members 0", "train --method mimo --members 0", "members must be at least 2, got 0"),
    case("--members of single", "train --method single --members 3", "single has no members to count: leave --members out"),
    case("epochs 0", "train --epochs 0", "epochs|greater than or equal to 1, got '0'"),
    case("epochs negative", "train --epochs -3", "epochs|greater than or equal to 1, got '-3'"),
    case("epochs in letters", "train --epochs ten", "epochs|integer|'ten'"),
    case("epochs in parts", "train --epochs 1.5", "epochs|integer|'1.5'"),
    case("epochs nan", "train --epochs nan", "epochs|integer|'nan'"),
    case("lr 0", "train --lr 0", "lr|greater than 0, got '0'"),
    case("lr negative", "train --lr -0.1", "lr|greater than 0, got '-0.1'"),
    case("lr nan", "train --lr nan", "lr|number|'nan'"),
    case("lr infinite", "train --lr inf", "lr|finite|'inf'"),
    case("lr in letters", "train --lr fast", "lr|number|'fast'"),
    case("lr huge", f"{TRAIN} --lr 1e30 --optimizer sgd --epochs 3 --out run", "loss became|step|lower lr", leaves="run"),
    case("batch size 0", "train --batch-size 0", "batch_size|greater than or equal to 1, got '0'"),
    case("batch size in letters", "train --batch-size all", "batch_size|integer|'all'"),
    case("momentum 1", "train --momentum 1", "momentum|less than 1, got '1'"),
    case("momentum nan", "train --momentum nan", "momentum|'nan'"),
    case("seed negative", "train --seed -1", "seed|greater than or equal to 0, got '-1'"),
    case("seed huge", "train --rows 64 --seed 99999999999999999999", "seed|99999999999999999999"),
    case("devices 0", "train --devices 0", "devices|greater than or equal to 1, got '0'"),
    case("devices huge", f"{TRAIN} --devices 100000", "devices|100000"),
    case("no such accelerator", f"{TRAIN} --accelerator mps", "accelerator 'mps'|not on this machine|cpu"),
    case("unknown accelerator", "train --accelerator tpux", "accelerator|'cpu'|'tpux'"),
    case("patience 0", "train --patience 0", "patience|greater than or equal to 1, got '0'"),
    case("patience without rows", f"{TRAIN} --patience 2 --validation 0", "patience|validation"),
    case("warmup too long", "train --warmup 20", "warmup must be shorter than the run, got 20 of 10 epochs"),
    case("warmup negative", "train --warmup -1", "warmup|greater than or equal to 0"),
    case("milestones in letters", "train --milestones soon", "milestones|number|'soon'"),
    case("milestones falling", "train --milestones 0.9,0.5", "milestones must be rising shares between 0 and 1"),
    case("milestones nan", "train --milestones nan", "milestones must be rising shares between 0 and 1"),
    case("checkpoint-every 0", "train --checkpoint-every 0", "checkpoint_every must be a number of steps|30s|'0'"),
    case("checkpoint-every often", "train --checkpoint-every often", "checkpoint_every must be a number of steps|'often'"),
    case("unknown precision", "train --precision 8", "precision|'32'|'8'"),
    case("unknown strategy", "train --strategy dpp", "strategy|'ddp'|'dpp'"),
    case("unknown optimizer", "train --optimizer adm", "optimizer|'adam'|'adm'"),
    case("unknown schedule", "train --schedule cosin", "schedule|'cosine'|'cosin'"),
    case("label smoothing 1", "train --label-smoothing 1", "label_smoothing|less than 1, got '1'"),
    case("validation 1", "train --validation 1", "validation|less than 1, got '1'"),
    case("validation of too few", "train --rows 2", "2 training rows: too few to set 0.1 of them aside"),
    case("rows 1", "train --rows 1", "rows|greater than or equal to 2, got '1'"),
    case("unknown augmentation", "train --augment flop", "augment|'flip'|'flop'"),
    case("workers 0", "train --seeds 2 --workers 0", "--workers must be a number of processes|dask://|'0'"),
    case("workers abc, one run", "train --workers abc", "--workers must be a number of processes|'abc'"),
    case("workers nowhere", f"{TRAIN} --seeds 2 --workers dask://localhost:1", "no Dask scheduler answers at localhost:1"),
    case("seeds 0", "train --seeds 0", "seeds must be at least 1, got 0"),
    case("seeds in letters", "train --seeds x", "seeds must be|'x'"),
    case("seeds negative", "train --seeds 1,-2", "seed|greater than or equal to 0|-2"),
    case("a run twice", "train --seeds 1,1", "single-seed1 more than once"),
]

PLACES = [
    case("config missing", "train --config no.yaml", "there is no configuration no.yaml"),
    case("config a folder", "train --config run", "run is a folder: name a YAML file|run/config.yaml", run="digits"),
    case("config a table", "train --config a.yaml", "a.yaml is no YAML, line 2|setting: value", file("a.yaml", "a: 1\n b: [")),
    case("config a list", "train --config a.yaml", "a.yaml must hold settings|list", file("a.yaml", "- epochs\n")),
    case("config empty", "train --config a.yaml", "a.yaml must hold settings|it is empty", file("a.yaml")),
    case("config binary", "train --config a.yaml", "a.yaml is no YAML", file("a.yaml", b"\0\xff\xfe\1" * 9)),
    case("config control", "train --config a.yaml", "a.yaml is no YAML", file("a.yaml", b"epochs: \1")),
    case("config unknown key", "train -c a.yaml", "a.yaml: there is no setting 'epoch'|'epochs'", file("a.yaml", "epoch: 3")),
    case("config key a number", "train -c a.yaml", "a.yaml|setting|3", file("a.yaml", "3: 4")),
    case("config wrong type", "train -c a.yaml", "a.yaml: epochs|integer|[3]", file("a.yaml", "epochs: [3]")),
    case("config nested wrong", "train -c a.yaml", "a.yaml: model needs a name", file("a.yaml", "model: {hidden: [3]}")),
    case("config a list for a name", "train -c a.yaml", "a.yaml: model|NAME", file("a.yaml", "model: [mlp]")),
    case("config name a number", "train -c a.yaml", "a.yaml: data needs a name", file("a.yaml", "data: {name: 3}")),
    case("config method nested", "train -c a.yaml", "mimo|members", file("a.yaml", "method: {name: mimo, members: {a: 1}}")),
    case("config method a list", "train -c a.yaml --members 3", "a.yaml: method|NAME", file("a.yaml", "method: [mimo]")),
    case("config of a grid", "train -c a.yaml --seeds 2", "seed", file("a.yaml", "seed: [1]")),
    case(
        "config with a python object",
        "train -c a.yaml",
        "is no YAML",
        file("a.yaml", "a: !!python/object/apply:os.mkdir [sprung]"),
    ),
    case("out a file", f"{TRAIN} --out a", "a is a file: name a folder for the run", file("a", "mine")),
    case("out not empty", f"{TRAIN} --out run", "run is not empty|--resume|--out", run="digits"),
    case("out of a grid not empty", f"{TRAIN} --seeds 2 --out run", "run is not empty|--resume|--out", run="digits"),
    case("out of a grid a file", f"{TRAIN} --seeds 2 --out a", "a is a file: name a folder", file("a", "mine")),
    case("out below a file", f"{TRAIN} --out a/b", "cannot make the folder a/b: Not a directory", file("a", "mine")),
    case("out below a device", f"{TRAIN} --out /dev/null/x", "cannot make the folder /dev/null/x: Not a directory"),
    case("out read-only", f"{TRAIN} --out /proc/1/x", "cannot make the folder /proc/1/x|--out"),
    case("out of a grid read-only", f"{TRAIN} --seeds 2 --out /proc/x", "cannot make the folder /proc/x|--out"),
    case("runs a file", f"{TRAIN} --runs a", "cannot make the folder a/|Not a directory", file("a", "mine")),
    case("data folder a file", "data list --data-dir a", "a is a file: name a folder|--data-dir", file("a", "mine")),
    case("data folder a file, train", "train --data mnist --data-dir a", "a is a file: name a folder", file("a", "mine")),
    case("a run that is missing", "evaluate no", "there is no run no"),
    case("a run that is a file", "evaluate a", "a is a file: name the folder of a run", file("a", "mine")),
    case("a run that is none", "evaluate a", "a is no run: it has no config.yaml", file("a/notes.txt", "mine")),
    case(
        "a run without weights",
        "evaluate run",
        "run is not finished|--resume run",
        removed("run/weights.safetensors"),
        run="digits",
    ),
    case("a run without data.json", "evaluate run", "data.json", removed("run/data.json"), run="digits"),
    case("data.json cut", "evaluate run", "run/data.json is damaged", cut("run/data.json"), run="digits"),
    case(
        "data.json of another shape",
        "evaluate run",
        "run/data.json is damaged",
        file("run/data.json", '{"shape": 3}'),
        run="digits",
    ),
    case("resume nothing", "train --resume no", "there is no run no"),
    case("resume a folder", "train --resume a", "a is no run: it has no config.yaml", file("a/notes.txt", "mine")),
    case("resume and settings", "train --resume run --epochs 3", "--resume goes on with the run|leave", run="digits"),
    case("resume and config", "train --resume run --config run/config.yaml", "--resume goes on with the run", run="digits"),
    case("resume and out", "train --resume run --out b", "--resume goes on with the run|leave", run="digits"),
    case(
        "resume a damaged config",
        "train --resume run",
        "run/config.yaml",
        UNFINISHED,
        cut("run/config.yaml", 0.04),
        run="digits",
    ),
    case(
        *("resume another method", "train --resume run", "step-00000002.safetensors is of single|Inner"),
        *(UNFINISHED, replaced("run/config.yaml", "name: single", "name: inner")),
        run="digits",
    ),
    case(
        *("resume another network", "train --resume run", "step-00000002.safetensors is of another network"),
        *(UNFINISHED, replaced("run/config.yaml", "- 16", "- 17")),
        run="digits",
    ),
    case("resume a damaged grid", "train --resume g", "g/grid.yaml is no YAML", file("g/grid.yaml", "a: [")),
    case("resume a grid of nothing", "train --resume g", "g/grid.yaml|setting", file("g/grid.yaml", "a: 3")),
]

DATA = [
    case(
        "set missing",
        "train --data mnist",
        "mnist is not complete in data|train-images-idx3-ubyte is missing|pluribus data get mnist",
    ),
    case("path missing", "train --data ./photos", "there is no file or folder ./photos"),
    case("file of no kind", "train --data a.txt", "cannot tell what a.txt is|.csv", file("a.txt", "mine")),
    case(
        "idx cut",
        "train --data mnist",
        "train-images-idx3-ubyte promises 10 × 28 × 28 bytes|cut off",
        mnist(),
        cut(files.IMAGES),
    ),
    case(
        "idx swapped",
        "train --data mnist",
        "train-images-idx3-ubyte must hold images|swapped",
        mnist(),
        swapped(files.IMAGES, files.LABELS),
    ),
    case(
        "idx foreign",
        "train --data mnist",
        "is no idx file of bytes|begin with 0, 0, 8",
        mnist(),
        file(files.IMAGES, b"\x89PNG1234"),
    ),
    case("idx empty", "train --data mnist", "is no idx file of bytes", mnist(), file(files.LABELS)),
    case(
        "gz cut",
        "train --data mnist",
        "is damaged, it cannot be unzipped|get it again",
        mnist(zipped=True),
        cut(files.IMAGES + ".gz"),
    ),
    case("labels out of range", "train --data mnist", "labels must be from 0 to 9, got 11", mnist(labels=[*range(9), 11])),
    case("a class without rows", "train --data mnist", "no training row has the class 9", mnist(labels=[*range(9), 8])),
    case(
        "CIFAR cut",
        "train --data cifar10",
        "data_batch_3.bin must hold records of 3073 bytes|cut off",
        files.cifar,
        cut("data/cifar-10-batches-bin/data_batch_3.bin", 0.9),
    ),
    case(
        "CIFAR pickle with a payload",
        "train --data cifar10",
        "checksum is not the published one|not opened|binary",
        files.pickled_cifar,
    ),
    case(
        "empty class",
        "train --data photos",
        "photos/fox holds no images|remove it",
        photos(lambda f: (f / "photos/fox").mkdir()),
    ),
    case(
        "one class", "train --data photos", "photos must hold a folder of images for each class|got 1", photos(classes=["cat"])
    ),
    case(
        "no classes", "train --data photos", "photos must hold a folder of images for each class|got 0", png("photos/cat.png")
    ),
    case(
        "broken image",
        "train --data photos",
        "photos/dog/9.png cannot be read as an image|remove it",
        photos(png("photos/dog/9.png", broken=True)),
    ),
    case(
        "text as image",
        "train --data photos",
        "photos/dog/9.png cannot be read as an image",
        photos(file("photos/dog/9.png", "no")),
    ),
    case("several sizes", "train --data photos", "images must have one size|9.png|size=8", photos(png("photos/dog/9.png", 12))),
    case("wrong size", "train --data photos:size=big", "size must be a number of pixels|'big'", photos()),
    case("wrong share", "train --data flowers.csv:test=2", "test must be a share|got 2", FLOWERS),
    case("wrong seed of data", "train --data flowers.csv:seed=-1", "seed must be a whole number|-1", FLOWERS),
    case("wrong rows of data", "train --data blundell:rows=many", "rows|'many'"),
    case("wrong split of data", "data check uci-yacht", "uci-yacht is not complete in data|by hand"),
    case(
        "NaN in the target",
        "train --data a.csv",
        "a.csv|target 'price' is missing in 1 of 61 rows",
        file("a.csv", rows(target="price") + "1,2,red,\n"),
    ),
    case(
        "infinity",
        "train --data a.csv",
        "infinity in column 'width', row 61|leave the row out",
        file("a.csv", rows() + "1,inf,red,tall\n"),
    ),
    case("empty column", "train --data a.csv", "column 'note' is empty|drop=['note']", file("a.csv", rows(note=[""] * 60))),
    case("one row", "train --data a.csv", "a.csv", file("a.csv", rows(1, "price"))),
    case("header only", "train --data a.csv", "a.csv holds no rows", file("a.csv", "a,b\n")),
    case("empty table", "train --data a.csv", "a.csv holds no rows", file("a.csv")),
    case(
        "two columns alike", "train --data a.csv", "column names must differ, got 'a'", file("a.csv", "a,a,b\n1,2,3\n4,5,6\n")
    ),
    case("no features", "train --data a.csv", "there must be a column beside the target 'b'", file("a.csv", "b\n1\n2\n3\n")),
    case(
        "id column",
        "train --data a.csv",
        "column 'id' has 160 different texts|drop=['id']",
        file("a.csv", rows(200, id=[f"n{i}" for i in range(200)])),
    ),
    case("ragged table", "train --data a.csv", "a.csv|line 3", file("a.csv", "a,b\n1,2\n1,2,3\n")),
    case("binary table", "train --data a.csv", "a.csv cannot be read", file("a.csv", bytes(range(256)) * 9)),
    case("parquet that is none", "train --data a.parquet", "a.parquet cannot be read", file("a.parquet", "PAR0")),
    case("unknown target", "train --data flowers.csv:target=knd", "no column 'knd': did you mean 'kind'", FLOWERS),
    case("wrong task", "train --data flowers.csv:task=regression", "regression must hold numbers, got 'small'", FLOWERS),
    case("table called a folder", "train --data a.csv", "a.csv must hold a folder of images", lambda f: (f / "a.csv").mkdir()),
    case("npz with objects", "train --data rows.npz", "rows.npz is no archive of plain arrays", files.objects()),
    case(
        "npz of wrong shape",
        "train --data rows.npz",
        "inputs must be images|or rows|[4, 2, 2, 2]",
        npz(x=np.zeros((4, 2, 2, 2)), y=np.arange(4)),
    ),
    case(
        "npz of other lengths",
        "train --data rows.npz",
        "a target for each input, got 4 in x and 3 in y",
        npz(x=np.zeros((4, 2)), y=np.arange(3)),
    ),
    case("npz without x", "train --data rows.npz", "rows.npz must hold x and y|got images", npz(images=np.zeros(3))),
    case(
        "npz with NaN",
        "train --data rows.npz",
        "inputs hold NaN or infinity",
        npz(x=np.full((9, 2), np.nan), y=np.arange(9) % 2),
    ),
    case("npz that is none", "train --data rows.npz", "rows.npz is no archive", file("rows.npz", "mine")),
    case("get unknown", "data get minst", "no data set 'minst'|'mnist'"),
    case("get what is here", "data get digits", "digits needs no files"),
    case("get what cannot be got", "data get svhn", "svhn cannot be got by itself|by hand"),
    case("check unknown", "data check minst", "no data set 'minst'|'mnist'"),
    case("check damaged", "data check mnist", "mnist is not as it was published|pluribus data get mnist", mnist()),
    case("check missing", "data check mnist", "mnist is not complete|pluribus data get mnist"),
    case("check a damaged table", "data check a.csv", "a.csv holds no rows", file("a.csv", "a,b\n")),
]

NETWORKS = [
    case(
        "image model on a table",
        "train --data flowers.csv --model lenet5",
        "lenet5 takes images|rows of 4 numbers: choose mlp",
        FLOWERS,
    ),
    case("lenet5 on digits", "train --data digits --model lenet5", "lenet5|at least 16×16, got 8×8"),
    case("crop on a table", "train --data flowers.csv --augment crop", "augment 'crop' is for images|choose none", FLOWERS),
    case("hidden in letters", "train --model mlp:hidden=wide", "mlp cannot be built|hidden"),
    case("hidden negative", "train --model mlp:hidden=[-3]", "mlp cannot be built|-3"),
    case("no such module", "train --model nowhere:build", "cannot import 'nowhere'|No module named"),
    case(
        "a module that fails", "train --model nets:build", "cannot import 'nets'|boom", file("nets.py", "raise OSError('boom')")
    ),
    case("a module with a typing error", "train --model nets:build", "cannot import 'nets'", file("nets.py", "def")),
    case("a module that exits", "train --model nets:build", "cannot import 'nets'", file("nets.py", "raise SystemExit(0)")),
    case("no such factory", "train --model nets:bild", "nets has no 'bild'|'build'", nets),
    case("no factory", "train --model nets:number", "nets:number must be something to call, got int", nets),
    case("a factory that raises", "train --model nets:raises", "nets:raises cannot be built|the cupboard is bare", nets),
    case("a factory of nothing", "train --model nets:none", "nets:none must return an nn.Module, got NoneType", nets),
    case(
        "a factory of another shape",
        "train --model nets:wrong",
        "nets:wrong must answer with 10 numbers a row, got [2, 3]",
        nets,
    ),
    case("a network that answers a list", "train --model nets:several", "nets:several must answer with|list", nets),
    case("a network for other inputs", "train --model nets:narrow", "nets:narrow cannot take inputs of 1×8×8", nets),
    case("a factory that wants more", "train --model nets:positional", "nets:positional cannot be built|depth", nets),
    case("an option it has not", "train --model nets:build:width=3", "nets:build has no option 'width'|hidden", nets),
    case("a factory without a name", "train --model nets:", "nets:|package.module:factory", nets),
    case("a builtin", "train --model builtins:print", "builtins:print|nn.Module"),
]

RUNS = [
    case("unknown split", "evaluate run --split tset", "no split 'tset': did you mean 'test'", run="digits"),
    case("no draws", "evaluate run --samples 5", "single draws no samples: leave --samples out", run="digits"),
    case("no draws to predict", "predict run a.png --samples 5", "single draws no samples", png("a.png"), run="digits"),
    case("samples 0", "evaluate run --samples 0", "'--samples'|range", run="digits"),
    case("data of another shape", "evaluate run --data mnist", "mnist has inputs of 1×28×28|1×8×8", mnist(), run="digits"),
    case("data of another task", "evaluate run --data blundell", "regression|classification of 1×8×8", run="digits"),
    case(
        "data with other columns",
        "evaluate run --data b.csv",
        "b.csv|inputs of 5|of 4",
        file("b.csv", rows(age=range(60))),
        run="flowers",
    ),
    case("unknown data to evaluate", "evaluate run --data digist", "no data set 'digist': did you mean 'digits'", run="digits"),
    case("weights cut", "evaluate run", "weights.safetensors is damaged", cut("run/weights.safetensors"), run="digits"),
    case(
        "weights of another method",
        "evaluate run",
        "weights.safetensors holds Inner|Single",
        files.weights_of(Inner()),
        run="digits",
    ),
    case(
        "weights of another network",
        "evaluate run",
        "weights.safetensors was saved from another network",
        files.weights_of(Inner(), 17),
        run="digits",
    ),
    case(
        "weights a pickle",
        "evaluate run",
        "weights.safetensors is damaged, or no safetensors file",
        files.pickled_weights,
        run="digits",
    ),
    case(
        "weights a pickle, predict",
        "predict run a.png",
        "no safetensors file",
        files.pickled_weights,
        png("a.png"),
        run="digits",
    ),
    case(
        "config of a run without a model",
        "evaluate run",
        "config.yaml|model",
        file("run/config.yaml", "epochs: 3"),
        run="digits",
    ),
    case("file missing", "predict run no.png", "there is no file no.png", run="digits"),
    case("file a folder", "predict run photos", "photos is a folder: name files, as in photos/*", photos(), run="digits"),
    case("second file missing", "predict run a.png b.png", "there is no file b.png", png("a.png"), run="digits"),
    case("text for an image", "predict run a.png", "a.png is no image that can be read", file("a.png", "mine"), run="digits"),
    case("image cut", "predict run a.png", "a.png is no image that can be read", png("a.png", broken=True), run="digits"),
    case("table for an image", "predict run flowers.csv", "learnt from images|flowers.csv", FLOWERS, run="digits"),
    case("image for a table", "predict run a.png", "learnt from a table, and a.png is none|.csv", png("a.png"), run="flowers"),
    case(
        "column missing",
        "predict run a.csv",
        "'colour' missing, got 'length', 'width'",
        file("a.csv", "length,width\n1,2\n"),
        run="flowers",
    ),
    case(
        "text for a number",
        "predict run a.csv",
        "a.csv|'length' must hold numbers, got 'long'",
        file("a.csv", "length,width,colour\nlong,2,red\n"),
        run="flowers",
    ),
    case(
        "hole in a row",
        "predict run a.csv",
        "a.csv|NaN in column 'width', row 1",
        file("a.csv", "length,width,colour\n1,,red\n"),
        run="houses",
    ),
    case(
        "npz with objects to predict",
        "predict run rows.npz",
        "rows.npz must be an .npz file with an array x",
        files.objects(),
        run="digits",
    ),
    case(
        "npz that is none to predict",
        "predict run rows.npz",
        "rows.npz must be an .npz file",
        file("rows.npz", "mine"),
        run="digits",
    ),
    case(
        "npz of another shape to predict",
        "predict run rows.npz",
        "rows of rows.npz must be of 1×8×8, got 9×9",
        npz(x=np.zeros((2, 9, 9), np.uint8)),
        run="digits",
    ),
    case("npz of texts", "predict run rows.npz", "rows.npz|numbers", npz(x=np.full((2, 8, 8), "a")), run="digits"),
]

EVERY = [*COMMANDS, *SETTINGS, *PLACES, *DATA, *NETWORKS, *RUNS]


def digest(folder):
    """Everything in a folder, by name."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "a folder"
        for path in sorted(folder.rglob("*"))
        if "__pycache__" not in path.parts
    }


def check(answer, said):
    assert answer.code == 2, answer
    assert "Traceback" not in answer.err
    if "Usage:" not in answer.err:
        assert answer.err.startswith("pluribus: ")
        assert answer.err.count("\n") == 1, answer.err
    plain = " ".join(answer.err.replace("│", " ").split())
    for piece in said.split("|"):
        assert piece in plain


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name.replace(" ", "-"))
def test_wrong_input_ends_with_one_sentence_and_leaves_everything_as_it_was(case, pluribus, a_copy, work):
    if case.run:
        a_copy(case.run)
    for make in case.has:
        make(work)
    before = digest(work)
    answer = pluribus(case.line)
    if os.environ.get("SHOW"):
        open(os.environ["SHOW"], "a").write(f"{case.name}: {case.line}\n    [{answer.code}] {answer.err.strip()[-1500:]}\n")
    check(answer, case.said)
    after = digest(work)
    assert not (work / "sprung").exists()
    made = {name for name in after if case.leaves and name.split("/")[0] == case.leaves}
    assert {name: value for name, value in after.items() if name not in made} == before
