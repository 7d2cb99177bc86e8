"""mimo/cost: parameters and FLOPs of WRN-28-10, as one network, as MIMO in training, and folded."""

from typing import Any

import torch
from torch import nn

import pluribus

from ...core.flop_counting import FlopCounter
from ...core.pytrees import Views
from ...file_formats.schema import Schema, Size
from ...methods.mimo import MIMO
from ...models.wide_resnet import wide_resnet
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, judge_claim

MEMBERS = 3
PUBLISHED = (36.479, 36.492, 10.559, 10.561)
"""Millions of parameters of one network and of MIMO; billions of FLOPs of both."""
SIZES = {"smoke": (10, 1), "cpu": (28, 10), "paper": (28, 10)}
"""Depth and width of the network at each scale: counting takes a second at any."""


def list_cells(scale: str) -> dict[str, Json]:
    depth, width = SIZES[scale]
    return {"counts": {"depth": depth, "width": width, "members": MEMBERS}}


class Measured(Schema):
    """Parameters, and FLOPs of a forward pass of one image, of the plain network, of MIMO and of its folded network."""

    parameters: Size
    mimo_parameters: Size
    folded_parameters: Size
    flops: Size
    mimo_flops: Size
    folded_flops: Size


def measure(options: Json, workspace: Workspace) -> Json:
    torch.manual_seed(0)
    net = wide_resnet(depth=options["depth"], width=options["width"]).eval()
    ensemble = pluribus.ensemble(net, MIMO(members=options["members"])).eval()
    image = torch.zeros(1, 3, 32, 32)
    workspace.report("counting")
    views = Views(image.expand(options["members"], *image.shape))
    ensemble(image)
    folded = ensemble.fold()
    return {
        "parameters": sum(parameter.numel() for parameter in net.parameters()),
        "mimo_parameters": sum(parameter.numel() for parameter in ensemble.parameters()),
        "folded_parameters": sum(parameter.numel() for parameter in folded.parameters()),
        "flops": count_flops(net, image),
        "mimo_flops": count_flops(ensemble, views),
        "folded_flops": count_flops(folded, image),
    }


def count_flops(network: nn.Module, x: Any) -> int:
    """The FLOPs of a forward pass: twice the multiplications of convolutions and linear layers."""
    with torch.no_grad(), FlopCounter() as counter:
        network(x)
    return counter.get_total_flops()


def tabulate(found: Found) -> list[Json]:
    cell = found.get("counts")
    if cell is None:
        return []
    return [
        {"network": name, "parameters": cell[f"{key}parameters"] / 1e6, "flops": cell[f"{key}flops"] / 1e9}
        for name, key in (("one network", ""), ("MIMO, M = 3", "mimo_"), ("MIMO, folded", "folded_"))
    ]


def judge(found: Found) -> list[Verdict]:
    cell = found["counts"]
    ours = [cell[f"{kind}{key}"] / unit for key, unit in (("parameters", 1e6), ("flops", 1e9)) for kind in ("", "mimo_")]
    more = [cell[f"mimo_{key}"] / cell[key] - 1 for key in ("parameters", "flops")]
    return [
        judge_claim(
            "MIMO takes WRN-28-10 from 36.479M to 36.492M parameters and from 10.559G to 10.561G FLOPs.",
            "all four numbers within one unit of their last printed digit (they may be cut or rounded); direction: both grow, "
            "by less than 0.1 %",
            f"{ours[0]:.3f}M to {ours[1]:.3f}M, {ours[2]:.3f}G to {ours[3]:.3f}G",
            all(abs(value - published) < 1e-3 for value, published in zip(ours, PUBLISHED, strict=True)),
            all(0 < each < 1e-3 for each in more),
        ),
        judge_claim(
            "Not in the paper: the folded network has the FLOPs of one network but for its heads.",
            "at most 1.0001 times the FLOPs of one network; direction: at most those of MIMO in training",
            f"{cell['folded_flops'] / cell['flops']:.6f} times",
            cell["folded_flops"] <= 1.0001 * cell["flops"],
            cell["folded_flops"] <= cell["mimo_flops"],
        ),
    ]


RECIPE = Recipe(
    id="mimo/cost",
    title="Parameters and FLOPs",
    question="What do M inputs and M outputs cost?",
    source="footnote 2, section 2",
    scales={
        "smoke": Scale("WRN-10-1.", list_cells("smoke")),
        "cpu": Scale("WRN-28-10 for ten classes, one image; the published setting.", list_cells("cpu")),
        "paper": Scale("WRN-28-10 for ten classes, one image.", list_cells("paper")),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"network": "network", "parameters": "parameters, M", "flops": "FLOPs, G"},
    published=[
        {"network": "one network", "parameters": PUBLISHED[0], "flops": PUBLISHED[2]},
        {"network": "MIMO, M = 3", "parameters": PUBLISHED[1], "flops": PUBLISHED[3]},
    ],
)
