"""TabM by its authors' package: piecewise-linear embeddings, 32 members, and the training of their paper.

AdamW, gradients of norm 1 at most, the mean loss of all members, and early stopping by the error of their mean. The paper's
space is kept except for the width, which ends at 512, the package's default, in place of 1,024.

Gorishniy et al., "TabM: Advancing Tabular Deep Learning With Parameter-Efficient Ensembling", ICLR 2025, appendix D.
"""

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from ..core.seeds import set_seed
from .contender import Contender, Limits, Options, Predict, Tuned, choose_batch_size
from .rows import Rows, list_numbers, number_categories
from .scores import Gaussians

SPACE = {
    "lr": Tuned(2e-3, "log", (1e-4, 5e-3)),
    "weight_decay": Tuned(3e-4, "log", (1e-4, 1e-1)),
    "n_blocks": Tuned(2, "int", (1, 4)),
    "d_block": Tuned(512, "choice", (64, 128, 256, 384, 512)),
    "dropout": Tuned(0.1, "float", (0.0, 0.5)),
    "n_bins": Tuned(48, "int", (2, 128)),
    "d_embedding": Tuned(16, "choice", (8, 12, 16, 20, 24, 28, 32)),
}


def fit_tabm(rows: Rows, options: Options, seed: int, limits: Limits) -> Predict:
    """Train TabM, and keep the weights with the smallest error on the validation rows."""
    import tabm
    from rtdl_num_embeddings import PiecewiseLinearEmbeddings, compute_bins

    set_seed(seed)
    places = list_numbers(rows)
    embeddings: Any = None
    if places:
        numbers = rows.train.x[:, places]
        bins = compute_bins(numbers, n_bins=min(options["n_bins"], len(numbers) - 1))
        embeddings = PiecewiseLinearEmbeddings(bins, options["d_embedding"], activation=False, version="B")
    net = tabm.TabM.make(
        n_num_features=len(places),
        cat_cardinalities=[width + 1 for width in rows.column_widths if width],
        d_out=1,
        num_embeddings=embeddings,
        **{name: options[name] for name in ("n_blocks", "d_block", "dropout")},
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=options["lr"], weight_decay=options["weight_decay"])
    best, weights, waited = math.inf, copy.deepcopy(net.state_dict()), 0
    inputs, order = split_inputs(rows.train.x, rows), torch.Generator().manual_seed(seed)
    for _ in range(limits.epochs):
        net.train()
        for batch in torch.randperm(len(rows.train), generator=order).split(choose_batch_size(len(rows.train))):
            optimizer.zero_grad()
            errors = call_tabm(net, [part[batch] for part in inputs]) - rows.train.y[batch].unsqueeze(1)
            errors.square().mean().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        error = (predict_rows(net, rows.validation.x, rows).mean - rows.validation.y).square().mean().item()
        waited += 1
        if error < best:
            best, weights, waited = error, copy.deepcopy(net.state_dict()), 0
        if waited >= limits.patience:
            break
    net.load_state_dict(weights)
    return lambda x: predict_rows(net, x, rows)


def split_inputs(x: Tensor, rows: Rows) -> list[Tensor]:
    """Rows as TabM takes them: numbers `[N, numbers]`, and categories as whole numbers."""
    return [x[:, list_numbers(rows)], number_categories(x, rows)]


def call_tabm(net: nn.Module, inputs: list[Tensor]) -> Tensor:
    """The members' answers `[B, M]`."""
    numbers, categories = (part if part.shape[1] else None for part in inputs)
    return net(numbers, categories).squeeze(-1)


def predict_rows(net: nn.Module, x: Tensor, rows: Rows) -> Gaussians:
    net.eval()
    with torch.inference_mode():
        answers = [call_tabm(net, [part[i : i + 1024] for part in split_inputs(x, rows)]) for i in range(0, len(x), 1024)]
    members = torch.cat(answers).double()
    return Gaussians(members.mean(1), members.var(1, correction=0))


TABM = Contender("tabm", "TabM (its authors')", fit_tabm, SPACE, ("tabm", "rtdl_num_embeddings"))
