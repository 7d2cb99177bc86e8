"""Calibrated NLL: the NLL of a prediction at its best temperature, which is fitted on other rows than it is scored on.

    NLL_T(row) = −log softmax(log p / T)[target],      T from a fixed grid of log T

The NLL of every row at every temperature of the grid is all that is needed: sums of it over batches, processes or halves of the
rows give the best temperature of any set of rows, and the row scores at that temperature. Between the points of the grid, a
parabola through three of them is taken, which is off by less than 1e-5 nats.

Test-time cross-validation: the rows are split into random halves; each half is scored at the temperature that is best for the
other one; the scores of a row are averaged over many splits. A fit on a few validation rows that are nearly all right drives T
to zero unnoticed; here the rows of the other half pay for it.

Ashukha et al., "Pitfalls of in-domain uncertainty estimation and ensembling in deep learning", ICLR 2020, section 4.
"""

import math

import torch
from torch import Tensor

from ..core.predictive import Predictive, PredictiveSummary

STEP, WIDEST = 0.05, 2.5
LOG_TEMPERATURES = torch.arange(-round(WIDEST / STEP), round(WIDEST / STEP) + 1, dtype=torch.double) * STEP
"""log T of the grid, `[G]`: T from 1/12 to 12."""
SPLITS = 32
AT_ONCE = 2**22
"""Numbers in the largest temporary tensor."""


def nll_at_temperatures(p: Predictive | PredictiveSummary, targets: Tensor) -> Tensor:
    """The NLL of every row at every temperature of the grid.

    Args: a prediction of B rows, `[B, C]` once it is averaged; `targets` `[B]`. Returns: `[B, G]` in double precision. A target
    of probability zero has an infinite NLL at all temperatures.

    >>> p = Predictive(torch.tensor([[[2.0, 0.0]]]))
    >>> nll_at_temperatures(p, torch.tensor([0]))[0, len(LOG_TEMPERATURES) // 2]  # T = 1
    tensor(0.1269, dtype=torch.float64)
    """
    log_probs = p.log_probs.double().movedim(1, -1).flatten(0, -2)
    truth = log_probs.gather(1, targets.long().view(-1, 1)).squeeze(1)
    found = log_probs.new_empty(len(log_probs), len(LOG_TEMPERATURES))
    rows = max(AT_ONCE // max(log_probs.shape[1], 1), 1)
    for place, log_t in enumerate(LOG_TEMPERATURES.tolist()):
        scale = math.exp(-log_t)
        for start in range(0, len(log_probs), rows):
            part = slice(start, start + rows)
            found[part, place] = (log_probs[part] * scale).logsumexp(1) - truth[part] * scale
    return found


def find_best_temperature(totals: Tensor) -> tuple[Tensor, Tensor]:
    """The lowest of sums over rows, between the points of the grid.

    Args: `totals` `[…, G]`, sums (or means) over rows of what `nll_at_temperatures` returns. Returns: log T `[…]`, and weights
    `[…, G]` of the grid's points whose weighted sum is the value at that temperature.
    """
    middle = totals.argmin(-1).clamp(1, totals.shape[-1] - 2)
    around = torch.stack([totals.gather(-1, (middle + shift).unsqueeze(-1)).squeeze(-1) for shift in (-1, 0, 1)])
    curvature = around[0] - 2 * around[1] + around[2]
    shift = torch.where(curvature > 0, (around[0] - around[2]) / (2 * curvature), torch.zeros_like(curvature))
    shift = shift.nan_to_num().clamp(-1, 1)
    weights = torch.zeros_like(totals)
    lagrange = (shift * (shift - 1) / 2, 1 - shift.square(), shift * (shift + 1) / 2)
    for offset, value in zip((-1, 0, 1), lagrange, strict=True):
        weights.scatter_(-1, (middle + offset).unsqueeze(-1), value.unsqueeze(-1))
    return LOG_TEMPERATURES[0].item() + STEP * (middle + shift), weights


def cross_fit_nll(table: Tensor, splits: int = SPLITS, seed: int = 0) -> Tensor:
    """The calibrated NLL of every row by cross-fitting on random halves.

    Args: `table` `[N, G]`, the NLL of every row at every temperature; the number of random splits. Returns: `[N]` in double
    precision. With fewer than two rows there is nothing to fit on, and T = 1. Equal `N` and `seed` give equal splits, so that
    methods are compared on the same ones.

    >>> sure = Predictive(torch.tensor([[[6.0, 0.0]] * 400]))  # 99.8 % sure, and right in three rows of four
    >>> table = nll_at_temperatures(sure, torch.tensor([0, 0, 0, 1] * 100))
    >>> round(cross_fit_nll(table).mean().item(), 2)  # the entropy of 3/4 is 0.56; uncalibrated it is 1.5
    0.57
    """
    table = table.double()
    rows = len(table)
    if rows < 2:
        return table[:, len(LOG_TEMPERATURES) // 2].clone()
    generator = torch.Generator().manual_seed(seed)
    total, scores = fit_sums(table), torch.zeros(rows, dtype=torch.double)
    for _ in range(splits):
        half = torch.randperm(rows, generator=generator)[: rows // 2]
        first = fit_sums(table[half])
        held_out = torch.ones(rows, dtype=torch.bool)
        held_out[half] = False
        for fitted, scored in ((first, held_out), (total - first, ~held_out)):
            _, weights = find_best_temperature(fitted)
            scores[scored] += combine(table[scored], weights)
    return scores / splits


def fit_sums(table: Tensor) -> Tensor:
    """Sums over the rows that have a finite NLL: no temperature changes that of the others."""
    return table[table.isfinite().all(1)].sum(0)


def combine(table: Tensor, weights: Tensor) -> Tensor:
    """Rows at the temperature that the weights stand for; only the points of the grid that have a weight are read."""
    used = weights.nonzero().squeeze(1)
    found = table[:, used]
    return torch.where(found.isfinite().all(1), found.nan_to_num() @ weights[used], found.sum(1))


def calibrated_nll(p: Predictive | PredictiveSummary, targets: Tensor, splits: int = SPLITS, seed: int = 0) -> float:
    """The mean NLL at temperatures that are cross-fitted on random halves of these rows.

    Args: a prediction of B rows; `targets` `[B]`. Returns: nats, smaller is better.
    """
    return cross_fit_nll(nll_at_temperatures(p, targets), splits, seed).mean().item()
