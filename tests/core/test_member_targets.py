"""Soft targets, and targets of each member's own, through every way of dealing."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pluribus
from pluribus import BatchEnsemble, DeepEnsemble, MemberTargets, Single
from pluribus.core.losses import compute_loss, compute_probabilities
from tests.contract_rows import METHODS
from tests.networks import NestedMLP

ROWS, CLASSES = 12, 3


def make_batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, 12, generator=generator, dtype=torch.double)
    return x, torch.randint(CLASSES, (ROWS,), generator=generator)


def compute_with_seed(ensemble, x, y, **options):
    torch.manual_seed(7)  # of shuffles and noise
    return ensemble.loss(x, y, examples=100, **options)


@pytest.mark.parametrize("name", METHODS)
def test_one_hot_targets_have_the_loss_of_labels(name):
    x, y = make_batch()
    ensemble = pluribus.ensemble(NestedMLP().double(), METHODS[name].spec)
    hot = F.one_hot(y, CLASSES).double()
    expected = compute_with_seed(ensemble, x, y)
    torch.testing.assert_close(compute_with_seed(ensemble, x, hot), expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(compute_with_seed(ensemble, x, MemberTargets(hot.unsqueeze(1))), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", METHODS)
def test_rows_keep_the_targets_of_each_member_however_they_are_dealt(name):
    """Row i is the number i, and its target for member m is 10 i + m."""
    ensemble = pluribus.ensemble(NestedMLP(), METHODS[name].spec)
    rows = torch.arange(ROWS)
    each = 10 * rows.unsqueeze(1) + torch.arange(2)
    views, targets = MemberTargets(each).deal(ensemble, rows)
    for member in range(ensemble.members):
        if not isinstance(views, pluribus.Views):
            own = rows
        elif isinstance(views.batch, tuple):  # of a deep ensemble, part by part
            own = torch.cat([part.batch for part in views.batch])[member]
        else:
            own = views.batch[member]
        assert torch.equal(targets[member], 10 * own + member % 2)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_of_soft_targets_is_that_by_hand(smoothing):
    """∂/∂z of −Σ_c t_c log softmax(z)_c is softmax(z) − t, over the number of rows."""
    output = torch.randn(ROWS, CLASSES, dtype=torch.double, requires_grad=True)
    target = torch.randn(ROWS, CLASSES, dtype=torch.double).softmax(1)
    compute_loss("classification", output, target, smoothing).backward()
    smooth = (1 - smoothing) * target + smoothing / CLASSES
    torch.testing.assert_close(output.grad, (output.detach().softmax(1) - smooth) / ROWS)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_one_logit_has_the_loss_of_two_classes(smoothing):
    """A logit z is the pair (0, z)."""
    z, y = torch.randn(ROWS, 1, dtype=torch.double), torch.randint(2, (ROWS,))
    pair = torch.cat([torch.zeros_like(z), z], 1)
    for one, two in ((y, y), (y * 0.7 + 0.1, torch.stack([0.9 - y * 0.7, y * 0.7 + 0.1], 1))):
        found = compute_loss("classification", z, one, smoothing)
        torch.testing.assert_close(found, compute_loss("classification", pair, two, smoothing), rtol=1e-6, atol=1e-7)


def test_each_member_is_pulled_towards_its_own_target():
    """The gradient of member m's bias is the mean over rows of softmax − its own target."""
    net = nn.Linear(4, CLASSES).double()
    for spec, members in ((DeepEnsemble(members=3), 3), (BatchEnsemble(members=3), 3)):
        ensemble = pluribus.ensemble(net, spec)
        x, own = torch.randn(ROWS, 4, dtype=torch.double), torch.randn(ROWS, 2, CLASSES, dtype=torch.double).softmax(2)
        outputs = ensemble(x)
        outputs.retain_grad()
        _, targets = MemberTargets(own).deal(ensemble, x)
        ensemble.objective(outputs, targets).backward()
        expected = torch.stack([outputs[m].detach().softmax(1) - own[:, m % 2] for m in range(members)]) / ROWS
        torch.testing.assert_close(outputs.grad, expected / (1 if ensemble.reduction == "sum" else members))


def test_targets_of_a_regression_may_be_each_members_own():
    ensemble = pluribus.ensemble(nn.Linear(4, 1).double(), DeepEnsemble(members=2), task="regression")
    x, own = torch.randn(ROWS, 4, dtype=torch.double), torch.randn(ROWS, 2, dtype=torch.double)
    outputs = ensemble(x)
    expected = sum(F.mse_loss(outputs[m, :, 0], own[:, m]) for m in range(2))
    torch.testing.assert_close(ensemble.loss(x, MemberTargets(own)), expected)


def test_labels_of_places_become_probabilities_on_the_axis_after_the_batch():
    labels = torch.randint(CLASSES, (2, 4, 5))
    found = compute_probabilities(labels, CLASSES)
    assert found.shape == (2, CLASSES, 4, 5)
    assert torch.equal(found.argmax(1), labels)
    output = torch.randn(2, CLASSES, 4, 5)
    torch.testing.assert_close(
        compute_loss("classification", output, found), compute_loss("classification", output, labels), rtol=1e-6, atol=1e-6
    )


def test_wrong_shapes_are_explained():
    ensemble = pluribus.ensemble(nn.Linear(4, CLASSES), Single())
    x = torch.randn(ROWS, 4)
    with pytest.raises(ValueError, match=r"probabilities in the shape of the outputs, \[12, 3\], got \[12, 2\]"):
        ensemble.loss(x, torch.rand(ROWS, 2))
    with pytest.raises(ValueError, match="labels must be whole numbers"):
        ensemble.loss(x, torch.rand(ROWS))
    with pytest.raises(ValueError, match=r"must be \[rows, members, …\], got the shape \[12\]"):
        MemberTargets(torch.rand(ROWS))
    with pytest.raises(ValueError, match="a target for each of 12 rows"):
        ensemble.loss(x, MemberTargets(torch.rand(5, 1, CLASSES)))
