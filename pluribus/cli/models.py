"""`pluribus models`."""

from ..core.terminal import create_console
from .app import app
from .methods import Name


@app.command(epilog="[bold]Examples[/]\n\npluribus models\n\npluribus models wrn")
def models(name: Name = None) -> None:
    """List the networks, their options and sizes."""
    from rich.table import Table

    from ..core.suggestions import describe_unknown
    from ..models.registry import MODELS, ModelError, build

    console = create_console()
    if name is not None and name not in MODELS:
        raise ModelError(describe_unknown("model", name, MODELS))
    table = Table("name", "what", "options", "parameters", caption="parameters: on 3×32×32 images and ten classes")
    import torch

    for key, known in MODELS.items():
        if name in (None, key):
            with torch.device("meta"):
                net = build(key, (3, 32, 32), 10)
            count = sum(parameter.numel() for parameter in net.parameters())
            table.add_row(key, known.summary, ", ".join(known.options), f"{count:,}")
    console.print(table)
    console.print("Options: --model wrn:depth=16,width=4. Your own network: --model package.module:factory", style="dim")
    console.print(
        "A factory takes what it needs of classes (or outputs), channels, size, inputs and shape, and its own options.",
        style="dim",
    )
