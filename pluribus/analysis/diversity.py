"""Diversity: how members differ. Pure functions of a Predictive and, where errors matter, of the targets.

With ŷ_m the label of member m, p_m its probabilities, e_m the indicator of its errors, averaged over rows and pairs m ≠ n:

    disagreement      D = P(ŷ_m ≠ ŷ_n)
    … by error        D / P(ŷ_m ≠ y)
    pairwise KL       E Σ_c p_m(c) · (log p_m(c) − log p_n(c))
    correlation       of e_m with e_n over the rows (Pearson)
    regression        E (f_m − y)² = E (f̄ − y)² + E (f_m − f̄)²

All pairs are summed in time linear in M. One member has no pairs: its disagreement and KL are 0, its correlation is 1.

Havasi et al., "Training Independent Subnetworks for Robust Prediction" (MIMO), ICLR 2021, section 3.2 (where disagreement is
printed with "=" for "≠") and section 2.1; Fort et al., "Deep Ensembles: A Loss Landscape Perspective", 2019, whose measure
MixtureEnsembles, table 6, reports; Krogh & Vedelsby, "Neural Network Ensembles, Cross Validation, and Active Learning", 1995.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ..core.predictive import Predictive


def disagreement(p: Predictive) -> float:
    """The share of pairs of members whose labels differ, averaged over rows; 0 with one member.

    >>> disagreement(Predictive(torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]])))
    0.5
    """
    return p.disagreement.double().mean().item()


def normalised_disagreement(p: Predictive, targets: Tensor) -> float:
    """Disagreement divided by the members' mean error: from 0 to 2, near 2 for rare and unrelated errors.

    Args: predictions `[M, B, C]`; `targets` `[B]`. Raises ValueError if they do not fit.

    The papers divide each pair by the error of "one of them", and do not say which. Dividing by the mean error gives the same
    for equally good members, a little less for others (by about the squared relative spread of their errors), and a finite
    number beside a member without errors. Where no member errs, the result is 0.

    >>> p = Predictive(torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]))
    >>> normalised_disagreement(p, torch.tensor([0, 0]))  # members differ on half of the rows, and err on a quarter
    2.0
    """
    error = find_errors(p, targets).mean().item()
    return disagreement(p) / error if error != 0 else 0.0


def pairwise_kl(p: Predictive) -> float:
    """The mean of KL(p_m ‖ p_n) in nats over rows and ordered pairs of members; 0 with one member.

    It is infinite where a member gives probability 0 to a class that another holds possible.

    >>> p = Predictive(torch.tensor([[[0.5, 0.5]], [[0.25, 0.75]]], dtype=torch.double).log())
    >>> round(pairwise_kl(p), 4)
    0.1373
    """
    log_probs = p.arrange_classes().member_log_probs.double()
    probs, count = log_probs.exp(), len(log_probs)
    if count < 2:
        return 0.0
    # Σ_mn p_m (log p_m − log p_n) = M Σ_m p_m log p_m − (Σ_m p_m)(Σ_n log p_n); classes that all members exclude add 0.
    total = probs.sum(0)
    crossed = torch.where(total > 0, total * log_probs.sum(0), 0.0)
    divergence = -count * torch.special.entr(probs).sum(0) - crossed
    return (divergence.sum(1).clamp_min(0) / (count * (count - 1))).mean().item()


def error_correlation(p: Predictive, targets: Tensor) -> float:
    """Pearson's correlation of the members' 0/1 errors over rows, averaged over pairs.

    Pairs with a member that is always right, or always wrong, count as 0; a single member has the correlation 1.

    Args: predictions `[M, B, C]`; `targets` `[B]`. Raises ValueError if they do not fit.

    >>> p = Predictive(torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]))
    >>> round(error_correlation(p, torch.tensor([0, 0])), 6)  # both err on the second row
    1.0
    """
    wrong = find_errors(p, targets)
    count = len(wrong)
    if count < 2:
        return 1.0
    centred = wrong - wrong.mean(1, keepdim=True)
    lengths = centred.norm(dim=1, keepdim=True)
    constant = (wrong == wrong[:, :1]).all(1, keepdim=True)
    units = torch.where(constant, 0.0, centred / torch.where(constant, 1.0, lengths))  # products of these are correlations
    pairs = units.sum(0).square().sum() - units.square().sum()
    return (pairs / (count * (count - 1))).item()


class BiasVariance(NamedTuple):
    """The decomposition `error = bias + variance`."""

    error: float
    """The mean squared error of a member."""
    bias: float
    """The squared error of the members' mean; it includes the noise of the targets, which cannot be told apart from bias."""
    variance: float
    """The members' spread about their mean (divided by M)."""

    @property
    def ensemble(self) -> float:
        """The mean squared error of the ensemble, which predicts the members' mean."""
        return self.bias


def bias_variance(p: Predictive, targets: Tensor) -> BiasVariance:
    """Split the squared error of a regression's members into bias, which they share, and variance, which averaging removes.

    Args: predictions `[M, B, C]`; `targets` in the shape of the mean, `[B, C]`, or `[B]`. Raises ValueError if they do not fit.

    MIMO's figure 2 takes the expectation over training sets instead of members. That is this function on the predictions of
    several runs: `Predictive(torch.stack([run.mean for run in runs]), "regression")`.

    >>> p = Predictive(torch.tensor([[[1.0]], [[3.0]]]), "regression")
    >>> bias_variance(p, torch.tensor([0.0]))
    BiasVariance(error=5.0, bias=4.0, variance=1.0)
    """
    mean = p.mean
    if targets.numel() != mean.numel():
        raise ValueError(f"targets must have the shape of the predictions, {list(mean.shape)}, got {list(targets.shape)}")
    values, truth = p.members.double(), targets.view_as(mean).double()
    centre = values.mean(0)
    return BiasVariance(
        error=(values - truth).square().mean().item(),
        bias=(centre - truth).square().mean().item(),
        variance=(values - centre).square().mean().item(),
    )


def find_errors(p: Predictive, targets: Tensor) -> Tensor:
    """Return 1 where a member errs, 0 elsewhere, and NaN where its answer is not finite, `[M, B]`."""
    log_probs = p.arrange_classes().member_log_probs
    labels = log_probs.argmax(2)
    if targets.numel() != labels[0].numel():
        raise ValueError(f"there must be a target for each of {labels[0].numel()} labels, got {list(targets.shape)}")
    return (labels != targets.view_as(labels[0])).double().masked_fill(log_probs.isnan().any(2), torch.nan).flatten(1)
