"""Searches on toy problems: what they find, what they leave, and how they go on after a kill."""

import json
import multiprocessing
import os
import signal

import pytest
import torch
from torch import nn

from pluribus.core.errors import FileError
from pluribus.core.tensor_files import read_tensors
from pluribus.search import FoundCell, SearchSettings, build_network, make_complete_graph, make_operations, search_cell
from pluribus.search.cell_search import repeat_batches
from pluribus.search.search_files import RESULT, STATE
from pluribus.training.checkpoint_files import read_checkpoint
from pluribus.training.lightning_module import Diverged

SMALL = {"classes": 2, "width": 4, "cells": 1, "stacks": 1, "batch_size": 16, "progress": False}


def make_rows(seed: int, count: int = 64):
    """Images of noise, which are brighter in the second class."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (count,), generator=generator)
    return torch.randn(count, 1, 4, 4, generator=generator) / 2 + y.view(-1, 1, 1, 1), y


class Noise(nn.Module):
    """It answers with noise, one number for each image and channel, whatever it gets."""

    def __init__(self, spread: float) -> None:
        super().__init__()
        self.spread = spread

    def forward(self, x):
        return self.spread * torch.randn(*x.shape[:2], 1, 1).expand_as(x)


class Deadly(nn.Module):
    """Dropout, which kills the process in call number `fatal` of all of them."""

    calls = 0
    fatal = 0

    def forward(self, x):
        Deadly.calls += 1
        if Deadly.calls == Deadly.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return nn.functional.dropout(x, 0.5)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("algorithm", ["darts", "gdas"])
def test_the_one_operation_that_uses_the_image_is_found(algorithm, seed):
    """On the direct edge: the convolution of the last edge can learn to ignore the noise of another path."""
    found = search_cell(
        *(make_rows(1, 128), make_rows(2, 128)),
        **SMALL,
        operations={
            "loud": lambda channels: Noise(2.0),
            "quiet": lambda channels: Noise(1.0),
            "convolution": lambda channels: nn.Conv2d(channels, channels, 3, padding=1),
        },
        **{"graph": make_complete_graph(3), "algorithm": algorithm, "seed": seed, "epochs": 7, "lr": 0.1},
        **{"architecture_lr": 0.1, "temperature": 2.0, "temperature_end": 1.0},
    )
    assert found.cell.operations[1] == "convolution"
    assert found.get_probabilities(0, 2)["convolution"] > 0.6
    assert found.history[-1].validation_loss < found.history[0].validation_loss
    assert found.history[-1].probabilities == found.probabilities
    temperatures = [row.temperature for row in found.history]
    assert temperatures[::6] == ([2.0, 1.0] if algorithm == "gdas" else [None, None])
    with pytest.raises(ValueError, match="no edge 0→7"):
        found.get_probabilities(0, 7)


OPERATIONS = make_operations(copies=2) | {"deadly": lambda channels: Deadly()}


def search(folder=None, **options):
    settings = SMALL | {"width": 2, "epochs": 3, "operations": OPERATIONS, "augmentation": "flip"}
    return search_cell(make_rows(1), make_rows(2, 40), folder=folder, **(settings | options))


@pytest.mark.parametrize(("algorithm", "fatal"), [("darts", 100), ("gdas", 9)])
def test_a_killed_search_goes_on_bit_for_bit(algorithm, fatal, tmp_path):
    """DARTS runs an operation 48 times an epoch (6 edges, 4 steps of 2 passes), GDAS about 6 times."""
    options = {"algorithm": algorithm, "seed": 3, "lr": 0.1, "architecture_lr": 0.1}
    before = torch.random.get_rng_state()
    whole = search(tmp_path / "whole", **options)
    assert torch.equal(torch.random.get_rng_state(), before), "the caller's generator was used"

    def work():
        Deadly.calls, Deadly.fatal = 0, fatal
        search(tmp_path / "killed", **options)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert 1 <= len(read_checkpoint(tmp_path / "killed" / STATE)["history"]) < 3

    assert search(tmp_path / "killed", resume=True, **options) == whole
    (about, tensors), (whole_about, whole_tensors) = (read_tensors(tmp_path / name / STATE) for name in ("killed", "whole"))
    assert about == whole_about, "it holds a digest of the tensors, too"
    assert all(torch.equal(tensors[name], whole_tensors[name]) for name in whole_tensors)
    results = [(tmp_path / name / RESULT).read_bytes() for name in ("killed", "whole")]
    assert results[0] == results[1]
    assert FoundCell.from_json(json.loads(results[0])) == whole
    assert search(tmp_path / "whole", resume=True, **options) == whole, "there is nothing left to do"
    assert {path.name for path in (tmp_path / "whole").iterdir()} == {STATE, RESULT}


def test_a_folder_with_another_search_is_refused(tmp_path):
    seen = []
    search(tmp_path, epochs=1, on_epoch=seen.append)
    assert [row.epoch for row in seen] == [1]
    with pytest.raises(FileError, match="resume=True"):
        search(tmp_path, epochs=1)
    with pytest.raises(FileError, match="with epochs 1, and this one has 2"):
        search(tmp_path, epochs=2, resume=True)
    with pytest.raises(FileError, match="with operations"):
        search(tmp_path, epochs=1, resume=True, operations=make_operations(copies=2))
    with pytest.raises(FileError, match="does not fit these operations"):
        search(tmp_path, epochs=1, resume=True, operations=OPERATIONS | make_operations(copies=3))
    content = bytearray((tmp_path / STATE).read_bytes())
    content[-20] ^= 1
    (tmp_path / STATE).write_bytes(content)
    with pytest.raises(FileError, match="damaged"):
        search(tmp_path, epochs=1, resume=True)


def test_a_result_survives_json_and_makes_a_network():
    found = search(epochs=1, algorithm="gdas", operations=make_operations(copies=2))
    again = FoundCell.from_json(json.loads(json.dumps(found.to_json())))
    assert again == found
    assert str(again) == str(found) == found.history[-1].cell
    assert found.settings == SearchSettings(algorithm="gdas", epochs=1, width=2, cells=1, stacks=1, batch_size=16)
    assert build_network(found, classes=2, channels=1, width=2, cells=1)(torch.zeros(3, 1, 8, 8)).shape == (3, 2)
    broken = found.to_json() | {"probabilities": [[1.0]]}
    for content in ({}, None, broken, {key: value for key, value in found.to_json().items() if key != "cell"}):
        with pytest.raises(FileError, match="result of a search"):
            FoundCell.from_json(content)


def test_a_log_gets_a_line_for_every_epoch(capsys):
    search(epochs=1, algorithm="gdas", progress=True)
    assert capsys.readouterr().err.startswith("epoch 1/1  loss ")


def test_validation_rows_come_in_a_new_order_whenever_all_were_taken():
    class Rows:
        epoch = 0

        def __len__(self):
            return 2

        def __iter__(self):
            return iter([(self.epoch, 0), (self.epoch, 1)])

    assert list(repeat_batches(Rows(), epoch=1, steps=3)) == [(2, 0), (2, 1), (3, 0), (3, 1)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": "random"}, "darts"),
        ({"epoch": 3}, "epoch"),
        ({"lr": -1.0}, "greater than 0"),
        ({"classes": 1}, "classes must be at least 2"),
        ({"resume": True}, "needs folder="),
        ({"operations": {}}, "not empty"),
        ({"operations": ["none"]}, "mapping from names to factories"),
        ({"operations": {"a|b": lambda channels: nn.Identity()}}, "without spaces"),
        ({"operations": {"half": lambda channels: nn.MaxPool2d(2)}}, "must keep the shape of its input"),
        ({"operations": {"text": lambda channels: "x"}}, "must return an nn.Module"),
    ],
)
def test_wrong_settings_are_explained(options, words):
    with pytest.raises(ValueError, match=words):
        search(**options)


def test_wrong_data_are_explained():
    x, y = make_rows(1)
    for train, words in (
        ((x.flatten(1), y), r"must be images \[B, channels, H, W\], got \[16, 16\]"),
        ((x, y.float()), "whole numbers"),
        ((x, y + 1), "labels must be from 0 to 1, got 1 to 2"),
        ((x.expand(-1, 3, -1, -1), y), "the same channels"),
    ):
        with pytest.raises(ValueError, match=words):
            search_cell(train, (x, y), **SMALL)
    with pytest.raises(TypeError, match="a Dataset or a loader"):
        search_cell(3, (x, y), **SMALL)
    with pytest.raises(Diverged, match="step 1 of epoch 1"):
        search_cell((x, y), (x * float("nan"), y), **SMALL)
