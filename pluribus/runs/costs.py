"""What a method costs, as a ratio to the base network: counted, not timed."""

import functools

import torch

from ..core.convert import ensemble
from ..core.spec import Spec
from ..models.small import lenet5


@functools.cache
def costs(spec: Spec) -> tuple[float, float]:
    """Parameters to store and FLOPs of an answer, as an ensemble or folded, whichever is less; LeNet-5 is the base."""
    with torch.random.fork_rng(devices=[]):
        cost = ensemble(lenet5(), spec, example=torch.zeros(2, 1, 28, 28)).eval().describe()
    parameters = min(cost.parameters, cost.deployed_parameters or cost.parameters)
    flops = min(cost.flops or 0, cost.deployed_flops or cost.flops or 0)
    return parameters / cost.base_parameters, flops / (cost.base_flops or 1)
