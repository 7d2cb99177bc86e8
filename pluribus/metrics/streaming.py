"""Scores from sums over batches: memory does not grow with the rows, and several processes can add up their sums."""

import torch
from torch import Tensor

from ..core.answer import IGNORED
from ..core.predictive import Predictive, PredictiveSummary, Task
from .calibration import ConfidenceBins, bin_by_confidence
from .pinball import pinball_terms
from .regression import gaussian_terms
from .temperature import LOG_PRIOR, LOG_TEMPERATURES, find_best_temperature, nll_at_temperatures

BINS = 15
GRID = len(LOG_TEMPERATURES)
PLACES = 64
"""Of the places of an answer (the pixels of a segmentation), about so many are used to find a temperature."""


class Tally:
    """Sums of a classification (rows, correct rows, −log p, confidence bins) or a regression (rows, squared errors, and
    −log p if the members predict the noise, `has_noise`, or the pinball loss if they predict quantiles, `has_quantiles`).

    Both count the rows whose answer is not finite; one of them makes every score NaN.

    A classification that is `calibrated` also sums −log p at every temperature of a grid over each half of the rows, those at
    even and those at odd positions. `calibrated_nll` is the mean NLL of each half at the temperature that is best for the other
    half. A half whose few rows are all right would drive its temperature to zero, so log T has a normal prior.

    >>> tally = Tally("classification")
    >>> tally.add(Predictive(torch.tensor([[[9.0, 0.0], [9.0, 0.0]]])), torch.tensor([0, 1]))
    >>> round(tally.scores()["accuracy"], 3)
    0.5
    """

    def __init__(
        self,
        task: Task,
        device: torch.device | None = None,
        *,
        calibrated: bool = True,
        has_noise: bool = False,
        has_quantiles: bool = False,
    ) -> None:
        self.task = task
        self.calibrated = calibrated and task == "classification"
        self.has_noise, self.has_quantiles = has_noise, has_quantiles
        size = 4 + 3 * BINS if task == "classification" else 3 + (has_noise or has_quantiles)
        self.sums = torch.zeros(size + 2 * (GRID + 2) * self.calibrated, dtype=torch.double, device=device)

    def add(self, p: Predictive | PredictiveSummary, targets: Tensor, positions: Tensor | None = None) -> None:
        """Add a batch: a prediction of B rows, `targets` `[B]`, and the `positions` `[B]` of the rows in the order of all rows.

        Without positions, the rows follow those that were added before. With several processes this is not so: each must pass
        the positions of its rows, as the halves of a calibrated classification would else depend on the number of processes.
        """
        if self.task == "regression":
            errors = (p.mean.double() - targets.view_as(p.mean).double()).square().reshape(len(p), -1).mean(1)
            sums = [errors.new_tensor(len(p)), (~p.is_finite).sum(), errors.sum()]
            if self.has_noise:
                sums.append(gaussian_terms(p, targets)[0].reshape(len(p), -1).mean(1).sum())
            if self.has_quantiles:
                sums.append(pinball_terms(p, targets).reshape(len(p), -1).mean(1).sum())
            self._add_sums(torch.stack(sums))
            return
        if bool((targets == IGNORED).any()):  # positions that count are rows of their own, in the half of their row
            known = targets.view_as(p.labels) != IGNORED
            rows = self._count_on(len(p), known[:1].numel()) if positions is None else positions
            positions = rows.to(known.device).view(-1, *(1 for _ in known.shape[1:])).expand_as(known)[known]
            p, targets = p.select_positions(known), targets.view_as(known)[known]
        log_probs = p.arrange_classes().log_probs
        top, labels = log_probs.max(1)
        correct = (labels == targets.view_as(labels)).double().masked_fill(top.isnan(), torch.nan).flatten()
        nll = -log_probs.gather(1, targets.long().view_as(labels).unsqueeze(1)).double()
        bins = bin_by_confidence(top.exp().flatten(), correct, BINS)
        lost = top.isnan().flatten(1).any(1).sum() if top.dim() > 1 else top.isnan().sum()
        sums = [torch.stack([correct.new_tensor(correct.numel()), lost, correct.sum(), nll.sum()]), *bins]
        if self.calibrated:
            if positions is None:
                positions = self._count_on(len(p), labels[:1].numel())
            sums.append(_sum_halves(log_probs, targets.view_as(labels), positions).flatten().to(correct.device))
        self._add_sums(torch.cat(sums))

    def _count_on(self, rows: int, each: int) -> Tensor:
        """The positions of rows with so many targets each that follow those that were added before."""
        return torch.arange(rows) + int(self.sums[0].item()) // max(each, 1)

    def _add_sums(self, sums: Tensor) -> None:
        self.sums += sums.to(self.sums.device)

    @property
    def not_finite(self) -> int:
        """How many of the rows have an answer that is not finite."""
        return int(self.sums[1].item())

    def scores(self) -> dict[str, float]:
        """Accuracy, NLL, ECE and calibrated NLL of a classification, RMSE, and NLL or pinball loss, of a regression.

        Without rows there are none.
        """
        rows = self.sums[0].item()
        if rows == 0:
            return {}
        if self.task == "regression":
            other = "nll" if self.has_noise else "pinball"
            more = {other: (self.sums[3] / rows).item()} if self.has_noise or self.has_quantiles else {}
            return {"rmse": (self.sums[2] / rows).sqrt().item()} | more
        bins, halves = self.sums[4:].split([3 * BINS, len(self.sums) - 4 - 3 * BINS])
        scores = {
            "accuracy": (self.sums[2] / rows).item(),
            "nll": (self.sums[3] / rows).item(),
            "ece": ConfidenceBins(*bins.view(3, BINS)).error,
        }
        return scores | ({"calibrated_nll": _cross_fit(halves.view(2, -1).cpu())} if self.calibrated else {})


def _sum_halves(log_probs: Tensor, targets: Tensor, positions: Tensor) -> Tensor:
    """Sums over each half of the rows, `[2, G + 2]`: the NLL at each temperature; that of rows where it is infinite; rows."""
    if log_probs.dim() > 2:
        step = -(-targets[0].numel() // PLACES) if len(targets) else 1
        log_probs, targets = log_probs.flatten(2)[:, :, ::step], targets.flatten(1)[:, ::step]
    table = nll_at_temperatures(PredictiveSummary(1, {"log_probs": log_probs}), targets.flatten())
    half = (positions % 2).to(table.device).repeat_interleave(len(table) // max(len(positions), 1))
    usable = table.isfinite().all(1)
    lost = table[:, GRID // 2].masked_fill(usable, 0.0)
    table = torch.cat([table.masked_fill(~usable.unsqueeze(1), 0.0), lost.unsqueeze(1), torch.ones_like(table[:, :1])], 1)
    return torch.stack([table[half == 0].sum(0), table[half == 1].sum(0)])


def _cross_fit(halves: Tensor) -> float:
    """The mean NLL of each half at the temperature that is best for the other one; `halves` is `[2, G + 2]`."""
    totals, lost, rows = halves.split([GRID, 1, 1], dim=1)
    _, weights = find_best_temperature(totals.flip(0) + LOG_PRIOR)
    return (((totals * weights).sum() + lost.sum()) / rows.sum()).item()
