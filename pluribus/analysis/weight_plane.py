"""The plane through the weights of three members: how good and how alike the networks between them are.

    θ(a, b) = θ_1 + a (θ_2 − θ_1) + b (θ_3 − θ_1)

At each point of a grid in this plane a network gets these weights and answers the rows. If the members lie in one basin, the
accuracy is high between them, too; if they are separate modes, it falls. The coordinates are those of an orthonormal basis, so
distances on the map are distances in weight space.

A member is the plain network that `member(i)` returns. MIMO's members share all layers but the first and the last, and these
take all inputs at once: there, θ_m are the weights of the whole network, its places rotated so that member m has the first one,
and the other places see other rows, as in training.

BatchNorm's running statistics are interpolated like weights. Those of the members say little about a network between them:
`batchnorm_rows` estimates them anew at every point, and `batchnorm_batch` normalises every batch of rows by its own statistics,
which is BatchNorm in training mode, as in figure 4 of MixtureEnsembles.

Of a mixture whose members share their templates, a network between two members has the coefficients between theirs.

Fort et al., "Deep Ensembles: A Loss Landscape Perspective", 2019; Havasi et al., ICLR 2021, figure 3; "MixtureEnsembles:
Leveraging Parameter Sharing for Efficient Ensembles", 2021, figure 4.
"""

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..core import pytrees
from ..core.ensemble import Ensemble
from ..core.pytrees import Views
from ..core.spec import require_count

Answer = Callable[[nn.Module, Any], Tensor]


@dataclass(frozen=True)
class WeightPlane:
    """Maps over a grid of points: row i, column j is the point (`x[j]`, `y[i]`)."""

    x: Tensor
    """The first coordinates of the points, `[G]`."""
    y: Tensor
    """The second coordinates of the points, `[G]`."""
    corners: Tensor
    """Where the three members are, `[3, 2]`."""
    origin: Tensor
    """Where the plane is nearest to the origin of the weight space, `[2]`."""
    accuracy: Tensor
    """The share of rows that are answered rightly, `[G, G]`."""
    nll: Tensor
    """The mean negative log-likelihood, `[G, G]`."""
    disagreement: Tensor
    """For each member, the share of rows that a point answers otherwise than this member does, `[3, G, G]`."""
    corner_disagreement: float
    """The share of rows that two members answer differently, averaged over pairs, as the networks at their corners answer."""


def map_weight_plane(
    ensemble: Ensemble,
    x: Any,
    y: Tensor,
    *,
    members: Sequence[int] = (0, 1, 2),
    points: int = 21,
    margin: float = 0.25,
    batchnorm_rows: Any = None,
    batchnorm_batch: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> WeightPlane:
    """Evaluate networks in the plane through the weights of three members.

    Args:
        ensemble: An ensemble for classification whose members are plain networks. It is not changed.
        x: The rows to evaluate on, `[B, …]`.
        y: Their labels, `[B]`.
        members: The numbers of the three members.
        points: How many points the map has in each direction.
        margin: How far the map reaches beyond the members, as a share of its size.
        batchnorm_rows: Rows, such as some of the training set, to estimate BatchNorm's statistics on at every point; None
            interpolates those of the members.
        batchnorm_batch: Normalise the rows in equal batches of about this size by their own statistics, as in training.
        progress: A function that receives the number of points that are done.

    Returns:
        A `WeightPlane`.

    Raises:
        ValueError: The task is no classification, these are not three different members, their weights are equal, or both ways
            to replace BatchNorm's statistics are asked for.
        Unsupported: The method's members are drawn anew in every pass.

    >>> import pluribus
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> ensemble = pluribus.ensemble(net, pluribus.DeepEnsemble(members=3))
    >>> found = map_weight_plane(ensemble, torch.randn(20, 4), torch.randint(3, (20,)), points=5)
    >>> found.accuracy.shape, found.disagreement.shape
    (torch.Size([5, 5]), torch.Size([3, 5, 5]))
    """
    require_count("points", points, 2, "a map has corners")
    check_task(ensemble)
    if len(set(members)) != 3 or len(members) != 3:
        raise ValueError(f"a plane needs three different members, got {list(members)}")
    networks, plainly = list_corners(ensemble, members)
    answer = choose_answer(plainly, batchnorm_rows, batchnorm_batch)
    states = copy_states(networks)
    corners, origin = find_coordinates([flatten_weights(network) for network in networks])
    low, high = corners.amin(0), corners.amax(0)
    room = margin * (high - low).max()
    across, up = (torch.linspace(low[k] - room, high[k] + room, points, dtype=torch.double) for k in range(2))
    probe = copy.deepcopy(networks[0])
    labels = [answer(network, x).argmax(-1) for network in networks]
    accuracy, nll = torch.empty(points, points), torch.empty(points, points)
    disagreement = torch.empty(3, points, points)
    for number in range(points * points):
        row, column = divmod(number, points)
        load_mixture(probe, states, find_shares(torch.stack([across[column], up[row]]), corners))
        if batchnorm_rows is not None:
            estimate_batchnorm(probe, batchnorm_rows, plainly)
        logits = answer(probe, x)
        found = logits.argmax(-1)
        accuracy[row, column] = (found == y).float().mean()
        nll[row, column] = F.cross_entropy(logits, y)
        disagreement[:, row, column] = torch.stack([(found != label).float().mean() for label in labels])
        if progress is not None:
            progress(number + 1)
    pairs = [(first != second).float().mean() for first, second in itertools.combinations(labels, 2)]
    return WeightPlane(across, up, corners, origin, accuracy, nll, disagreement, torch.stack(pairs).mean().item())


@dataclass(frozen=True)
class WeightLine:
    """Scores of the networks on the line between two members: at share 0 is the first of them, at 1 the second."""

    shares: Tensor
    """`[P]`"""
    accuracy: Tensor
    """`[P]`"""
    nll: Tensor
    """`[P]`"""

    @property
    def barrier(self) -> float:
        """How far the accuracy falls, at its lowest point, below the straight line between the two members; at least 0."""
        straight = self.accuracy[0] + self.shares * (self.accuracy[-1] - self.accuracy[0])
        return (straight - self.accuracy).max().item()


def map_weight_line(
    ensemble: Ensemble,
    x: Any,
    y: Tensor,
    *,
    members: tuple[int, int] = (0, 1),
    points: int = 11,
    batchnorm_rows: Any = None,
    batchnorm_batch: int | None = None,
) -> WeightLine:
    """Evaluate networks on the line between the weights of two members; arguments and errors as of `map_weight_plane`.

    >>> import pluribus
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> ensemble = pluribus.ensemble(net, pluribus.DeepEnsemble(members=2))
    >>> map_weight_line(ensemble, torch.randn(20, 4), torch.randint(3, (20,)), points=5).accuracy.shape
    torch.Size([5])
    """
    require_count("points", points, 2, "a line has ends")
    check_task(ensemble)
    if len(set(members)) != 2 or len(members) != 2:
        raise ValueError(f"a line needs two different members, got {list(members)}")
    networks, plainly = list_corners(ensemble, members)
    answer = choose_answer(plainly, batchnorm_rows, batchnorm_batch)
    states = copy_states(networks)
    probe = copy.deepcopy(networks[0])
    shares = torch.linspace(0, 1, points, dtype=torch.double)
    accuracy, nll = torch.empty(points), torch.empty(points)
    for number, share in enumerate(shares):
        load_mixture(probe, states, torch.stack([1 - share, share]))
        if batchnorm_rows is not None:
            estimate_batchnorm(probe, batchnorm_rows, plainly)
        logits = answer(probe, x)
        accuracy[number] = (logits.argmax(-1) == y).float().mean()
        nll[number] = F.cross_entropy(logits, y)
    return WeightLine(shares, accuracy, nll)


# --- the networks at the corners ----------------------------------------------------------------------------------------


def check_task(ensemble: Ensemble) -> None:
    """Raise ValueError unless the ensemble is for classification."""
    if ensemble.task != "classification":
        raise ValueError(f"the maps are those of a classification, and this is a {ensemble.task}")


def copy_states(networks: Sequence[nn.Module]) -> list[dict[str, Tensor]]:
    """The parameters and buffers of networks, by name."""
    return [{name: value.detach().clone() for name, value in network.state_dict().items()} for network in networks]


def list_corners(ensemble: Ensemble, members: Sequence[int]) -> tuple[list[nn.Module], Answer]:
    """The networks of some members, and how such a network answers rows with logits `[B, C]`."""
    rotate = getattr(ensemble, "rotate", None)
    if rotate is None:
        return [copy.deepcopy(ensemble.member(index)) for index in members], answer_plainly
    return [rotate(index) for index in members], answer_among_others


@torch.no_grad()
def answer_plainly(network: nn.Module, x: Any) -> Tensor:
    return cast(Tensor, pytrees.call_network(network, x)).float()


@torch.no_grad()
def answer_among_others(network: nn.Module, x: Any) -> Tensor:
    """The answer of the first member of a network with several inputs; the others see the rows in another order."""
    assert isinstance(network, Ensemble)
    generator = torch.Generator().manual_seed(0)
    orders = [torch.randperm(pytrees.count_rows(x), generator=generator) for _ in range(network.members - 1)]
    views = pytrees.map_tensors(lambda leaf: torch.stack([leaf, *(leaf[order] for order in orders)]), x)
    return cast(Tensor, network(Views(views)))[0].float()


def choose_answer(plainly: Answer, batchnorm_rows: Any, batchnorm_batch: int | None) -> Answer:
    """How a network answers: as it is, or with BatchNorm in training mode, batch by batch."""
    if batchnorm_batch is None:
        return plainly
    require_count("batchnorm_batch", batchnorm_batch, 2, "the statistics of one row say nothing")
    if batchnorm_rows is not None:
        raise ValueError("batchnorm_rows and batchnorm_batch both replace BatchNorm's statistics: choose one of them")

    def answer_in_batches(network: nn.Module, x: Any) -> Tensor:
        rows = pytrees.count_rows(x)
        parts = torch.arange(rows).tensor_split(max(1, round(rows / batchnorm_batch)))
        with use_batch_statistics(network):
            return torch.cat([plainly(network, pytrees.slice_rows(x, int(part[0]), len(part))) for part in parts])

    return answer_in_batches


@contextmanager
def use_batch_statistics(network: nn.Module, momentum: float | None = 0.0) -> Iterator[None]:
    """Inside the block, every BatchNorm is in training mode; with a momentum of 0 its running statistics stay as they are."""
    norms = [module for module in network.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    kept = [(norm.momentum, norm.training) for norm in norms]
    for norm in norms:
        norm.momentum = momentum
        norm.train()
    try:
        yield
    finally:
        for norm, (before, training) in zip(norms, kept, strict=True):
            norm.momentum = before
            norm.train(training)


# --- the plane ------------------------------------------------------------------------------------------------------------


def flatten_weights(network: nn.Module) -> Tensor:
    """The parameters in one row, in double precision: what distances are measured by."""
    return torch.cat([parameter.detach().flatten().double() for parameter in network.parameters()])


def find_coordinates(weights: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The coordinates of three points, `[3, 2]`, in an orthonormal basis of their plane, and those of the origin's projection.

    >>> find_coordinates([torch.tensor([0.0, 0, 1]), torch.tensor([3.0, 0, 1]), torch.tensor([1.0, 2, 1])])[0].tolist()
    [[0.0, 0.0], [3.0, 0.0], [1.0, 2.0]]
    """
    first, second = weights[1] - weights[0], weights[2] - weights[0]
    length = first.norm()
    if length == 0 or second.norm() == 0:
        raise ValueError("two of the members have equal weights: there is no plane through them")
    u = first / length
    rest = second - (second @ u) * u
    height = rest.norm()
    if height <= 1e-9 * second.norm():
        raise ValueError("the weights of the three members lie on one line: there is no plane through them")
    v = rest / height
    zero = torch.zeros((), dtype=u.dtype)
    corners = torch.stack([torch.stack([zero, zero]), torch.stack([length, zero]), torch.stack([second @ u, height])])
    return corners, torch.stack([-weights[0] @ u, -weights[0] @ v])


def find_shares(point: Tensor, corners: Tensor) -> Tensor:
    """The shares of the three corners, which add up to 1, whose mean is this point.

    >>> find_shares(torch.tensor([1.0, 1.0]), torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])).tolist()
    [0.0, 0.5, 0.5]
    """
    edges = torch.stack([corners[1] - corners[0], corners[2] - corners[0]], dim=1)
    second, third = torch.linalg.solve(edges, point - corners[0])
    return torch.stack([1 - second - third, second, third])


def load_mixture(network: nn.Module, states: Sequence[dict[str, Tensor]], shares: Tensor) -> None:
    """Give a network the weighted mean of several states. Whole numbers, which are counts, are those of the first state."""
    mixed = dict(states[0])
    for name, value in states[0].items():
        if value.is_floating_point():
            each = torch.stack([state[name].double() for state in states])
            mixed[name] = torch.tensordot(shares.double(), each, 1).to(value.dtype)
    for name, value in mixed.items():
        if name.endswith("running_var"):
            value.clamp_(min=0)
    network.load_state_dict(mixed)


@torch.no_grad()
def estimate_batchnorm(network: nn.Module, rows: Any, answer: Answer) -> None:
    """Replace the running statistics of every BatchNorm by those of these rows."""
    for module in network.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.reset_running_stats()
    with use_batch_statistics(network, momentum=None):
        answer(network, rows)
