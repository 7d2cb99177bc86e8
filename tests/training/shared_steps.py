"""What several processes must train as one does: a network, a method and settings each, small enough for one start of all."""

import multiprocessing
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import pluribus
from pluribus import (
    MIMO,
    BatchEnsemble,
    DeepEnsemble,
    Inner,
    MCDropout,
    Mixture,
    Multihead,
    Single,
    TreeNet,
    Variance,
    VariationalDropout,
)
from pluribus.core.spec import Spec

ROWS, BATCH = 27, 12
"""Two batches of twelve rows, and one of three: the processes have two rows and one."""


def make_plain() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 8), nn.Linear(8, 3)
    )


def make_normalized() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)),
    )


def make_dropping() -> nn.Module:
    return nn.Sequential(
        *(nn.Dropout(0.1), nn.Conv2d(2, 4, 3), nn.Dropout2d(0.3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU()),
        *(nn.Flatten(), nn.AlphaDropout(0.2), nn.Linear(16, 8), nn.Dropout(0.5), nn.Linear(8, 3)),
    )


def make_both() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.2), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3)),
    )


class Normalizing(nn.Module):
    """BatchNorm in every form: without weights, without running statistics, with their plain mean, and on sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.BatchNorm2d(2, affine=False)
        self.second = nn.BatchNorm1d(2, track_running_stats=False)
        self.third = nn.BatchNorm1d(8, momentum=None, eps=0.1)
        self.frozen = nn.BatchNorm1d(8).eval().requires_grad_(False)
        self.body, self.last = nn.Linear(72, 8), nn.Linear(8, 3)

    def train(self, mode: bool = True) -> "Normalizing":
        super().train(mode)
        self.frozen.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        x = self.second(self.first(x).flatten(2))
        return self.last(self.frozen(self.third(self.body(x.flatten(1)))))


class Drawing(nn.Module):
    """Draws by functions: dropout in place, stochastic depth, and noise on its rows."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(72, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = F.dropout(self.first(x.flatten(1)).relu() * 1.0, 0.3, self.training, inplace=True)
        if self.training:
            h = h * torch.empty(len(h), 1, dtype=h.dtype).bernoulli_(0.8) + 0.1 * torch.randn_like(h) * torch.rand(len(h), 8)
        return self.second(h)


class Attending(nn.Module):
    """Attention and a recurrent layer, which drop inside; the recurrent one has time on its first axis."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True)
        self.recurrent = nn.GRU(8, 4, num_layers=2, dropout=0.3, batch_first=True)
        self.last = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(2).transpose(1, 2).reshape(len(x), 9, 8)
        x = self.attention(x, x, x)[0] + self.attention(x, x, x, need_weights=False)[0]
        return self.last(self.recurrent(x)[0][:, -1])


class Recomputing(nn.Module):
    """Computes its dropout and BatchNorm again in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(72, 8), nn.BatchNorm1d(8), nn.Dropout(0.4), nn.Linear(8, 8))
        self.last = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(checkpoint(self.body, x.flatten(1), use_reentrant=False))


@dataclass(frozen=True)
class Case:
    make: Callable[[], nn.Module]
    spec: Spec
    options: dict[str, Any] = field(default_factory=dict)
    loader: bool = False
    slow: bool = False
    teacher: Spec | None = None


CASES = {
    "batchnorm": Case(make_normalized, Single()),
    "every batchnorm": Case(Normalizing, Single()),
    "dropout": Case(make_dropping, Single(), {"epochs": 2}),
    "until converged": Case(make_dropping, Single(), {"epochs": "auto", "max_epochs": 20, "lr": 1e-9}),
    "dropout and clipping": Case(make_dropping, Single(), {"clip": 0.5, "label_smoothing": 0.1, "augmentation": "crop-flip"}),
    "functions that draw": Case(Drawing, Single()),
    "attention and recurrence": Case(Attending, Single()),
    "gradient checkpointing": Case(Recomputing, Single()),
    "inner, both": Case(make_both, Inner(copies=2), slow=True),
    "mimo": Case(make_plain, MIMO(members=2)),
    "mimo, repetitions": Case(make_plain, MIMO(members=3, batch_repetition=2, input_repetition=0.4)),
    "mimo, both": Case(make_both, MIMO(members=2, batch_repetition=2, input_repetition=0.5)),
    "mimo, loader": Case(make_both, MIMO(members=2), loader=True),
    "mc dropout": Case(make_dropping, MCDropout(samples=3), slow=True),
    "mc dropout, both": Case(make_both, MCDropout(samples=3)),
    "variance": Case(make_normalized, Variance(samples=3), slow=True),
    "variance of weights": Case(make_both, Variance(samples=3, noise="bernoulli")),
    "variational": Case(make_both, VariationalDropout(samples=3)),
    "variational, drawn penalty": Case(
        make_plain, VariationalDropout(samples=3, kl="monte-carlo"), {"kl_warmup": 1.0}, slow=True
    ),
    "mixture": Case(make_both, Mixture(members=2, parameters=3.0)),
    "batch ensemble": Case(make_both, BatchEnsemble(members=3), slow=True),
    "batch ensemble, own norms": Case(make_both, BatchEnsemble(members=2, batchnorm="own")),
    "batch ensemble, split": Case(make_both, BatchEnsemble(members=2, batches="split"), slow=True),
    "tree": Case(make_both, TreeNet(members=2), slow=True),
    "heads": Case(make_both, Multihead(members=3), slow=True),
    "deep": Case(make_both, DeepEnsemble(members=2), slow=True),
    "deep mimo": Case(make_both, DeepEnsemble(members=2, of=MIMO(members=2))),
    "mixup": Case(make_both, Multihead(members=2), {"mixup": 0.4}),
    "mixup, mimo": Case(make_both, MIMO(members=2), {"mixup": 0.4}),
    "mixup, loader": Case(make_plain, Single(), {"mixup": 0.4}, loader=True, slow=True),
    "taught": Case(make_both, Multihead(members=2), {"mixup": 0.4}, teacher=MCDropout(samples=3)),
    "taught, mimo": Case(make_both, MIMO(members=2), teacher=MCDropout(samples=3), slow=True),
    "taught, one member": Case(make_normalized, Single(), teacher=DeepEnsemble(members=2), slow=True),
    "deep mc dropout": Case(make_dropping, DeepEnsemble(members=2, of=MCDropout(samples=2)), slow=True),
}


def train(case: Case, **options: Any) -> tuple[list[dict[str, float]], dict[str, Tensor]]:
    """The history and the state of a short run in double precision."""
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(case.make(), case.spec, example=torch.randn(2, 2, 6, 6)).double()
    x, y = torch.randn(ROWS, 2, 6, 6, dtype=torch.double), torch.arange(ROWS) % 3
    data: Any = DataLoader(TensorDataset(x, y), BATCH, shuffle=True) if case.loader else (x, y)
    teacher = None if case.teacher is None else pluribus.ensemble(make_dropping(), case.teacher).double()
    settings = {"epochs": 1, "teacher": teacher, "batch_size": BATCH, "optimizer": "sgd", "accelerator": "cpu", "seed": 5}
    history = pluribus.fit(ensemble, data, (x[:15], y[:15]), progress=False, **settings | case.options | options)
    return history, ensemble.state_dict()


def train_in_two_processes(path: Any, names: list[str], **options: Any) -> dict[str, Any]:
    """What `train` returns for each case, trained by two processes that are forked from this one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "TORCHELASTIC_RUN_ID": "tests"}
    processes = [
        multiprocessing.get_context("fork").Process(target=_run, args=(rank, meeting, path, names, options)) for rank in (0, 1)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    assert [process.exitcode for process in processes] == [0, 0]
    return torch.load(path)


def _run(rank: int, meeting: dict[str, str], path: Any, names: list[str], options: dict[str, Any]) -> None:
    places = {"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
    os.environ.update(meeting | {name: str(value) for name, value in places.items()})
    torch.set_num_threads(1)  # a thread pool does not survive a fork
    found = {name: train(CASES[name], devices=2, **options) for name in names}
    if rank == 0:
        torch.save(found, path)
    torch.distributed.destroy_process_group()
