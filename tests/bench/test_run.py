"""From what was asked for to a folder of results."""

import pytest
import torch

from pluribus.bench import results
from pluribus.bench.run import BenchError, Settings, plan_benchmark, run_benchmark, thread_count

from .example_rows import ABOUT


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("pluribus.analysis.timing.MIN_SECONDS", 0.0)


def test_everything_is_planned_unless_something_is_named():
    plan = plan_benchmark()
    assert list(plan) == ["targets", "table", "growth"]
    assert {job.measurement.network.title for job in plan["growth"]} == {"LeNet-5"}
    assert {job.measurement.network.title for job in plan_benchmark(["growth"], ["mlp", "vit"])["growth"]} == {
        "MLP 64-64",
        "ViT",
    }
    assert list(plan_benchmark(None, ["vit"], ["maxout"])) == ["table"]  # the others have nothing of it


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"parts": ["tables"]}, "no part 'tables': did you mean 'table'"),
        ({"networks": ["resnet"]}, "did you mean 'resnet20'"),
        ({"methods": ["mixtures"]}, "did you mean 'mixture'"),
        ({"methods": []}, "methods must be names between commas"),
        ({"parts": ["growth"], "methods": ["single"]}, "there is nothing in growth"),
    ],
)
def test_what_cannot_be_measured_is_said(asked, said):
    with pytest.raises(BenchError, match=said):
        plan_benchmark(**asked)


def test_progress_ends_where_it_said_it_would_and_heats_are_written_one_by_one(tmp_path, monkeypatch):
    plan = plan_benchmark(["table", "growth"], ["mlp"], ["multihead"])
    saved, told = [], []
    monkeypatch.setattr(results, "save_results", lambda folder, found: saved.append([p for p in results.PARTS if found[p]]))
    run_benchmark(plan, tmp_path, Settings(2, 4, 1), ABOUT, lambda what, done, total: told.append((done, total)))
    assert saved == [["table"], ["table"], ["table", "growth"], ["table", "growth"]]
    slices = 2 * (2 * 2 + 2 * 5)  # repeats × (works × (base, method) + works × (base, four sizes))
    assert told[-1] == (slices, slices)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_measuring_leaves_threads_and_random_numbers_as_they_were(tmp_path):
    before, state = torch.get_num_threads(), torch.get_rng_state()
    found = run_benchmark(plan_benchmark(["table"], ["mlp"], ["mimo"]), tmp_path, Settings(1, 2, 1), ABOUT, lambda *_: None)
    assert torch.get_num_threads() == before
    assert torch.equal(torch.get_rng_state(), state)
    assert results.read_results(tmp_path) == found


def test_threads_are_set_for_a_while():
    before = torch.get_num_threads()
    with thread_count(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
