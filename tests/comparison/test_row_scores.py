"""rows.safetensors: refused if damaged, or of other rows than the run was judged by."""

import pytest
import safetensors.torch
import torch

from pluribus import FileError
from pluribus.comparison.statistics import PairedBootstrap, read_row_scores
from pluribus.core.tensor_files import serialize_tensors
from pluribus.runs.evaluation import ROWS_FORMAT, ROWS_KEY
from pluribus.runs.run_folder import Run

ROWS = 8
TABLE = {"nll": torch.rand(ROWS), "right": torch.ones(ROWS), "brier": torch.rand(ROWS)}


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path)
    judged = {"rows": ROWS, "members": 1, "scores": {}, "intervals": {}, "member_scores": {}, "diversity": {}, "tempered": None}
    run.write_json("judgement.json", judged)
    run.row_scores.write_bytes(serialize_tensors(TABLE, {"format": ROWS_FORMAT}, ROWS_KEY))
    return run


def test_what_was_written_is_read(run):
    found = read_row_scores(run.path)
    assert all(torch.equal(found[name], column) for name, column in TABLE.items())


def test_one_flipped_bit_is_refused(run):
    data, refused = run.row_scores.read_bytes(), 0
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << (place % 8)
        run.row_scores.write_bytes(flipped)
        try:
            found = read_row_scores(run.path)
        except FileError:
            refused += 1
        else:
            assert all(torch.equal(found[name], column) for name, column in TABLE.items())
    assert refused > 0.9 * len(data)


def test_the_sentence_says_that_it_is_computed_again(run):
    data = bytearray(run.row_scores.read_bytes())
    data[-1] ^= 1
    run.row_scores.write_bytes(data)
    with pytest.raises(FileError, match=r"damaged.*delete .*rows\.safetensors and resume the comparison"):
        read_row_scores(run.path)


@pytest.mark.parametrize(
    "column",
    [torch.rand(ROWS - 1), torch.rand(ROWS, 1), torch.tensor(1.0), torch.zeros(0), torch.ones(ROWS, dtype=torch.int32)],
    ids=["a row less", "two axes", "no axis", "no rows", "whole numbers"],
)
def test_scores_of_another_shape_or_kind_are_refused(run, column):
    run.row_scores.write_bytes(serialize_tensors(TABLE | {"nll": column}, {"format": ROWS_FORMAT}, ROWS_KEY))
    with pytest.raises(FileError, match=f"one real number for each of {ROWS} rows, got nll"):
        read_row_scores(run.path)


def test_a_file_of_an_older_version_is_read_if_it_fits(run):
    run.row_scores.write_bytes(safetensors.torch.save(TABLE))
    assert set(read_row_scores(run.path)) == set(TABLE)


def test_a_run_without_its_row_scores_is_not_judged(run):
    assert run.is_judged
    run.row_scores.unlink()
    assert not run.is_judged


def test_runs_that_were_judged_by_other_rows_are_not_paired():
    with pytest.raises(FileError, match="must be judged by the same rows"):
        PairedBootstrap({"single": {0: torch.rand(5)}, "inner": {0: torch.rand(6)}}, draws=2)
