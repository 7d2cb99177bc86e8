"""Members in the space of predictions."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus.analysis import Trajectories


def record_moving_members(steps=6, members=3):
    """Members that start at one point and go apart, each its own way."""
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(nn.Linear(4, 3), pluribus.DeepEnsemble(members=members))
    path = Trajectories(torch.randn(20, 4))
    weights = [parameter for parameter in ensemble.parameters() if parameter.dim() >= 2]
    targets = [parameter.detach().clone() * 5 for parameter in weights]
    for step in range(steps):
        with torch.no_grad():
            for parameter, target in zip(weights, targets, strict=True):
                parameter.copy_(target * step / (steps - 1))
        path.record(ensemble, step)
    return ensemble, path


def test_points_are_the_probabilities_of_the_members():
    ensemble, path = record_moving_members()
    expected = ensemble.eval()(path.x).softmax(-1).flatten(1).double()
    torch.testing.assert_close(path.predictions[-1], expected)
    assert path.steps == list(range(6))


def test_principal_components_keep_the_distances_of_points_in_a_plane():
    path = Trajectories(None)
    torch.manual_seed(0)
    flat = torch.randn(12, 2, dtype=torch.double)
    path._recorded = list((flat @ torch.linalg.qr(torch.randn(30, 2, dtype=torch.double))[0].T).view(4, 3, 30))
    found, share = path.project_linearly()
    assert share == pytest.approx(1.0)
    torch.testing.assert_close(torch.cdist(found.view(12, 2), found.view(12, 2)), torch.cdist(flat, flat))


def test_both_maps_show_members_that_go_apart():
    _, path = record_moving_members(steps=8)
    linear, share = path.project_linearly()
    assert 0 < share <= 1
    near = path.project_by_neighbours(perplexity=5)
    assert near.shape == linear.shape == (8, 3, 2)
    for found in (linear, near):
        spread = (found - found.mean(1, keepdim=True)).norm(dim=-1).mean(1)
        assert spread[-1] > 2 * spread[0]
    assert torch.equal(near, path.project_by_neighbours(perplexity=5)), "the same seed gives the same map"


def test_a_regression_has_its_answers_as_points():
    ensemble = pluribus.ensemble(nn.Linear(4, 1), pluribus.DeepEnsemble(members=2), task="regression")
    path = Trajectories(torch.randn(5, 4))
    path.record(ensemble, 0)
    torch.testing.assert_close(path.predictions[0], ensemble.predict(path.x).members.flatten(1).double())


def test_wrong_use_is_said():
    path = Trajectories(torch.randn(5, 4))
    with pytest.raises(ValueError, match="nothing is recorded"):
        path.predictions  # noqa: B018
    path.record(pluribus.ensemble(nn.Linear(4, 3), pluribus.DeepEnsemble(members=2)), 0)
    with pytest.raises(ValueError, match="2 members before, and now there are 3"):
        path.record(pluribus.ensemble(nn.Linear(4, 3), pluribus.DeepEnsemble(members=3)), 1)
    with pytest.raises(ValueError, match="below the number of points, 2, got 10"):
        path.project_by_neighbours()
