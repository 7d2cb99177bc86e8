"""Many rows and many draws: held once, run in bounded groups, or summed up as they come."""

import json
import runpy
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import pluribus
from pluribus import BatchEnsemble, DeepEnsemble, MCDropout, Predictive, PredictiveSummary, Single, Variance, metrics
from pluribus.analysis.memory import measure_peak_memory
from pluribus.core import execution, predictive
from pluribus.core.prediction import RunningSums
from pluribus.core.row_buffer import RowBuffer

DRAWN = [MCDropout(samples=50), Variance(samples=50), Variance(noise="uniform", samples=50)]


def small_net() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).double()


def rows(count: int) -> torch.Tensor:
    return torch.randn(count, 6, dtype=torch.double)


def make(spec: pluribus.Spec, **options) -> pluribus.Ensemble:
    return pluribus.ensemble(small_net(), spec, example=rows(2), **options).eval()


# --- sums -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(12,), (5, 7), (1, 1, 10), (4, 4, 4)], ids=str)
def test_sums_over_groups_are_those_over_all_members(sizes):
    outputs = 5 * torch.randn(12, 9, 4, 2, dtype=torch.double)
    for task, names in (
        ("classification", ("log_probs", "expected_entropy", "disagreement")),
        ("regression", ("mean", "spread_variance")),
    ):
        sums = RunningSums(task)
        for group in outputs.split(sizes):
            sums.add(Predictive(group, task))
        whole = Predictive(outputs, task)
        averages = sums.compute_averages()
        assert tuple(averages) == names
        for name in names:
            torch.testing.assert_close(averages[name], getattr(whole, name), rtol=0, atol=1e-13)


def test_sums_stay_exact_where_a_naive_sum_would_lose_everything():
    far = RunningSums("classification")
    for logit in (1000.0, 2000.0):
        far.add(Predictive(torch.tensor([[[logit, 0.0]]], dtype=torch.double)))
    expected = -1000 - torch.tensor(2.0, dtype=torch.double).log()
    torch.testing.assert_close(far.compute_averages()["log_probs"][0, 1], expected)
    high = RunningSums("regression")
    values = 1e9 + torch.randn(30, 4, 1, dtype=torch.double)
    for group in values.split(7):
        high.add(Predictive(group, "regression"))
    torch.testing.assert_close(high.compute_averages()["spread_variance"], values.var(0, correction=0), rtol=1e-6, atol=0)


def test_one_column_and_half_precision_are_summed_as_in_a_full_prediction():
    outputs = torch.randn(6, 5, 1).bfloat16()
    sums = RunningSums("classification")
    for group in outputs.split(4):
        sums.add(Predictive(group))
    averages = sums.compute_averages()
    assert averages["log_probs"].dtype == torch.float
    torch.testing.assert_close(averages["log_probs"], Predictive(outputs).log_probs)


def test_averages_of_many_outputs_are_computed_in_blocks_of_rows(monkeypatch):
    outputs = torch.randn(6, 50, 4, dtype=torch.double)
    names = ("log_probs", "expected_entropy", "disagreement")
    whole = [getattr(Predictive(outputs), name) for name in names]
    monkeypatch.setattr(predictive, "BLOCK_SIZE", 100)
    for name, expected in zip(names, whole, strict=True):
        torch.testing.assert_close(getattr(Predictive(outputs), name), expected, rtol=0, atol=1e-14)
        assert measure_peak_memory(lambda name=name: getattr(Predictive(outputs), name)) < outputs.nbytes


# --- what a summary has ---------------------------------------------------------------------------------------------


def test_what_needs_members_says_how_to_keep_them():
    p = make(MCDropout(samples=5)).predict(rows(4), members=False)
    assert p.count == 5
    for name in ("outputs", "members", "member_log_probs", "member_noise"):
        assert not hasattr(p, name)
        with pytest.raises(AttributeError, match=f"without members has no {name}: call predict"):
            getattr(p, name)
    with pytest.raises(AttributeError, match="Convert with task='regression'"):
        _ = p.mean
    with pytest.raises(AttributeError, match="Convert with task='classification'"):
        _ = make(Single(), task="regression").predict(rows(4), members=False).entropy


def test_one_member_has_a_summary_too():
    p = make(Single()).predict(rows(4), members=False)
    assert p.disagreement.abs().max() == 0
    assert p.mutual_information.abs().max() < 1e-12


def test_scores_take_a_summary_as_they_take_the_members():
    outputs, y = torch.randn(4, 9, 3, dtype=torch.double), torch.arange(9) % 3
    p = Predictive(outputs)
    for score in (metrics.accuracy, metrics.nll, metrics.ece, metrics.brier, metrics.aurc, metrics.fit_temperature):
        assert score(p.summarize(), y) == pytest.approx(score(p, y))
    p, y = Predictive(outputs, "regression"), torch.randn(9, 3, dtype=torch.double)
    for score in (metrics.rmse, metrics.gaussian_nll, metrics.crps, metrics.coverage, metrics.fit_noise_variance):
        assert score(p.summarize(), y) == pytest.approx(score(p, y))
    parts = [Predictive(part, "regression").summarize() for part in outputs.split(4, dim=1)]
    torch.testing.assert_close(PredictiveSummary.cat(parts).variance, p.variance)


# --- loaders --------------------------------------------------------------------------------------------------------


class Stream(IterableDataset):
    """Rows of which nobody says how many there are."""

    def __init__(self, x: torch.Tensor) -> None:
        self.x = x

    def __iter__(self):
        return iter(self.x)


@pytest.mark.parametrize("members", [True, False])
def test_loaders_of_known_and_unknown_length_give_all_rows(members):
    x = rows(23)
    ensemble = make(BatchEnsemble(3))
    expected = ensemble.predict(x, members=members).probs
    loaders = {
        "known": DataLoader(TensorDataset(x, torch.zeros(23)), batch_size=4),
        "unknown": DataLoader(Stream(x), batch_size=4),
        "more than it says": DataLoader(TensorDataset(x[:12]), batch_size=4, collate_fn=lambda pairs: take_twice(x, pairs)),
        "iterator": iter(x.split(5)),
    }
    for name, loader in loaders.items():
        p = ensemble.predict(loader, batch_size=3, members=members)
        torch.testing.assert_close(p.probs, expected, rtol=0, atol=1e-12, msg=name)
    assert len(ensemble.predict(DataLoader(TensorDataset(x), batch_size=4, drop_last=True), members=members)) == 20
    with pytest.raises(ValueError, match="at least one batch"):
        ensemble.predict(iter([]), members=members)


def take_twice(x: torch.Tensor, pairs: list[tuple[torch.Tensor]]) -> torch.Tensor:
    """Two rows of x for each that was asked for, as an augmentation may give."""
    first = next(index for index in range(12) if torch.equal(x[index], pairs[0][0]))
    return x[2 * first : 2 * first + 8]


def test_a_loader_of_known_length_is_written_into_memory_once(monkeypatch):
    taken = []
    real = RowBuffer.take_rows
    monkeypatch.setattr(RowBuffer, "take_rows", lambda self, shape, like: taken.append(self) or real(self, shape, like))
    x = rows(23)
    p = make(BatchEnsemble(3)).predict(DataLoader(TensorDataset(x), batch_size=4))
    assert len(taken) == 6
    assert p.outputs.data_ptr() == taken[0].tensor.data_ptr()
    assert p.outputs.is_contiguous()


def test_a_batch_without_rows_is_answered():
    ensemble = make(BatchEnsemble(3))
    assert ensemble.predict(rows(0)).outputs.shape == (3, 0, 3)
    assert ensemble.predict(rows(0), members=False).probs.shape == (0, 3)


# --- memory ---------------------------------------------------------------------------------------------------------


def test_outputs_are_held_once():
    ensemble, x = make(MCDropout(samples=400)), rows(2000)
    ensemble.predict(x[:2])
    outputs = 400 * 2000 * 3 * 8
    assert outputs < measure_peak_memory(lambda: ensemble.predict(x)) < 1.3 * outputs


@pytest.mark.parametrize("spec", [*DRAWN, DeepEnsemble(2, of=MCDropout(samples=25))], ids=str)
def test_draws_beyond_the_budget_run_in_groups(spec, monkeypatch):
    """Numbers in the largest tensor stay below the budget, even if all draws of a single row are many more."""
    monkeypatch.setattr(execution, "CHUNK_SIZE", 80)
    ensemble, seen = make(spec), []
    x = rows(3)
    head = [module for module in ensemble.modules() if isinstance(module, nn.ReLU)][-1]
    head.register_forward_pre_hook(lambda _, args: seen.append(args[0].numel()))
    outputs = ensemble.predict(x).outputs
    assert outputs.shape == (50, 3, 3)
    assert max(seen) <= 2 * 80
    assert len(outputs[:, 0].unique(dim=0)) > 1
    drawn = 64 if getattr(spec, "noise", "") == "uniform" else 8
    groups = [group.members for group in ensemble.executor.split(ensemble)]
    assert sum(groups) == 50
    assert max(groups) <= max(80 // drawn, 1)


@pytest.mark.parametrize("spec", DRAWN, ids=str)
def test_draws_in_groups_have_the_distribution_of_draws_together(spec, monkeypatch):
    """The difference of two means of 4,000 draws has a standard error of √(2 / 4000) standard deviations; 5 are allowed."""
    torch.manual_seed(0)
    ensemble, x = make(spec), rows(1)
    ensemble.samples = 4000
    found = []
    for most in (2**30, 400):
        monkeypatch.setattr(execution, "CHUNK_SIZE", most)
        assert (len(ensemble.executor.split(ensemble)) > 1) == (most == 400)
        found.append(ensemble.predict(x).outputs[:, 0])
    together, groups = found
    gap = (together.mean(0) - groups.mean(0)).abs() / together.std(0)
    assert gap.max() < 5 * (2 / 4000) ** 0.5
    ratio = groups.std(0) / together.std(0)
    assert (ratio - 1).abs().max() < 0.15


def test_members_of_which_there_are_many_take_few_rows_at_once():
    """A hundred thousand numbers of all members for a row: as many rows as fit, and not as many as one member could take."""
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(8, 100), nn.ReLU(), nn.Linear(100, 3)), BatchEnsemble(1000)).eval()
    ensemble(torch.randn(2, 8))
    assert ensemble.executor.choose_chunk_rows(ensemble) * 1000 * 100 <= 2 * execution.CHUNK_SIZE


def test_the_recorded_measurement_is_flat_and_shown():
    """What the README says of K = 10, 100 and 1,000 is what was measured, of every method."""
    folder = Path(__file__).parents[2] / "benchmarks"
    found = json.loads((folder / "results" / "predict_memory.json").read_text())
    namespace = runpy.run_path(str(folder / "predict_memory.py"))
    assert (folder / "results" / "predict_memory.md").read_text() == namespace["write_table"](found["measured"], found["rows"])
    for method in namespace["SPECS"]:
        rows = [row for row in found["measured"] if row["method"] == method]
        assert [row["draws"] for row in rows] == [10, 100, 1000]
        peaks = [row["without"]["peak"] for row in rows]
        assert max(peaks) <= 1.1 * min(peaks)
        assert all(row["with"]["growth"] < 1.05 * row["with"]["outputs"] + 24 for row in rows)
