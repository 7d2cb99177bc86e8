"""FLOPs are those of torch's own counter, on the meta device, too."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import pluribus
from pluribus import models
from pluribus.core.affine import copy_to_meta
from pluribus.core.describe import count_flops
from pluribus.core.flop_counting import count_call_flops


def count_by_torch(run):
    torch.backends.mha.set_fastpath_enabled(False)  # torch's counter does not know the fused transformer kernels
    try:
        with FlopCounterMode(display=False) as counter:
            run()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    return counter.get_total_flops()


NETWORKS = dict.fromkeys(("resnet", "small-cnn", "vit", "densenet40", "fast-cnn"), (1, 16, 16)) | {"mlp": (8,)}
"""With batch and layer normalization, attention, concatenations, pooling, dense layers."""


@pytest.mark.parametrize("name", NETWORKS)
def test_on_the_meta_device_they_are_those_of_torch(name):
    net = models.build(name, NETWORKS[name], 3, **({"depth": 8} if name == "resnet" else {})).eval()
    x = torch.randn(1, *NETWORKS[name])
    hollow = copy_to_meta(net)
    with torch.no_grad():
        expected = count_by_torch(lambda: hollow(x.to("meta")))
        assert count_flops(net, x) == expected > 0
        if name != "vit":  # torch does not count the attention that the CPU computes in one kernel
            assert count_by_torch(lambda: net(x)) == expected


def test_of_a_training_step_they_are_those_of_torch():
    net = pluribus.ensemble(models.build("resnet", (1, 8, 8), 3, depth=8), pluribus.BatchEnsemble(members=2))
    x, y = torch.randn(4, 1, 8, 8), torch.tensor([0, 1, 2, 0])
    net.loss(x, y, examples=4)
    assert count_call_flops(lambda: net.loss(x, y, examples=4).backward()) == count_by_torch(
        lambda: net.loss(x, y, examples=4).backward()
    )


def test_in_inference_mode_where_operations_arrive_whole_they_are_those_of_torch():
    net, x = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 3)), torch.randn(2, 1, 8, 8)
    with torch.inference_mode():
        assert count_call_flops(lambda: net(x)) == count_by_torch(lambda: net(x)) > 0
