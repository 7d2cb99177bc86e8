import pytest
import torch
from sklearn.metrics import roc_auc_score

from pluribus import Predictive
from pluribus.metrics.ood_detection import auroc, fpr95, uncertainty


def test_auroc_is_scikit_learns_also_with_ties():
    inside, outside = torch.randn(400).round(decimals=1), (torch.randn(300) + 1).round(decimals=1)
    labels = torch.cat([torch.zeros(400), torch.ones(300)])
    assert auroc(inside, outside) == pytest.approx(
        roc_auc_score(labels.numpy(), torch.cat([inside, outside]).numpy()), abs=1e-12
    )


def test_higher_scores_are_detected_and_equal_ones_are_not():
    assert auroc(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])) == 1
    assert auroc(torch.tensor([3.0]), torch.tensor([1.0, 2.0])) == 0
    assert auroc(torch.ones(5), torch.ones(7)) == 0.5


def test_fpr95_is_the_share_of_in_distribution_rows_at_the_threshold_that_finds_95_percent_of_the_others():
    outside = torch.arange(100).float()  # 95 % are at or above 5
    inside = torch.tensor([4.9, 5.0, 50.0, -1.0])
    assert fpr95(inside, outside) == 0.5
    assert fpr95(inside - 100, outside) == 0


def test_uncertainty_is_higher_where_the_ensemble_is_less_sure():
    sure, split = [[9.0, 0.0]], [[0.1, 0.0]]
    p = Predictive(torch.tensor([[sure[0], split[0], [5.0, 0.0]], [sure[0], split[0], [0.0, 5.0]]]))
    for by in ("confidence", "entropy", "mutual-information"):
        scores = uncertainty(p, by)
        assert scores[2] > scores[0], by
    assert uncertainty(p, "mutual-information")[1] == pytest.approx(0, abs=1e-6), "members agree that they do not know"
    with pytest.raises(ValueError, match="by must be"):
        uncertainty(p, "mood")


def test_both_sets_need_rows():
    with pytest.raises(ValueError, match="both sets need rows"):
        auroc(torch.tensor([]), torch.ones(3))
