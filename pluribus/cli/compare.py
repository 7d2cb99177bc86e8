"""`pluribus compare`."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import FileError
from .app import app, fail
from .evaluation_options import Attack, AttackRows, Corruptions, Ood, ShiftRows, Temperature
from .setting_options import with_settings

EPILOG = """[bold]Examples[/]

pluribus compare --data digits

pluribus compare --data mnist --model lenet5 --methods inner,mimo,deep-ensemble --seeds 3 --ood fashion-mnist,kmnist

pluribus compare --data photos/ --model my_nets:build --budget training-flops --epochs 20

pluribus compare --data cifar10 --model small-cnn --corruptions standard --ood svhn --attack linf

pluribus compare --resume runs/compare-…"""

PANEL: Any = {"rich_help_panel": "The comparison", "show_default": False}
Methods = Annotated[
    str | None,
    typer.Option("--methods", metavar="all|NAME[:KEY=VALUE,…],…", help="the methods to compare \\[all]", **PANEL),
]
Seeds = Annotated[
    str | None, typer.Option("--seeds", metavar="N|A,B,…", help="a number of seeds, or a list of them \\[3]", **PANEL)
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="KIND",
        help="what is held equal: epochs, training-flops, deployed-flops or parameters \\[epochs]",
        **PANEL,
    ),
]
Workers = Annotated[
    str | None,
    typer.Option(
        *("--workers", "-w"), metavar="N|dask://…|ray", help="how many runs at once \\[one for each core, up to 4]", **PANEL
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="settings in YAML; options override them", **PANEL),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FOLDER", help="the folder of the comparison \\[a new folder in --runs]", **PANEL),
]
Runs = Annotated[Path, typer.Option("--runs", metavar="FOLDER", help="the folder of all runs \\[runs]", **PANEL)]
Resume = Annotated[
    Path | None, typer.Option("--resume", metavar="FOLDER", help="resume a comparison that was stopped", **PANEL)
]


@app.command(epilog=EPILOG)
@with_settings(leave_out=("method",))
def compare(
    *,
    methods: Methods = None,
    seeds: Seeds = None,
    budget: Budget = None,
    workers: Workers = None,
    config: ConfigFile = None,
    out: Out = None,
    runs: Runs = Path("runs"),
    resume: Resume = None,
    corruptions: Corruptions = None,
    ood: Ood = None,
    attack: Attack = None,
    temperature: Temperature = None,
    shift_rows: ShiftRows = None,
    attack_rows: AttackRows = None,
    settings: dict[str, Any],
) -> None:
    """Train and evaluate methods on your data within one budget, and write one page to decide by.

    The page has the spread of every number over seeds, and for each method its share of a deep ensemble's gain and its cost.
    """
    from ..experiments import check_workers
    from ..runs import config as configs
    from ..runs import run_folder as folders
    from ..runs.comparison import ComparisonFolder, list_methods
    from ..runs.config import split_choices
    from ..runs.evaluation import build_evaluation_settings
    from ..runs.grid import seeds_of
    from ..training.interrupts import Interrupted
    from .show_compare import comparison_progress, print_comparison

    workers = workers or str(min(os.cpu_count() or 1, 4))
    check_workers(workers)
    if methods is not None and not split_choices(methods):
        raise configs.ConfigError(f"methods must be all, or names between commas, got {methods!r}")
    evaluation = {
        "corruptions": corruptions,
        "ood": tuple(split_choices(ood)) if ood else None,
        "attack": attack,
        "temperature": temperature,
        "shift_rows": shift_rows,
        "attack_rows": attack_rows,
    }
    if resume is not None:
        if settings or any(value is not None for value in (config, out, methods, seeds, budget, *evaluation.values())):
            raise FileError("--resume continues the comparison as it was configured: leave the other settings out")
        made = ComparisonFolder.open(resume)
    else:
        wanted = (configs.read_settings(config) if config else {}) | settings
        made = ComparisonFolder.plan(
            out or folders.name_new_folder(runs, f"compare-{name_data(wanted)}"),
            wanted,
            [name for each in split_choices(methods or "all") for name in (list_methods() if each == "all" else [each])],
            seeds_of(seeds or "3", wanted.get("seed", 0)),
            budget=budget or "epochs",
            judging=build_evaluation_settings(**evaluation),
            command=shlex.join(["pluribus", *sys.argv[1:]]),
        )
    try:
        with comparison_progress(made.grid) as (report, say):
            results = made.run(workers, report, say)
    except (Interrupted, KeyboardInterrupt):
        fail(f"stopped, each run at its last checkpoint; continue with: pluribus compare --resume {made.path}", 130)
    print_comparison(results, made.path)


def name_data(wanted: dict[str, Any]) -> str:
    """Return the name of the data, for the name of the folder."""
    from ..runs.config import parse_choice

    data = wanted.get("data", "digits")
    return Path(parse_choice(data)["name"] if isinstance(data, str) else str(data.get("name", "data"))).stem
