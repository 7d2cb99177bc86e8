"""`pluribus compare`."""

import inspect
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import FileError
from ..core.suggestions import describe_unknown
from .app import app, fail
from .evaluate import Attacked, AttackRows, Corruptions, Ood, ShiftRows, Temperature
from .setting_options import make_setting_options, parse_settings

EPILOG = """[bold]Examples[/]

pluribus compare --data digits

pluribus compare --data mnist --model lenet5 --methods inner,mimo,deep-ensemble --seeds 3 --ood fashion-mnist,kmnist

pluribus compare --data photos/ --model my_nets:build --budget training-flops --epochs 20

pluribus compare --data cifar10 --model small-cnn --corruptions standard --ood svhn --attack linf

pluribus compare --resume runs/compare-…"""


def compare(
    *,
    methods: str | None = None,
    seeds: str | None = None,
    budget: str | None = None,
    corruptions: str | None = None,
    ood: str | None = None,
    attack: str | None = None,
    temperature: bool | None = None,
    shift_rows: int | None = None,
    attack_rows: int | None = None,
    config_file: Path | None = None,
    out: Path | None = None,
    runs: Path = Path("runs"),
    resume: Path | None = None,
    workers: str | None = None,
    **options: Any,
) -> None:
    """Train and judge methods on your data, within one budget, and leave one page to decide by.

    Every number with its spread over seeds; for each method the share of a deep ensemble's gain that it keeps, beside its cost.
    """
    from ..runs import api, config
    from ..runs.run_folder import name_new_folder
    from ..runs.text_tables import print_comparison
    from ..training.interrupts import Interrupted

    given = parse_settings(options)
    evaluation: dict[str, Any] = {
        "corruptions": corruptions,
        "ood": ood,
        "attack": attack,
        "temperature": temperature,
        "shift_rows": shift_rows,
        "attack_rows": attack_rows,
    }
    if resume is not None:
        if given or any(value is not None for value in (config_file, out, methods, seeds, budget, *evaluation.values())):
            raise FileError("--resume goes on with the comparison as it was configured: leave the other settings out")
        path, settings = resume, {}
    else:
        settings = (config.read_settings(config_file) if config_file else {}) | given
        unknown = [name for name in settings if name not in config.Config.model_fields]
        if unknown:
            raise config.ConfigError(describe_unknown("setting", unknown[0], config.Config.model_fields))
        path = out or name_new_folder(runs, f"compare-{name_data(settings)}")
    try:
        done = api.compare(
            settings.pop("model", None),
            settings.pop("data", "digits"),
            methods=methods,
            seeds=seeds or 3,
            budget=budget or "epochs",
            folder=path,
            resume=resume is not None,
            workers=workers or min(os.cpu_count() or 1, 4),
            command=shlex.join(["pluribus", *sys.argv[1:]]),
            **evaluation,
            **settings,
        )
    except (Interrupted, KeyboardInterrupt):
        fail(f"stopped, each run at its last checkpoint; go on with: pluribus compare --resume {path}", 130)
    print_comparison(done.results, path)


def name_data(wanted: dict[str, Any]) -> str:
    """The data, for the folder's name."""
    from ..runs.config import parse_choice

    data = wanted.get("data", "digits")
    return Path(parse_choice(data)["name"] if isinstance(data, str) else str(data.get("name", "data"))).stem


def _signature() -> inspect.Signature:
    """Our own flags, those of judging, and one for every setting but the method."""

    def flag(kind: Any, *names: str, panel: str = "The comparison", **about: Any) -> Any:
        option: Any = typer.Option(*names, **about, rich_help_panel=panel, show_default=False)
        return Annotated[kind, option]

    path = Path | None
    own = {
        "methods": flag(str | None, "--methods", metavar="all|NAME[:KEY=VALUE,…],…", help="what to compare \\[all]"),
        "seeds": flag(str | None, "--seeds", metavar="N|A,B,…", help="so many seeds, or these \\[3]"),
        "budget": flag(
            *(str | None, "--budget"),
            metavar="KIND",
            help="held equal: epochs, training-flops, deployed-flops or parameters \\[epochs]",
        ),
        "workers": flag(str | None, "--workers", "-w", metavar="N|dask://…|ray", help="runs at once \\[a core each, up to 4]"),
        "config_file": flag(path, "--config", "-c", metavar="FILE", help="settings in YAML; flags override it"),
        "out": flag(path, "--out", "-o", metavar="FOLDER", help="where it goes \\[a new folder in --runs]"),
        "runs": flag(Path, "--runs", metavar="FOLDER", help="where runs lie \\[runs]"),
        "resume": flag(path, "--resume", metavar="FOLDER", help="go on with a comparison that was stopped"),
        "corruptions": Corruptions,
        "ood": Ood,
        "attack": Attacked,
        "temperature": Temperature,
        "shift_rows": ShiftRows,
        "attack_rows": AttackRows,
    }
    parameters = inspect.signature(compare).parameters
    mine = [parameters[name].replace(annotation=annotation) for name, annotation in own.items()]
    return inspect.Signature([*mine, *(each for each in make_setting_options() if each.name != "method")])


compare.__signature__ = _signature()  # type: ignore[attr-defined]
compare.__annotations__ = {parameter.name: parameter.annotation for parameter in _signature().parameters.values()}
app.command(epilog=EPILOG)(compare)
