"""`pluribus train`."""

import inspect
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import FileError
from .app import app, fail
from .setting_options import make_setting_options, parse_settings

EPILOG = """[bold]Examples[/]

pluribus train --data digits --method mimo --epochs 100

pluribus train --data mnist --model lenet5 --method variance:samples=10 --epochs 5

pluribus train --data "houses.csv:target=price,drop=\\[id]" --method deep-ensemble --members 5

pluribus train --data cifar10 --model my_nets:build --optimizer sgd --lr 0.1 --epochs 200

pluribus train --data digits --method inner,mimo,deep-ensemble --seeds 3 --workers 2

pluribus train --config runs/…/config.yaml --seed 1   ·   pluribus train --resume runs/…"""


def train(
    *,
    config: Path | None = None,
    out: Path | None = None,
    runs: Path = Path("runs"),
    resume: Path | None = None,
    members: str | None = None,
    seeds: str | None = None,
    workers: str = "1",
    quiet: bool = False,
    **options: Any,
) -> None:
    """Train a network by one of the methods, and leave a run folder that everything else reads.

    Several methods (between commas) or seeds make a grid of runs.
    """
    from ..experiments import check_workers
    from ..runs import config as configs
    from ..runs import run_folder as folders
    from ..runs.config import split_choices
    from ..runs.text_tables import print_run
    from ..runs.training import is_leader
    from ..runs.training import train_run as start
    from ..training.interrupts import Interrupted

    said = parse_settings(options)
    check_workers(workers)
    if resume is not None:
        told = (config, out, members, seeds)
        if any(value is not None for value in told) or set(said) - {"data_dir", "devices"}:
            raise FileError("--resume goes on with the run as it was configured: leave the other settings out")
        if (resume / "grid.yaml").is_file():
            resume_grid(resume, workers)
            return
        run = folders.open_run(resume)
        made = configs.build_config(configs.read_settings(run.config) | said, str(run.config))
        path = run.path
    else:
        wanted = (configs.read_settings(config) if config else {}) | said
        method = wanted.get("method")
        methods: list[Any] = split_choices(method) or [method] if isinstance(method, str) else [method]
        if members is not None:
            methods = [set_size(method, members) for method in methods]
        if len(methods) > 1 or seeds is not None:
            run_new_grid(wanted, methods, seeds, workers, out or folders.name_new_folder(runs, "grid"))
            return
        if methods[0] is not None:
            wanted["method"] = methods[0]
        made = configs.build_config(wanted, str(config) if config and not said else "")
        path = choose_folder(out, runs, made)
    try:
        done = start(made, path, resume=resume is not None, progress=not quiet)
    except Interrupted:
        if not is_leader():
            raise SystemExit(130) from None
        fail(f"stopped, and saved; go on with: pluribus train --resume {path}", 130)
    if is_leader():
        print_run(done, path)


def choose_folder(out: Path | None, runs: Path, config: Any) -> Path:
    """The run's folder: of several processes, one that they all come to."""
    from ..runs import run_folder as folders
    from ..runs.config import parse_choice

    if out is not None:
        return out
    told = os.environ.get("PLURIBUS_RUN")
    if told and "LOCAL_RANK" in os.environ:
        return Path(told)
    name = parse_choice(config.method["name"])["name"]
    title = "-".join([Path(config.data["name"]).stem, *([config.model["name"]] if config.model else []), name])
    if "TORCHELASTIC_RUN_ID" in os.environ:
        job = os.environ["TORCHELASTIC_RUN_ID"]
        path = runs / f"{title}-{job if job != 'none' else os.environ.get('MASTER_PORT', 'torchrun')}"
    else:
        path = folders.name_new_folder(runs, title)
    os.environ["PLURIBUS_RUN"] = str(path)
    return path


def set_size(method: Any, members: str) -> dict[str, Any]:
    """The method with so many members, copies or samples, whichever it counts."""
    from ..core.spec import Spec
    from ..runs.config import ConfigError, build_spec, parse_method

    choice = parse_method(method)
    build_spec(choice)  # an unknown name is said by its own sentence
    kind = Spec.registry[choice["name"].replace("_", "-")]
    for option in ("members", "copies", "samples"):
        if option in kind.__dataclass_fields__:
            if not members.isdecimal():
                raise ConfigError(f"--members must be a whole number, got {members!r}")
            return choice | {option: int(members)}
    raise ConfigError(f"{choice['name']} has no members to count: leave --members out")


def run_new_grid(wanted: dict[str, Any], methods: list[Any], seeds: str | None, workers: str, path: Path) -> None:
    from ..runs.grid import Grid, parse_seeds

    made = Grid.plan(path, wanted, methods, parse_seeds(seeds, wanted.get("seed", 0)))
    run_grid(made, workers)


def resume_grid(path: Path, workers: str) -> None:
    from ..runs.grid import Grid

    run_grid(Grid.open(path), workers)


def run_grid(made: Any, workers: str) -> None:
    from ..runs.progress import grid_progress
    from ..runs.text_tables import print_grid
    from ..training.interrupts import Interrupted

    try:
        with grid_progress(made) as report:
            results = made.run(workers, report)
    except (Interrupted, KeyboardInterrupt):
        fail(f"stopped, each run at its last checkpoint; go on with: pluribus train --resume {made.path}", 130)
    print_grid(made, results)


def _signature() -> inspect.Signature:
    """Our own flags, and one for every setting."""

    def flag(kind: Any, *names: str, **about: Any) -> Any:
        option: Any = typer.Option(*names, **{"rich_help_panel": "The run"} | about, show_default=False)
        return Annotated[kind, option]

    path = Path | None
    several = "several runs at once: processes, or a cluster \\[1]"
    own = {
        "config": flag(path, "--config", "-c", metavar="FILE", help="settings in YAML; flags override it"),
        "out": flag(path, "--out", "-o", metavar="FOLDER", help="where the run goes \\[a new folder in --runs]"),
        "runs": flag(Path, "--runs", metavar="FOLDER", help="where runs lie \\[runs]"),
        "resume": flag(path, "--resume", metavar="RUN", help="go on with a run (or a grid) that was stopped"),
        "seeds": flag(str | None, "--seeds", metavar="N|A,B,…", help="several runs: so many seeds, or these"),
        "workers": flag(str, "--workers", "-w", metavar="N|dask://…|ray", help=several),
        "quiet": flag(bool, "--quiet", "-q", help="no progress bar"),
        "members": flag(
            *(str | None, "--members", "-m"),
            metavar="N",
            help="members, copies or samples: what the method counts",
            rich_help_panel="What to learn",
        ),
    }
    parameters = inspect.signature(train).parameters
    mine = [parameters[name].replace(annotation=annotation) for name, annotation in own.items()]
    return inspect.Signature([*make_setting_options(), *mine])


train.__signature__ = _signature()  # type: ignore[attr-defined]
train.__annotations__ = {parameter.name: parameter.annotation for parameter in _signature().parameters.values()}
app.command(epilog=EPILOG)(train)
