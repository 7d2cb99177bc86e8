"""`pluribus train`."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import FileError
from .app import app, fail
from .consent_options import HELP, consent_to_repeated, consent_to_typed, override_settings
from .setting_options import with_settings

EPILOG = """[bold]Examples[/]

pluribus train --data digits --method mimo --epochs 100

pluribus train --data mnist --model lenet5 --method variance:samples=10 --epochs 5

pluribus train --data "houses.csv:target=price,drop=\\[id]" --method deep-ensemble --members 5

pluribus train --data cifar10 --model my_nets:build --optimizer sgd --lr 0.1 --epochs 200

pluribus train --data digits --method inner,mimo,deep-ensemble --seeds 3 --workers 2

pluribus train --data digits --method mimo --teacher runs/digits-deep-ensemble-… --mixup 1 --epochs 200

pluribus train --config runs/…/config.yaml --seed 1   ·   pluribus train --resume runs/…"""

PANEL: Any = {"rich_help_panel": "The run", "show_default": False}
Members = Annotated[
    str | None,
    typer.Option(
        *("--members", "-m"),
        metavar="N",
        help="the size of the ensemble: its members, copies or samples",
        **PANEL | {"rich_help_panel": "What to learn"},
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="settings in YAML; options override them", **PANEL),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FOLDER", help="the folder of the run \\[a new folder in --runs]", **PANEL),
]
Runs = Annotated[Path, typer.Option("--runs", metavar="FOLDER", help="the folder of all runs \\[runs]", **PANEL)]
Resume = Annotated[
    Path | None, typer.Option("--resume", metavar="RUN", help="resume a run (or a grid) that was stopped", **PANEL)
]
Seeds = Annotated[
    str | None,
    typer.Option("--seeds", metavar="N|A,B,…", help="train several runs: a number of seeds, or a list of them", **PANEL),
]
Workers = Annotated[
    str,
    typer.Option(
        *("--workers", "-w"),
        metavar="N|dask://…|ray",
        help="how many runs at once: processes, or a cluster \\[1]",
        **PANEL,
    ),
]
Trust = Annotated[bool, typer.Option("--trust", help=HELP, **PANEL)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="show no progress bar", **PANEL)]


@app.command(epilog=EPILOG)
@with_settings()
def train(
    *,
    settings: dict[str, Any],
    members: Members = None,
    config: ConfigFile = None,
    out: Out = None,
    runs: Runs = Path("runs"),
    resume: Resume = None,
    seeds: Seeds = None,
    workers: Workers = "1",
    trust: Trust = False,
    quiet: Quiet = False,
) -> None:
    """Train a network with one of the methods. The folder of the run holds everything that other commands need.

    Several methods (between commas) or seeds make a grid of runs.
    """
    from ..experiments import check_workers
    from ..file_formats.reading import read_settings
    from ..runs.consent import check_consent

    check_workers(workers)
    if resume is not None:
        others, may_change = (config, out, members, seeds), {"data_dir", "devices", "strategy", "model", "teacher"}
        if any(value is not None for value in others) or set(settings) - may_change:
            raise FileError("--resume continues the run as it was configured: leave the other settings out")
        repeated = settings.pop("model", None)
        with consent_to_repeated(None if repeated is None else [repeated], trust):
            resume_run(resume, settings, workers, quiet)
        return
    with consent_to_typed(settings.get("model"), trust, config):
        wanted = override_settings(read_settings(config) if config else {}, settings)
        check_consent(wanted.get("model"), config)
        run_new(wanted, members, out, runs, seeds, workers, quiet, str(config) if config and not settings else "")


def run_new(
    wanted: dict[str, Any],
    members: str | None,
    out: Path | None,
    runs: Path,
    seeds: str | None,
    workers: str,
    quiet: bool,
    source: str,
) -> None:
    """Train a new run, or a grid of them. `source` is the file that holds all settings, if one does."""
    from ..runs.choices import split_choices
    from ..runs.config import build_config
    from ..runs.run_folder import name_new_folder

    method = wanted.get("method")
    methods: list[Any] = split_choices(method) or [method] if isinstance(method, str) else [method]
    if members is not None:
        methods = [set_size(method, members) for method in methods]
    if len(methods) > 1 or seeds is not None:
        run_new_grid(wanted, methods, seeds, workers, out or name_new_folder(runs, "grid"))
        return
    if methods[0] is not None:
        wanted["method"] = methods[0]
    made = build_config(wanted, source)
    run(made, choose_folder(out, runs, made), quiet)


def run(config: Any, path: Path, quiet: bool, resume: bool = False) -> None:
    """Train one run and print its result."""
    from ..comparison.terminal_tables import print_run
    from ..runs.consent import format_consent
    from ..runs.training import train_run
    from ..training.interrupts import Interrupted
    from ..training.trainer import is_leader

    try:
        result = train_run(config, path, resume=resume, progress=not quiet)
    except Interrupted:
        if not is_leader():
            raise SystemExit(130) from None
        fail(f"stopped and saved; continue with: pluribus train --resume {path}{format_consent()}", 130)
    if is_leader():
        print_run(result, path, format_consent())


def resume_run(path: Path, settings: dict[str, Any], workers: str, quiet: bool) -> None:
    """Continue the run or the grid in a folder."""
    from ..runs.config import read_config
    from ..runs.grid import Grid
    from ..runs.run_folder import open_run

    if (path / "grid.yaml").is_file():
        run_grid(Grid.open(path), workers)
        return
    found = open_run(path)
    run(read_config(found.config, **settings), found.path, quiet, resume=True)


def choose_folder(out: Path | None, runs: Path, config: Any) -> Path:
    """Return the folder of a new run. All processes of one run choose the same."""
    from ..runs.choices import parse_choice
    from ..runs.run_folder import name_new_folder

    if out is not None:
        return out
    inherited = os.environ.get("PLURIBUS_RUN")
    if inherited and "LOCAL_RANK" in os.environ:
        return Path(inherited)
    name = parse_choice(config.method["name"])["name"]
    title = "-".join([Path(config.data["name"]).stem, *([config.model["name"]] if config.model else []), name])
    if "TORCHELASTIC_RUN_ID" in os.environ:
        job = os.environ["TORCHELASTIC_RUN_ID"]
        path = runs / f"{title}-{job if job != 'none' else os.environ.get('MASTER_PORT', 'torchrun')}"
    else:
        path = name_new_folder(runs, title)
    os.environ["PLURIBUS_RUN"] = str(path)
    return path


def set_size(method: Any, members: str) -> dict[str, Any]:
    """Return the choice of a method with its size option set to `members`."""
    from ..core.spec import Spec
    from ..runs.config import ConfigError, build_spec, parse_method

    choice = parse_method(method)
    build_spec(choice)  # raises an error of its own for an unknown name
    option = Spec.registry[choice["name"].replace("_", "-")].size_option
    if option is None:
        raise ConfigError(f"{choice['name']} has no members to count: leave --members out")
    if not members.isdecimal() or len(members) > 18:
        raise ConfigError(f"--members must be a whole number, got {members!r}")
    return choice | {option: int(members)}


def run_new_grid(wanted: dict[str, Any], methods: list[Any], seeds: str | None, workers: str, path: Path) -> None:
    from ..runs.grid import Grid, parse_seeds

    run_grid(Grid.plan(path, wanted, methods, parse_seeds(seeds, wanted.get("seed", 0))), workers)


def run_grid(grid: Any, workers: str) -> None:
    """Train the runs of a grid and print their results."""
    from ..comparison.progress import grid_progress
    from ..comparison.terminal_tables import print_grid
    from ..runs.consent import format_consent
    from ..training.interrupts import Interrupted

    try:
        with grid_progress(grid) as report:
            results = grid.run(workers, report)
    except (Interrupted, KeyboardInterrupt):
        again = f"pluribus train --resume {grid.path}{format_consent()}"
        fail(f"stopped, each run at its last checkpoint; continue with: {again}", 130)
    print_grid(grid, results)
