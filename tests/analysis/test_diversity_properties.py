"""How members differ, against loops over pairs and rows with forty digits, on whatever hypothesis draws."""

import itertools
import math
from statistics import mean

import numpy as np
import pytest
import torch
from hypothesis import given

from pluribus import Predictive
from pluribus.analysis import bias_variance, disagreement, error_correlation, normalised_disagreement, pairwise_kl

from ..metrics.strategies import classifications, compute_exact_probabilities, near, regressions, repeatable


def labels_and_targets(p, targets):
    """The members' labels `[M, N]`, and the targets `[N]`."""
    return p.member_log_probs.argmax(2).flatten(1).numpy(), targets.flatten().numpy()


@repeatable
@given(classifications())
def test_disagreement_is_the_share_of_pairs_and_rows_whose_labels_differ(case):
    p, targets = case
    labels, y = labels_and_targets(p, targets)
    differ = mean(float((a != b).mean()) for a, b in itertools.combinations(labels, 2)) if len(labels) > 1 else 0.0
    assert disagreement(p) == pytest.approx(differ, abs=1e-6)
    error = float((labels != y).mean())
    assert normalised_disagreement(p, targets) == pytest.approx(differ / error if error else 0.0, abs=1e-6)
    assert differ <= 2 * error + 1e-12, "who differs from another errs, or the other does"


@repeatable
@given(classifications())
def test_disagreement_by_row_is_that_of_the_rows_pairs(case):
    p, _ = case
    labels = p.member_log_probs.argmax(2)
    pairs = list(itertools.combinations(labels, 2))
    by_row = sum((a != b).double() for a, b in pairs) / len(pairs) if pairs else torch.zeros(labels.shape[1:])
    torch.testing.assert_close(p.disagreement.double(), by_row.double(), atol=1e-6, rtol=0)


@repeatable
@given(classifications())
def test_pairwise_kl_is_that_of_the_pairs_one_by_one_and_infinite_where_one_holds_impossible_what_another_does_not(case):
    p, _ = case
    members, _ = compute_exact_probabilities(p)

    def divergence(a, b):
        pairs = [(x, y) for x, y in zip(a, b, strict=True) if float(x) > 0]  # a double knows nothing below 10⁻³⁰⁸
        return float(sum(x * (x.ln() - y.ln()) for x, y in pairs)) if all(y > 0 for _, y in pairs) else math.inf

    pairs = [divergence(a, b) for one, other in itertools.permutations(members, 2) for a, b in zip(one, other, strict=True)]
    assert pairwise_kl(p) == near(sum(pairs) / len(pairs) if pairs else 0.0, p, scale=10)


@repeatable
@given(classifications(rows=12))
def test_the_correlation_of_errors_is_numpys_over_the_pairs(case):
    p, targets = case
    labels, y = labels_and_targets(p, targets)
    wrong = (labels != y).astype(float)

    def correlation(a, b):
        return float(np.corrcoef(a, b)[0, 1]) if np.ptp(a) and np.ptp(b) else 0.0

    expected = mean(correlation(a, b) for a, b in itertools.combinations(wrong, 2)) if len(wrong) > 1 else 1.0
    assert error_correlation(p, targets) == pytest.approx(expected, abs=1e-12)


@repeatable
@given(regressions())
def test_bias_and_variance_are_those_of_numpy_and_add_up_to_the_error(case):
    p, targets = case
    values, y = p.outputs.double().numpy().reshape(len(p.outputs), -1), targets.double().numpy().flatten()
    split = bias_variance(p, targets)
    assert split.error == pytest.approx(np.mean([(member - y) ** 2 for member in values]), abs=1e-9)
    assert split.variance == pytest.approx(values.var(0).mean(), abs=1e-9)
    assert split.bias == pytest.approx(((values.mean(0) - y) ** 2).mean(), abs=1e-9)
    assert split.error == pytest.approx(split.bias + split.variance, abs=1e-9)


@repeatable
@given(classifications())
def test_no_measure_depends_on_the_order_of_the_members(case):
    p, targets = case
    turned = Predictive(p.outputs.flip(0))
    for measure in (disagreement, pairwise_kl):
        assert measure(turned) == pytest.approx(measure(p), abs=1e-12), measure.__name__
    for measure in (normalised_disagreement, error_correlation):
        assert measure(turned, targets) == pytest.approx(measure(p, targets), abs=1e-12), measure.__name__
