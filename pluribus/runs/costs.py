"""What a method costs, as a ratio to the base network: counted, not timed."""

import functools

import torch

from ..analysis.cost import choose_deployment
from ..core.convert import ensemble
from ..core.spec import Spec
from ..models.small import lenet5


@functools.cache
def costs(spec: Spec) -> tuple[float, float]:
    """Parameters and FLOPs of an answer, as an ensemble or folded, whichever is the one to deploy; LeNet-5 is the base."""
    with torch.random.fork_rng(devices=[]):
        cost = ensemble(lenet5(), spec, example=torch.zeros(2, 1, 28, 28)).eval().describe()
    _, flops, parameters = choose_deployment(cost)
    return parameters / cost.base_parameters, (flops or 0) / (cost.base_flops or 1)
