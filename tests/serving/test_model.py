"""A served file answers with the keys, words and numbers of `pluribus predict`; what answers otherwise is refused."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus.core.errors import FileError
from pluribus.data import Preparation
from pluribus.decisions import fit_regression_rules
from pluribus.runs.prediction import format_decisions, format_predictions
from pluribus.runs.row_answers import NO_ANSWER, join_answer
from pluribus.serving.metrics import name_outcome
from pluribus.serving.model import open_model

from .files import CLASSES, build_classifier, draw_images, export_classifier


def predict(ensemble, x, classes=(), preparation=None, rules=None):
    """What `pluribus predict` says about prepared rows."""
    preparation = preparation or Preparation()
    p = ensemble.predict(x)
    answers = format_predictions(ensemble, p, classes, preparation)
    decided = list(format_decisions(rules, p, classes, preparation)) or [{}] * len(p)
    return [join_answer(*each) for each in zip(answers, decided, strict=True)]


def check_same(found, expected, unit=1.0):
    """The same keys in the same order, the same words, and numbers to 1e-5 of their unit."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert list(ours) == list(theirs)
        for key, value in theirs.items():
            if isinstance(value, dict):
                check_same([ours[key]], [value], unit)
            elif isinstance(value, float):
                assert abs(ours[key] - value) <= 1e-5 * unit, key
            else:
                assert ours[key] == value, key


@pytest.mark.parametrize("ending", ["onnx", "pt2"])
def test_classes_are_answered_as_predict_does(ending, tmp_path):
    ensemble, preparation = export_classifier(tmp_path / f"model.{ending}")
    model = open_model(tmp_path / f"model.{ending}", trust=True, threads=1)
    x = draw_images(20, seed=1)
    assert model.takes_images
    check_same(model.answer([x]), predict(ensemble, preparation(x), CLASSES))


@pytest.mark.parametrize("ending", ["onnx", "pt2"])
def test_a_row_is_answered_the_same_whatever_rows_are_beside_it(ending, tmp_path):
    """To rounding, and with large and not finite neighbours, too."""
    torch.manual_seed(0)
    x = torch.randn(64, 1, 4, 4)
    ensemble = build_classifier()
    pluribus.export(ensemble, tmp_path / f"model.{ending}", example=x[:4], classes=CLASSES)
    model = open_model(tmp_path / f"model.{ending}", trust=True, threads=1)
    alone = [answer for row in x.split(1) for answer in model.answer([row])]
    check_same(model.answer([x]), alone)
    beside = torch.full((1, 1, 4, 4), 3e38)
    check_same(model.answer([torch.cat([beside, x[:6], -beside])])[1:7], alone[:6])


def test_rules_answer_in_the_same_words(tmp_path):
    torch.manual_seed(0)
    ensemble = build_classifier()
    x, y = torch.randn(300, 1, 4, 4), torch.randint(0, 3, (300,))
    calibrated = pluribus.calibrate(ensemble, x, y, coverage=0.7, risk=0.7, false_alarms=0.3)
    pluribus.export(calibrated, tmp_path / "model.pt2", example=x[:4], classes=CLASSES)
    found = open_model(tmp_path / "model.pt2", trust=True).answer([fresh := torch.randn(60, 1, 4, 4)])
    check_same(found, predict(ensemble, fresh, CLASSES, rules=calibrated.rules))
    assert {"answer", "set", "answered", "foreign"} < set(found[0])
    assert {name_outcome(answer) for answer in found} >= {"several", "foreign"}


@pytest.mark.parametrize("beside", [{}, {"noise": "gaussian"}, {"quantiles": (0.1, 0.9)}])
@pytest.mark.parametrize("has_rules", [False, True])
def test_values_are_answered_as_predict_does(beside, has_rules, tmp_path):
    torch.manual_seed(0)
    x, y, target = torch.randn(99, 4), torch.randn(99, 1), (1.7e6, 30.0)
    preparation = Preparation(target=target)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    ensemble = pluribus.ensemble(net, pluribus.DeepEnsemble(members=3), task="regression", example=x, **beside).eval()
    scaled = ensemble.predict(x).rescale(target[1], target[0])
    rules = fit_regression_rules(scaled, y * target[1] + target[0], 0.8) if has_rules else None
    pluribus.export(ensemble, tmp_path / "model.pt2", example=x, preparation=preparation, rules=rules)
    found = open_model(tmp_path / "model.pt2", trust=True).answer([x])
    check_same(found, predict(ensemble, x, preparation=preparation, rules=rules), unit=target[1])
    assert ("low" in found[0]) == has_rules


def test_an_answer_that_is_not_finite_is_no_label(tmp_path):
    net = nn.Linear(4, 3)
    nn.init.constant_(net.weight, 10.0)
    ensemble = pluribus.ensemble(net, pluribus.Single()).eval()
    pluribus.export(ensemble, tmp_path / "model.pt2", example=torch.randn(4, 4))
    lost, fine = open_model(tmp_path / "model.pt2", trust=True).answer([torch.tensor([[3e38] * 4, [0.0] * 4])])
    assert lost["label"] is None
    assert lost["error"] == NO_ANSWER
    assert fine["label"] in ("0", "1", "2")  # without names, classes are called by their numbers
    assert (name_outcome(lost), name_outcome(fine)) == ("not finite", "answered")


@pytest.mark.parametrize(
    ("net", "task", "classes"),
    [
        (nn.Linear(4, 2), "regression", ()),
        (nn.Sequential(nn.Linear(4, 12), nn.Unflatten(1, (3, 4))), "classification", ()),
        (nn.Linear(4, 3), "classification", ("a", "b")),
    ],
    ids=["two targets", "a label for each of four places", "names of other classes"],
)
def test_a_file_that_does_not_answer_one_label_or_value_a_row_is_refused(net, task, classes, tmp_path):
    ensemble = pluribus.ensemble(net, pluribus.DeepEnsemble(members=2), task=task).eval()
    pluribus.export(ensemble, tmp_path / "model.pt2", example=torch.randn(4, 4), classes=classes)
    with pytest.raises(FileError, match="one label, or one value, each"):
        open_model(tmp_path / "model.pt2", trust=True)
