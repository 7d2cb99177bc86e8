import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss

from pluribus import Predictive
from pluribus.metrics import accuracy, ece, nll


@pytest.fixture
def case():
    return Predictive(2 * torch.randn(3, 200, 5, dtype=torch.double)), torch.randint(0, 5, (200,))


def test_accuracy_and_nll_agree_with_scikit_learn(case):
    p, y = case
    assert accuracy(p, y) == pytest.approx(accuracy_score(y, p.labels))
    assert nll(p, y) == pytest.approx(log_loss(y, p.probs, labels=range(5)))
    assert accuracy(p, y.unsqueeze(1)) == accuracy(p, y)


@pytest.mark.parametrize("bins", [1, 10, 15])
def test_ece_agrees_with_brute_force(case, bins):
    p, y = case
    total = 0.0
    for index in range(bins):
        low, high = index / bins, (index + 1) / bins
        inside = (p.confidence > low) & (p.confidence <= high)
        if inside.any():
            gap = (p.labels == y)[inside].double().mean() - p.confidence[inside].mean()
            total += inside.double().mean().item() * abs(gap.item())
    assert ece(p, y, bins) == pytest.approx(total)


def test_ece_of_certain_answers():
    p = Predictive(torch.tensor([[[1e4, 0.0], [0.0, 1e4]]]))
    assert ece(p, torch.tensor([0, 1])) == 0
    assert ece(p, torch.tensor([1, 0])) == 1
    assert ece(p, torch.tensor([0, 0])) == 0.5
