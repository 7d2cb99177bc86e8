"""`pluribus methods`."""

import dataclasses
from typing import Annotated

import typer

from ..core.terminal import assemble_text, create_console
from .app import app

Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="show one of them in detail", show_default=False)]


@app.command(epilog="[bold]Examples[/]\n\npluribus methods\n\npluribus methods mimo")
def methods(name: Name = None) -> None:
    """List the methods: what each does, its options and its cost."""
    from rich.table import Table

    from ..bench.counted_costs import count_relative_costs
    from ..core.spec import Spec
    from ..core.suggestions import describe_unknown
    from ..runs.config import ConfigError

    if name is not None and name not in Spec.registry:
        raise ConfigError(describe_unknown("method", name, Spec.registry))
    console = create_console()
    if name is None:
        table = Table("name", "what", "parameters", "FLOPs", caption="LeNet-5 with each method at its defaults, × the base")
        for key, kind in Spec.registry.items():
            parameters, flops = count_relative_costs(kind())
            table.add_row(key, read_summary(kind), f"{parameters:.2f}", f"{flops:.2f}")
        console.print(table)
        console.print("The options of one: pluribus methods NAME", style="dim")
        return
    kind = Spec.registry[name]
    import inspect

    console.print(assemble_text((name, "bold"), f"  {kind.__name__}"))
    console.print(inspect.cleandoc(kind.__doc__ or ""))
    table = Table("option", "default")
    for field in dataclasses.fields(kind):
        table.add_row(field.name, str(field.default))
    console.print(table)
    parameters, flops = count_relative_costs(kind())
    console.print(f"on LeNet-5: {parameters:.2f} × the parameters and {flops:.2f} × the FLOPs of the base network")
    module = inspect.getmodule(kind)
    paper = (inspect.getdoc(module) or "").strip().split("\n\n")[-1] if module else ""
    console.print(" ".join(paper.split()), style="dim")
    console.print(f"pluribus train --data digits --method {name}", style="dim")


def read_summary(kind: type) -> str:
    """Return the first line of a docstring."""
    return (kind.__doc__ or "").strip().splitlines()[0]
