"""The metrics of classifications, compared with other libraries or with plain loops, on cases that hypothesis draws."""

import itertools
import math
from bisect import bisect_left
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.metrics import accuracy_score, brier_score_loss, roc_auc_score, roc_curve
from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

from pluribus import Predictive
from pluribus.metrics import accuracy, ece, nll
from pluribus.metrics.calibration import adaptive_ece, apply_temperature, brier, classwise_ece, fit_temperature
from pluribus.metrics.ood_detection import auroc, fpr95, uncertainty
from pluribus.metrics.selective import accuracy_at_coverage, aurc, risk_coverage

from .strategies import (
    Stated,
    classifications,
    compute_exact_probabilities,
    draw_normal,
    draw_ties,
    flat,
    large_classifications,
    near,
    repeatable,
    scores,
)

CERTAIN = Predictive(torch.tensor([[[0.0, -torch.inf], [0.0, -torch.inf]]]))


# --- probabilities ------------------------------------------------------------------------------------------------------


@repeatable
@given(classifications())
def test_probabilities_and_entropies_are_those_of_the_averaged_members(case):
    p, _ = case
    members, rows = compute_exact_probabilities(p)

    def entropy(row):
        return float(-sum(q * q.ln() for q in row if q > 0))

    each = zip(p.probs.movedim(1, -1).flatten(0, -2), p.entropy.flatten(), p.mutual_information.flatten(), strict=True)
    for index, (probs, total, mutual) in enumerate(each):
        assert probs.tolist() == [near(q, p) for q in rows[index]]
        assert total.item() == near(entropy(rows[index]), p)
        own = sum(entropy(member[index]) for member in members) / len(members)
        assert mutual.item() == near(entropy(rows[index]) - own, p)
    assert all(uncertainty(p, by).isfinite().all() for by in ("confidence", "entropy", "mutual-information"))


@repeatable
@given(classifications())
@example((CERTAIN, torch.tensor([0, 0])))
@example((CERTAIN, torch.tensor([1, 0])))
def test_nll_is_minus_the_log_of_the_averaged_probability_and_infinite_where_that_is_zero(case):
    p, targets = case
    own = [row[target] for row, target in zip(compute_exact_probabilities(p)[1], targets.flatten().tolist(), strict=True)]
    logs = [float(-q.ln()) if q > 0 else math.inf for q in own]
    assert nll(p, targets) == near(sum(logs) / len(logs), p)
    assert p.nll(targets).shape == p.labels.shape


@repeatable
@given(classifications())
def test_accuracy_is_the_share_of_rows_whose_target_is_most_probable(case):
    """Where two classes are equally probable, rounding may choose either."""
    p, targets = case
    truth, found = targets.flatten().tolist(), p.labels.flatten().tolist()
    assert accuracy(p, targets) == pytest.approx(accuracy_score(truth, found))
    for label, row in zip(found, compute_exact_probabilities(p)[1], strict=True):
        assert float(max(row) - row[label]) <= 1e-6


@repeatable
@given(classifications())
@example((CERTAIN, torch.tensor([1, 0])))
def test_brier_is_the_squared_distance_from_the_truth_and_of_two_classes_twice_scikit_learns(case):
    p, targets = case
    truth = targets.flatten().tolist()
    pairs = zip(compute_exact_probabilities(p)[1], truth, strict=True)
    by_hand = [sum((q - (c == y)) ** 2 for c, q in enumerate(row)) for row, y in pairs]
    assert brier(p, targets) == near(sum(by_hand) / len(by_hand), p)
    probs, y, *_ = flat(p, targets)
    if probs.shape[1] == 2:
        theirs = brier_score_loss(y, probs[:, 1].clip(0, 1), pos_label=1)
        assert brier(p, targets) == near(2 * theirs, p)


# --- calibration --------------------------------------------------------------------------------------------------------


def gap(confidence, right, bins):
    """Σ_b |Σ right − Σ confidence| / n, bin b = (b/bins, (b+1)/bins]; a zero is in the first."""
    edges, sums = [(b + 1) / bins for b in range(bins)], [0.0] * bins
    for c, r in zip(confidence, right, strict=True):
        assume(c in edges or min(abs(c - edge) for edge in edges) > 1e-12)  # a bit beside an edge, rounding may choose
        sums[min(bisect_left(edges, c), bins - 1)] += float(r) - c
    return sum(map(abs, sums)) / len(confidence)


@repeatable
@given(classifications(), st.sampled_from([1, 2, 10, 15]))
def test_ece_agrees_with_bins_filled_one_by_one(case, bins):
    p, targets = case
    _, _, confidence, right = flat(p, targets)
    assert ece(p, targets, bins) == pytest.approx(gap(confidence.tolist(), right, bins), abs=1e-12)


@repeatable
@given(st.lists(st.tuples(st.one_of(st.integers(1, 15).map(lambda k: k / 15), st.floats(0.06, 1)), st.booleans()), min_size=1))
def test_a_confidence_on_an_edge_is_in_the_lower_bin_where_torchmetrics_has_it_in_the_upper(rows):
    """Theirs are [b, b + 1), in single precision, and 1 is a bin of its own: a little less has them fill the bins as we do."""
    assume(all(c * 15 == round(c * 15) or abs(c * 15 - round(c * 15)) > 1e-4 for c, _ in rows))
    probs = torch.tensor([[c] + [(1 - c) / 19] * 19 for c, _ in rows], dtype=torch.double)
    targets = torch.tensor([0 if right else 1 for _, right in rows])
    theirs = multiclass_calibration_error((probs - 1e-6).clamp_min(0), targets, 20, n_bins=15, norm="l1").item()
    assert ece(Stated(probs.unsqueeze(0)), targets) == pytest.approx(theirs, abs=1e-5)


def off_edges(values, bins=15):
    """torchmetrics has other conventions there."""
    return (values * bins - (values * bins).round()).abs() > 1e-5


@repeatable
@given(large_classifications())
def test_off_the_edges_ece_and_classwise_ece_are_those_of_torchmetrics(case):
    p, targets = case
    keep = off_edges(p.probs).all(1)
    assume(keep.any())
    p, targets = Predictive(p.outputs[:, keep]), targets[keep]
    classes = p.probs.shape[1]
    probs = p.probs.double()
    theirs = multiclass_calibration_error(probs, targets, classes, n_bins=15, norm="l1")
    assert ece(p, targets) == pytest.approx(theirs.item(), abs=1e-6)
    columns = enumerate(probs.T.contiguous())
    each = [binary_calibration_error(column, (targets == c).long(), n_bins=15, norm="l1") for c, column in columns]
    assert classwise_ece(p, targets) == pytest.approx(torch.stack(each).mean().item(), abs=1e-6)


@repeatable
@given(classifications(), st.sampled_from([1, 2, 10, 15]))
def test_classwise_ece_agrees_with_bins_filled_class_by_class(case, bins):
    p, targets = case
    probs, truth, *_ = flat(p, targets)
    gaps = [gap(column.tolist(), truth == c, bins) for c, column in enumerate(probs.T)]
    assert classwise_ece(p, targets, bins) == pytest.approx(sum(gaps) / len(gaps), abs=1e-12)


@repeatable
@given(st.one_of(classifications(), large_classifications()), st.integers(1, 20))
def test_adaptive_ece_agrees_with_rows_dealt_to_bins_one_by_one(case, bins):
    """Row i of n, from the least sure, is in bin b for b·n ≤ i·bins < (b+1)·n, and as right as its tie is on average."""
    p, targets = case
    _, _, confidence, right = flat(p, targets)
    order, gaps = sorted(range(len(right)), key=lambda row: confidence[row]), [0.0] * bins
    for place, row in enumerate(order):
        bin = next(b for b in range(bins) if b * len(right) <= place * bins < (b + 1) * len(right))
        gaps[bin] += right[confidence == confidence[row]].mean() - confidence[row]
    assert adaptive_ece(p, targets, bins) == pytest.approx(sum(map(abs, gaps)) / len(right), abs=1e-12)


@repeatable
@given(st.one_of(classifications(), large_classifications()), st.randoms(use_true_random=False))
def test_no_metric_depends_on_the_order_of_the_rows(case, random):
    p, targets = case
    order = random.sample(range(len(p)), len(p))
    shuffled = Predictive(p.outputs[:, order]), targets[order]
    for metric in (accuracy, nll, brier, ece, adaptive_ece, classwise_ece, aurc, accuracy_at_coverage):
        assert metric(*shuffled) == pytest.approx(metric(p, targets), abs=1e-12), metric.__name__


# --- temperature --------------------------------------------------------------------------------------------------------


@repeatable
@given(classifications(), st.sampled_from([0.25, 1.0, 3.0]))
def test_tempered_probabilities_are_powers(case, heat):
    p, _ = case
    found = apply_temperature(p, heat).probs.movedim(1, -1).flatten(0, -2)
    for probs, row in zip(found, compute_exact_probabilities(p)[1], strict=True):
        powers = [(q.ln() / Decimal(heat)).exp() if q > 0 else Decimal(0) for q in row]
        assert probs.tolist() == [near(q / sum(powers), p, scale=10) for q in powers]


@repeatable
@given(st.one_of(classifications(), large_classifications()))
def test_the_temperature_is_as_good_as_scipys(case):
    """In log T between −3 and 3. Rows whose target is impossible are so at every temperature, and have no say."""
    p, targets = case
    _, truth, *_ = flat(p, targets)
    logs = p.log_probs.double().movedim(1, -1).flatten(0, -2).numpy()
    keep = logs[np.arange(len(truth)), truth] > -np.inf
    found = fit_temperature(p, targets, width=math.inf)
    assert math.exp(-3.001) < found < math.exp(3.001)

    def loss(log_t):
        scaled = logs[keep] / math.exp(log_t)
        scaled = scaled - scaled.max(1, keepdims=True)
        own = scaled[np.arange(keep.sum()), truth[keep]]
        return float((np.log(np.exp(scaled).sum(1)) - own).mean()) if keep.any() else 0.0

    grid = np.linspace(-3, 3, 61)
    near_best = grid[np.argmin([loss(t) for t in grid])]
    bounds = (max(near_best - 0.1, -3), min(near_best + 0.1, 3))
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6}).x
    assert loss(math.log(found)) <= loss(best) * (1 + 1e-3) + 1e-9
    if min(loss(best - 0.05), loss(best + 0.05)) > loss(best) + 1e-6 and abs(best) < 2.9:
        assert math.log(found) == pytest.approx(best, abs=1e-3)


def test_rows_that_say_nothing_of_the_temperature_leave_it_at_one():
    right, wrong = torch.tensor([0, 0]), torch.tensor([1, 1])
    assert fit_temperature(CERTAIN, right) == fit_temperature(CERTAIN, wrong) == 1.0
    assert fit_temperature(Predictive(torch.zeros(2, 3, 4)), torch.tensor([0, 1, 2])) == 1.0


# --- selective classification ------------------------------------------------------------------------------------------


@repeatable
@given(classifications(rows=5, kinds=(draw_ties, draw_normal), beyond=((),)))
def test_the_risk_is_the_mean_over_all_orders_that_put_the_surer_first(case):
    p, targets = case
    _, _, confidence, right = flat(p, targets)
    curves = []
    for order in itertools.permutations(range(len(right))):
        if all(confidence[a] >= confidence[b] for a, b in itertools.pairwise(order)):
            curves.append(np.cumsum(~right[list(order)]) / np.arange(1, len(right) + 1))
    covered, risk = risk_coverage(p, targets)
    assert covered.tolist() == pytest.approx([(n + 1) / len(right) for n in range(len(right))])
    assert risk.tolist() == pytest.approx(np.mean(curves, axis=0).tolist(), abs=1e-12)
    assert aurc(p, targets) == pytest.approx(np.mean(curves), abs=1e-12)


@repeatable
@given(st.one_of(classifications(), large_classifications()), st.data())
def test_accuracy_at_a_coverage_is_that_of_the_surest_rows(case, data):
    p, targets = case
    _, _, confidence, right = flat(p, targets)
    count = data.draw(st.integers(1, len(right)))
    even = [right[confidence == c].mean() for c in sorted(confidence, reverse=True)]
    assert accuracy_at_coverage(p, targets, count / len(right)) == pytest.approx(np.mean(even[:count]), abs=1e-12)
    assert accuracy_at_coverage(p, targets, 1e-9) == pytest.approx(even[0], abs=1e-12)
    assert accuracy_at_coverage(p, targets, 1.0) == pytest.approx(accuracy(p, targets), abs=1e-12)


# --- out-of-distribution detection ------------------------------------------------------------------------------------------


def labelled(inside, outside):
    return np.r_[np.zeros(len(inside)), np.ones(len(outside))], np.r_[inside.double().numpy(), outside.double().numpy()]


@repeatable
@given(scores(), scores())
def test_auroc_is_the_share_of_pairs_in_order_and_scikit_learns(inside, outside):
    pairs = [(b > a) + (b == a) / 2 for a in inside.tolist() for b in outside.tolist()]
    assert auroc(inside, outside) == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)
    truth, values = labelled(inside, outside)
    if np.isfinite(values).all():
        assert auroc(inside, outside) == pytest.approx(roc_auc_score(truth, values), abs=1e-12)


@repeatable
@given(scores(), scores())
def test_fpr95_is_the_least_share_of_in_distribution_rows_over_all_thresholds_that_find_95_percent(inside, outside):
    mine, them = inside.tolist(), outside.tolist()
    enough = [t for t in them if 100 * sum(s >= t for s in them) >= 95 * len(them)]
    least = min(sum(s >= t for s in mine) for t in enough) / len(mine)
    assert fpr95(inside, outside) == pytest.approx(least, abs=1e-12)
    truth, values = labelled(inside, outside)
    if np.isfinite(values).all():
        false, true, _ = roc_curve(truth, values, drop_intermediate=False)
        assert fpr95(inside, outside) == pytest.approx(
            false[(true * len(them)).round() * 100 >= 95 * len(them)].min(), abs=1e-12
        )


def test_fpr95_rejects_the_fewest_that_are_95_percent():
    for count in range(1, 201):
        outside, fewest = torch.arange(count), next(n for n in range(count + 1) if 100 * n >= 95 * count)
        assert fpr95(torch.tensor([count - fewest - 0.5]), outside) == 0, f"below the last of {count} that must be rejected"
        assert fpr95(torch.tensor([count - fewest]), outside) == 1
