"""Exported files answer as the ensemble does, in both formats, whatever the number of rows; what differs is not kept."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import (
    MIMO,
    BatchEnsemble,
    DeepEnsemble,
    Inner,
    LowRank,
    Maxout,
    MCDropout,
    Mixture,
    Multihead,
    Single,
    TreeNet,
    Unsupported,
    Variance,
    VariationalDropout,
)
from pluribus.core.spec import list_methods
from pluribus.exporting import ExportError, api
from pluribus.exporting.formats import READERS
from tests.networks import DenseCNN, NestedMLP, ResidualCNN, Transformer, images, tokens, vectors

ANSWERS = ("probs", "label", "members", "entropy", "mutual_information")
METHODS = {
    spec.name: spec
    for spec in (
        *(
            Single(),
            Inner(copies=2),
            Maxout(copies=2),
            Variance(samples=3),
            VariationalDropout(samples=3),
            MCDropout(samples=3),
        ),
        *(Multihead(members=2), MIMO(members=2), TreeNet(members=2), BatchEnsemble(members=2), Mixture(members=2)),
        *(LowRank(members=2, rank=1), DeepEnsemble(members=2)),
    )
}
FOLDED, TOGETHER = ("mimo",), ("treenet", "mc-dropout")
"""In the quick tests: methods that are folded, and methods that are exported as they run."""


def mlp(outputs=3):
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, outputs))


def build(spec, net=None, x=None):
    torch.manual_seed(0)
    return pluribus.ensemble(ResidualCNN() if net is None else net, spec, example=images() if x is None else x).eval()


def read(written):
    """The file's answers by name, as a function of its inputs."""
    run = READERS["onnx" if written.path.suffix == ".onnx" else "torch"](written.path, written.inputs)
    return lambda *inputs: dict(zip(written.outputs, run(inputs), strict=True))


def check_parity(ensemble, written, *rows):
    for count in (1, 7, 64):
        x = torch.cat([rows[0]] * 64)[:count]
        p, found = ensemble.predict(x), read(written)(x)
        for name in ("probs", "members", "entropy", "mutual_information"):
            torch.testing.assert_close(found[name], getattr(p, name), rtol=0, atol=1e-5)
        assert torch.equal(found["label"], p.labels)


def test_no_method_is_left_out():
    assert set(METHODS) == set(list_methods())


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        *((name, "pt2") for name in (*FOLDED, *TOGETHER)),
        *((name, "onnx") for name in ("mimo", "mc-dropout")),
        *(pytest.param(name, ending, marks=pytest.mark.slow) for name in METHODS for ending in ("pt2", "onnx")),
    ],
)
@pytest.mark.parametrize(
    ("net", "x"),
    [
        (ResidualCNN, images),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in ((NestedMLP, vectors), (DenseCNN, images), (Transformer, tokens), (mlp, lambda: torch.randn(6, 8)))
        ),
    ],
)
def test_the_file_answers_as_the_ensemble_does(name, ending, net, x, tmp_path):
    ensemble, rows = build(METHODS[name], net(), x()), x()
    if ensemble.sampled:
        torch.manual_seed(1)
        ensemble.predict(rows)
        ensemble = ensemble.freeze()  # to compare with: a frozen ensemble is exported with its own draws
    written = pluribus.export(ensemble, tmp_path / f"model.{ending}", example=rows)
    assert written.outputs == ANSWERS
    assert written.difference < 1e-5
    check_parity(ensemble, written, rows)


def test_draws_are_fixed_and_as_many_as_asked_for(tmp_path):
    ensemble = build(MCDropout(rate=0.5, samples=20))
    answer = read(pluribus.export(ensemble, tmp_path / "model.pt2", example=images(), samples=4))
    x = images()
    first, again = answer(x), answer(x)
    assert first["members"].shape[0] == 4
    assert torch.equal(first["members"], again["members"])
    assert (first["members"][0] - first["members"][1]).abs().max() > 1e-4


def test_rules_go_along(tmp_path):
    torch.manual_seed(0)
    x, y = torch.randn(400, 8), torch.randint(0, 3, (400,))
    ensemble = pluribus.ensemble(mlp(outputs=3), DeepEnsemble(members=2), example=x[:2]).eval()
    calibrated = pluribus.calibrate(ensemble, x, y, coverage=0.8, risk=0.7, false_alarms=0.3, alarm="energy")
    answer = read(pluribus.export(calibrated, tmp_path / "model.onnx", example=x))
    fresh = torch.randn(50, 8)  # of the others, one has the score that is the threshold
    found, decided = answer(fresh), calibrated.predict(fresh)
    assert torch.equal(found["set"], decided.sets)
    assert torch.equal(found["answered"], decided.is_answered)
    assert torch.equal(found["foreign"], decided.is_foreign)
    assert 0 < found["foreign"].float().mean() < 1


@pytest.mark.parametrize("beside", [{}, {"noise": "gaussian"}, {"quantiles": (0.1, 0.9)}])
def test_a_regression_answers_in_the_units_of_its_targets_with_its_interval(beside, tmp_path):
    torch.manual_seed(0)
    x, y = torch.randn(200, 8), torch.randn(200, 1)
    preparation = pluribus.data.Preparation(target=(1.7e6, 30.0))
    ensemble = pluribus.ensemble(mlp(outputs=1), DeepEnsemble(members=3), task="regression", example=x[:2], **beside).eval()
    p = ensemble.predict(x).rescale(30.0, 1.7e6)
    rules = pluribus.decisions.fit_regression_rules(p, y * 30 + 1.7e6, 0.8)
    written = pluribus.export(ensemble, tmp_path / "model.onnx", example=x, preparation=preparation, rules=rules)
    found, expected = read(written)(x), rules.decide(p)
    parts = ("quantiles",) if "quantiles" in beside else ("noise",)
    assert written.outputs == ("mean", "variance", "spread", "members", *parts, "interval")
    torch.testing.assert_close(found["spread"], expected.spread, rtol=0, atol=1e-3)
    if "noise" in written.outputs:
        torch.testing.assert_close(found["noise"], expected.noise, rtol=0, atol=1e-3)
    torch.testing.assert_close(found["mean"], p.mean, rtol=0, atol=1e-3)
    if "quantiles" in beside:
        torch.testing.assert_close(found["quantiles"], p.quantiles.movedim(0, 1), rtol=0, atol=1e-3)
    torch.testing.assert_close(found["variance"], p.variance, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(found["interval"], torch.stack([expected.low, expected.high], 1), rtol=0, atol=1e-3)


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, left, right):
        return self.b(torch.relu(self.a(left) - self.a(right)))


def test_several_inputs_keep_their_names(tmp_path):
    x = {"left": torch.randn(5, 4), "right": torch.randn(5, 4)}
    ensemble = build(BatchEnsemble(members=2), TwoInputs(), x)
    written = pluribus.export(ensemble, tmp_path / "model.onnx")
    assert written.inputs == ("left", "right")
    torch.testing.assert_close(read(written)(*x.values())["probs"], ensemble.predict(x).probs, rtol=0, atol=1e-5)


def test_a_file_that_answers_differently_is_not_kept(tmp_path, monkeypatch):
    write = api.WRITERS["torch"]

    def write_others(program, *rest):
        program.network = build(Single(), mlp(), torch.zeros(2, 8)).fold()
        for parameter in program.network.parameters():
            nn.init.constant_(parameter, 0.01)
        write(program, *rest)

    monkeypatch.setitem(api.WRITERS, "torch", write_others)
    (tmp_path / "model.pt2").write_text("the old one")
    with pytest.raises(ExportError, match=r"differs from the ensemble by .* in probs, on 1 rows: it was not kept"):
        pluribus.export(build(Single(), mlp(), torch.zeros(2, 8)), tmp_path / "model.pt2", example=torch.randn(3, 8))
    assert (tmp_path / "model.pt2").read_text() == "the old one"
    assert [place.name for place in tmp_path.iterdir()] == ["model.pt2"]


class LooksAtNumbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 3)

    def forward(self, x):
        return self.a(x) if float(x.sum()) > 0 else self.a(-x)


def test_a_network_that_cannot_be_traced_is_explained(tmp_path):
    ensemble = build(Single(), LooksAtNumbers(), torch.ones(2, 8))
    with pytest.raises(ExportError, match="must not depend on the numbers in a tensor"):
        pluribus.export(ensemble, tmp_path / "model.pt2", example=torch.ones(2, 8))
    assert not list(tmp_path.iterdir())


def test_wrong_arguments_are_named(tmp_path):
    ensemble = build(Single(), mlp(), torch.zeros(2, 8))
    with pytest.raises(ValueError, match=r"must end in .onnx or .pt2, or format= say onnx or torch: got 'a.bin'"):
        pluribus.export(ensemble, tmp_path / "a.bin")
    with pytest.raises(ValueError, match="draws no samples"):
        pluribus.export(ensemble, tmp_path / "a.pt2", samples=3)
    with pytest.raises(ValueError, match="at least one row"):
        pluribus.export(ensemble, tmp_path / "a.pt2", example=torch.zeros(0, 8))
    with pytest.raises(ValueError, match="pass example=x"):
        pluribus.export(ensemble, tmp_path / "a.pt2", preparation=pluribus.data.Preparation())
    with pytest.raises(TypeError, match="export takes an ensemble"):
        pluribus.export(mlp(), tmp_path / "a.pt2")


def test_an_alarm_that_needs_training_rows_is_refused(tmp_path):
    rules = pluribus.decisions.ClassificationRules(rows=9, false_alarms=0.1, alarm_score="distance", alarm_threshold=1.0)
    with pytest.raises(Unsupported, match="--alarm entropy"):
        pluribus.export(build(Single(), mlp(), torch.zeros(2, 8)), tmp_path / "a.pt2", rules=rules)
