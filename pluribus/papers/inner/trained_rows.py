"""What the tables measure of a trained row: its scores, what folding changed, and how alike its copies have become."""

import copy
import dataclasses
import math

import torch
from torch import Tensor, nn

from ...core.convert import ensemble as convert
from ...core.describe import count_parameters
from ...core.ensemble import Ensemble
from ...core.folding import copy_plain
from ...core.members import Converted
from ...file_formats.schema import NotNegative, Size
from ...methods.inner import Averaged, weigh_by_inverse_variance
from ...methods.maxout import Largest
from ...methods.single import Single
from ...runs.config import build_config
from ...runs.training import load_data
from ...training.lightning_module import Diverged
from ..classification_scores import BLOCKS, Scores, measure_scores
from ..recipe import Json, Workspace
from ..trained_runs import Trained, add_data_folder, take_run_settings, train_once


class Measured(Scores):
    """Scores, parameters, the largest change of an output against the reference, and the spread of copies."""

    parameters: Size
    shift: NotNegative | None = None
    """The largest absolute difference between an output and that of the row's reference, if it has one."""
    spread: NotNegative | None = None
    """Of inner ensembles: how far copies lie from their mean, as a ratio of norms, averaged over layers."""
    diverged: bool = False
    """Whether training ended with a loss that is not finite; the scores are then those of guessing."""


def measure(options: Json, workspace: Workspace) -> Json:
    """Train a row, or load what another table trained, fold it, and measure it."""
    seeds = options.get("seeds", [options["seed"]])
    try:
        trained = [load_trained(options["training"] | {"seed": seed}, workspace) for seed in seeds]
    except Diverged:
        return describe_guessing(options, workspace)
    first = trained[0]
    made = fold(options["fold"], trained)
    workspace.report("scores")
    found = measure_scores(made) | {"parameters": count_parameters(made.ensemble), "spread": measure_spread(first.ensemble)}
    if "reference" in options:
        reference = load_trained(options["reference"] | {"seed": options["seed"]}, workspace)
        found["shift"] = measure_shift(made, reference)
    return found


def load_trained(settings: Json, workspace: Workspace) -> Trained:
    """Train once; the test rows are in the precision of the network."""
    trained = train_once(settings, workspace)
    return dataclasses.replace(trained, x=trained.x.to(next(trained.ensemble.parameters()).dtype))


def fold(how: str | None, trained: list[Trained]) -> Trained:
    """The first training with one plain network in place of its ensemble; as it is, unless it is to be folded."""
    first = trained[0]
    if how is None:
        return first
    if how == "mean":
        network = first.ensemble.member(0)
    elif how == "inverse variance":
        network = copy_plain(first.ensemble.net, average_copies)
    else:
        network = average_networks([each.ensemble.member(0) for each in trained])
    return dataclasses.replace(first, ensemble=convert(network, Single(), example=first.x[:2]).eval())


def average_copies(layer: Converted) -> nn.Module:
    """One layer with the weights and biases of all copies, averaged by inverse variance (eq. 11)."""
    assert isinstance(layer, Averaged | Largest)
    weights, biases = layer.copies() if isinstance(layer, Averaged) else (layer.weights, layer.biases)
    share = weigh_by_inverse_variance(weights)
    return layer.affine.make_layer(
        torch.tensordot(share, weights, 1), None if biases is None else torch.tensordot(share, biases, 1)
    )


def average_networks(networks: list[nn.Module]) -> nn.Module:
    """One network from several: convolutions averaged by inverse variance as copies are, everything else by the plain mean."""
    made = copy.deepcopy(networks[0])
    states = [each.state_dict() for each in networks]
    shares = {
        name: weigh_by_inverse_variance(torch.stack([state[f"{name}.weight"] for state in states]))
        for name, layer in made.named_modules()
        if isinstance(layer, nn.Conv2d)
    }

    def average(key: str, value: Tensor) -> Tensor:
        stacked = torch.stack([state[key] for state in states])
        share = shares.get(key.rpartition(".")[0], torch.full((len(states),), 1 / len(states)))
        return torch.tensordot(share.to(value), stacked, 1) if value.is_floating_point() else value

    made.load_state_dict({key: average(key, value) for key, value in states[0].items()})
    return made.eval()


def measure_shift(ours: Trained, theirs: Trained) -> float:
    """The largest absolute difference between outputs on the test rows."""
    answers = [each.ensemble.predict(each.x).outputs.double() for each in (ours, theirs)]
    return (answers[0] - answers[1]).abs().max().item()


def measure_spread(ensemble: Ensemble) -> float | None:
    """The norm of the copies' deviations from their mean over that of the mean, as a root mean square over copies."""
    ratios = []
    for layer in ensemble.modules():
        if isinstance(layer, Averaged):
            weights = layer.copies()[0].detach()
            mean = weights.mean(0)
            ratios.append(((weights - mean).square().sum() / len(weights) / mean.square().sum()).sqrt().item())
    return sum(ratios) / len(ratios) if ratios else None


def describe_guessing(options: Json, workspace: Workspace) -> Json:
    """The scores of guessing, of a training that diverged."""
    data = load_data(build_config(add_data_folder(take_run_settings(options["training"]), workspace)))
    share, nll, blocks = 1 / data.outputs, math.log(data.outputs), min(BLOCKS, len(data.test))
    return {
        **{"accuracy": share, "nll": nll, "ece": 0.0, "calibrated_nll": nll},
        **{"nll_blocks": [nll] * blocks, "error_blocks": [1 - share] * blocks},
        **{"member_accuracy": share, "member_nll": nll, "disagreement": 0.0, "parameters": 1, "diverged": True},
    }
