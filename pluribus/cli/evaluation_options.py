"""The options that say how to evaluate; `evaluate` and `compare` share them."""

from typing import Annotated, Any

import typer

PANEL: Any = {"show_default": False, "rich_help_panel": "How to evaluate"}
Corruptions = Annotated[
    str | None,
    typer.Option("--corruptions", metavar="none|standard|all", help="15 standard corruptions of images, or all 19", **PANEL),
]
Ood = Annotated[
    str | None,
    typer.Option("--ood", metavar="NAME,…", help="out-of-distribution sets; `noise` and `shuffled` are generated", **PANEL),
]
Attack = Annotated[
    str | None,
    typer.Option(
        "--attack", metavar="linf|l2|fgsm[:KEY=VALUE,…]", help="attack test images; the options are those of an Attack", **PANEL
    ),
]
Temperature = Annotated[
    bool | None,
    typer.Option("--temperature/--no-temperature", help="also report scores after temperature scaling \\[yes]", **PANEL),
]
ShiftRows = Annotated[
    int | None, typer.Option("--shift-rows", metavar="N", help="number of images to corrupt \\[1000]", **PANEL)
]
AttackRows = Annotated[
    int | None, typer.Option("--attack-rows", metavar="N", help="number of images to attack \\[200]", **PANEL)
]
