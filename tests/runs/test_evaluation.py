"""What a run is judged by: each side on a small case whose answer is known."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import pluribus
from pluribus.core.modes import evaluation_mode
from pluribus.data import Part, load
from pluribus.metrics import calibration
from pluribus.runs.config import ConfigError
from pluribus.runs.evaluation import build_evaluation_settings, evaluate_case
from pluribus.runs.evaluation_case import EvaluationCase
from pluribus.runs.robustness import (
    detect_out_of_distribution,
    load_out_of_distribution,
    measure_attack,
    measure_shift,
    parse_attack,
)


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def case(digits, spec=None, rows=60):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    ensemble = pluribus.ensemble(net, spec or pluribus.DeepEnsemble(members=2), example=torch.zeros(2, 1, 8, 8))
    x, y = digits.preparation(digits.train.x), digits.train.y
    optimizer = torch.optim.Adam(ensemble.param_groups(), 1e-2)
    for _ in range(30):
        loss = ensemble.loss(x, y, examples=len(y))
        optimizer.zero_grad(), loss.backward(), optimizer.step()
    return EvaluationCase(ensemble.eval(), digits, digits.test.take_rows(torch.arange(rows)))


def aside(digits):
    return digits.train.take_rows(torch.arange(200))


def test_the_temperature_is_that_of_the_validation_rows_and_reported_apart(digits):
    one = case(digits)
    told, _ = evaluate_case(one, aside(digits), build_evaluation_settings())
    p = one.ensemble.predict(digits.preparation(aside(digits).x))
    assert told["tempered"]["temperature"] == pytest.approx(calibration.fit_temperature(p, aside(digits).y), rel=1e-3)
    own = one.ensemble.predict(digits.preparation(one.part.x))
    assert told["scores"]["nll"] == pytest.approx(pluribus.metrics.nll(own, one.part.y), rel=1e-5)
    cooled = calibration.apply_temperature(own, told["tempered"]["temperature"])
    assert told["tempered"]["nll"] == pytest.approx(pluribus.metrics.nll(cooled, one.part.y), rel=1e-5)


def test_without_validation_rows_or_when_told_not_to_there_is_no_temperature(digits):
    assert evaluate_case(case(digits), None, build_evaluation_settings())[0]["tempered"] is None
    assert evaluate_case(case(digits), aside(digits), build_evaluation_settings(temperature=False))[0]["tempered"] is None


def test_shift_means_are_over_the_fifteen_standard_kinds_and_five_severities(digits):
    one = case(digits)
    found = measure_shift(one, rows=30, extra=True)
    assert len(found["kinds"]) == 19
    standard = [found["kinds"][kind] for kind in list(found["kinds"])[:15]]
    assert found["cacc"] == pytest.approx(sum(sum(kind["accuracy"]) for kind in standard) / 75)
    assert found["cnll"] == pytest.approx(sum(sum(kind["nll"]) for kind in standard) / 75)
    assert found["clean"] == one.tally_scores(one.sample_rows(30)).scores()
    assert found["cacc"] < found["clean"]["accuracy"]


def test_rows_to_corrupt_are_the_same_for_every_run_and_not_the_first(digits):
    one = case(digits)
    assert torch.equal(one.sample_rows(10).x, case(digits, pluribus.Single()).sample_rows(10).x)
    assert not torch.equal(one.sample_rows(10).x, one.part.x[:10])
    assert one.sample_rows(1000) is one.part


def test_out_of_distribution_rows_are_detected_better_than_by_chance_and_test_rows_by_chance(digits):
    one = case(digits)
    _, kept = evaluate_case(one, None, build_evaluation_settings())
    found = detect_out_of_distribution(one, kept, "noise", None)
    assert found["auroc"]["entropy"] > 0.7
    assert set(found["auroc"]) == set(found["fpr95"]) == {"confidence", "entropy", "mutual-information"}
    assert detect_out_of_distribution(one, kept, "digits", None)["auroc"]["confidence"] == pytest.approx(0.5, abs=0.15)


def test_one_member_has_no_mutual_information_to_judge_by(digits):
    one = case(digits, pluribus.Single())
    _, kept = evaluate_case(one, None, build_evaluation_settings())
    assert "mutual-information" not in detect_out_of_distribution(one, kept, "noise", None)["auroc"]


def test_shuffled_images_keep_their_pixels_and_lose_their_places(digits):
    one = case(digits)
    rows, _ = load_out_of_distribution(one, "shuffled", None)
    assert torch.equal(rows.flatten(1).sort().values, one.part.x.flatten(1).sort().values)
    assert not torch.equal(rows, one.part.x)


def test_an_out_of_distribution_set_of_another_size_is_resized_and_it_is_said(digits, tmp_path):
    import numpy as np

    np.savez(tmp_path / "other.npz", x=np.full((4, 3, 20, 20), 90, np.uint8), y=np.array([0, 1, 0, 1]))
    rows, how = load_out_of_distribution(case(digits), str(tmp_path / "other.npz"), None)
    assert rows.shape[1:] == (1, 8, 8)
    assert torch.equal(rows, torch.full_like(rows, 90))
    assert how == "resized from 3×20×20"


def test_another_table_is_encoded_as_ones_own_before_it_is_told_apart(tmp_path):
    """By its own mean and spread, a table far away would look just like home."""
    rows = torch.randn(80, 2)
    for name, moved in (("own", rows), ("far", 50 * rows + 1000)):
        lines = [f"{a:.4f},{b:.4f},{'x' if a > 0 else 'y'}" for a, b in moved.tolist()]
        (tmp_path / f"{name}.csv").write_text("a,b,label\n" + "\n".join(lines) + "\n")
    data = load(str(tmp_path / "own.csv"))
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    one = EvaluationCase(pluribus.ensemble(net, pluribus.Single(), example=torch.zeros(2, 2)).eval(), data, data.test)
    others, how = load_out_of_distribution(one, str(tmp_path / "far.csv"), None)
    assert others.mean() > 100
    assert how == "encoded alike"


def test_an_attack_in_pixels_stays_within_epsilon_and_succeeds_more_with_a_larger_one(digits):
    one = case(digits)
    small, large = (measure_attack(one, {"name": "linf", "epsilon": e}, 40) for e in (0.02, 0.3))
    assert large["final"] > small["final"]
    assert len(large["success"]) == 11
    assert large["one_sample"] is None  # its members are no draws
    assert large["title"] == "PGD, L∞, ε = 0.3, 10 steps"


def test_a_method_that_draws_is_attacked_through_one_draw_too(digits):
    found = measure_attack(case(digits, pluribus.MCDropout(rate=0.3, samples=5)), {"name": "fgsm"}, 20)
    assert found["one_sample"]["entropy"] != found["entropy"]
    assert len(found["success"]) == 2


def test_the_least_sure_rows_come_first_with_their_pictures(digits):
    one = case(digits)
    told, kept = evaluate_case(one, None, build_evaluation_settings())
    confidences = [each["confidence"] for each in told["unsure"]]
    assert confidences == sorted(confidences)
    assert confidences[0] == pytest.approx(kept["confidence"].min().item())
    assert told["unsure"][0]["image"].startswith("data:image/png;base64,")
    row = int(kept["confidence"].argmin())
    assert told["unsure"][0]["truth"] == digits.classes[int(one.part.y[row])]


def test_judging_is_a_function_of_the_seed(digits):
    one = case(digits, pluribus.MCDropout(rate=0.3, samples=4))
    first, again = (one.tally_scores().scores() for _ in range(2))
    assert first == again
    assert replace(one, seed=1).tally_scores().scores() != first
    with evaluation_mode(one.ensemble):
        assert one.members == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attack": "pgd"}, "there is no attack 'pgd'"),
        ({"corruptions": "some"}, "corruptions"),
        ({"shift_rows": 0}, "shift_rows"),
    ],
)
def test_what_cannot_be_asked_for_is_said(options, message):
    with pytest.raises(ConfigError, match=message):
        build_evaluation_settings(**options)


def test_what_the_data_cannot_give_is_said_before_anything_begins(digits):
    table = load("four-gaussians")
    for options in ({"corruptions": "standard"}, {"attack": "linf"}, {"ood": ("noise",)}, {"ood": ("mnist",)}):
        with pytest.raises(ConfigError, match="four-gaussians"):
            build_evaluation_settings(**options).check(table)
    with pytest.raises(ConfigError, match="regression"):
        build_evaluation_settings(ood=("digits",)).check(load("blundell"))
    with pytest.raises(ConfigError, match="linf has no option 'eps'"):
        parse_attack({"name": "linf", "eps": 1}, digits)


def test_a_regression_is_judged_with_the_noise_of_its_validation_rows():
    data, net = load("blundell"), nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1))
    ensemble = pluribus.ensemble(net, pluribus.DeepEnsemble(members=2), task="regression", example=torch.zeros(2, 1))
    told, _ = evaluate_case(
        EvaluationCase(ensemble.eval(), data, Part(data.test.x[:50], data.test.y[:50])), data.train, build_evaluation_settings()
    )
    assert told["noise"] > 0
    unknown, _ = evaluate_case(EvaluationCase(ensemble.eval(), data, data.test), None, build_evaluation_settings())
    assert unknown["noise"] is None
    assert set(unknown["scores"]) == {"rmse"}  # without noise, one sure member would have an NLL of billions
    assert {"rmse", "nll", "crps", "coverage_95"} <= set(told["scores"])
    assert told["diversity"]["error"] == pytest.approx(told["diversity"]["bias"] + told["diversity"]["variance"], rel=1e-4)
