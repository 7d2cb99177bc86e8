import pytest
import torch

from pluribus import Predictive
from pluribus.metrics import rmse


def test_rmse_is_of_the_members_mean():
    p = Predictive(torch.tensor([[1.0, 2.0], [3.0, 6.0]]), "regression")  # means 2 and 4
    assert rmse(p, torch.tensor([2.0, 1.0])) == pytest.approx((9 / 2) ** 0.5)
    assert rmse(p, torch.tensor([[2.0], [1.0]])) == pytest.approx((9 / 2) ** 0.5)
