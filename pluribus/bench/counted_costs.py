"""What `pluribus methods` shows of each method: its parameters and FLOPs, which are counted and not timed."""

import functools

import torch

from ..analysis.cost import choose_deployment
from ..core.convert import ensemble as convert
from ..core.spec import Spec
from ..models.small import lenet5


@functools.cache
def count_relative_costs(spec: Spec) -> tuple[float, float]:
    """Parameters and FLOPs of a prediction as ratios to the base network, LeNet-5; folded if that is the form to deploy.

    >>> from pluribus import DeepEnsemble
    >>> count_relative_costs(DeepEnsemble(members=2))
    (2.0, 2.0)
    """
    with torch.random.fork_rng(devices=[]):
        cost = convert(lenet5(), spec, example=torch.zeros(2, 1, 28, 28)).eval().describe()
    _, flops, parameters = choose_deployment(cost)
    return parameters / cost.base_parameters, (flops or 0) / (cost.base_flops or 1)
