"""`pluribus compare`."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import FileError
from ..core.suggestions import describe_unknown
from .app import app, fail
from .consent_options import HELP, consent_to_repeated, consent_to_typed, override_settings
from .evaluation_options import Attack, AttackRows, Corruptions, Ood, ShiftRows, Temperature
from .setting_options import with_settings

EPILOG = """[bold]Examples[/]

pluribus compare --data digits

pluribus compare --data mnist --model lenet5 --methods inner,mimo,deep-ensemble --seeds 3 --ood fashion-mnist,kmnist

pluribus compare --data photos/ --model my_nets:build --budget training-flops --epochs 20

pluribus compare --data digits --tune 8

pluribus compare --data cifar10 --model small-cnn --corruptions standard --ood svhn --attack linf

pluribus compare --data digits --methods single,deep-ensemble --distil single,multihead:members=4 --student epochs=60,mixup=1

pluribus compare --resume runs/compare-…"""

PANEL: Any = {"rich_help_panel": "The comparison", "show_default": False}
Methods = Annotated[
    str | None,
    typer.Option("--methods", metavar="all|NAME[:KEY=VALUE,…],…", help="the methods to compare \\[all]", **PANEL),
]
Distil = Annotated[
    str | None,
    typer.Option(
        "--distil",
        metavar="NAME[:KEY=VALUE,…],…",
        help="students: methods that are trained to answer as the deep ensemble of the same seed does",
        **PANEL,
    ),
]
Student = Annotated[
    str | None,
    typer.Option(
        "--student",
        metavar="KEY=VALUE,…",
        help="settings of training that students have in place of the others', such as epochs=60,mixup=1",
        **PANEL,
    ),
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
Tune = Annotated[
    str | None,
    typer.Option(
        "--tune",
        metavar="N",
        help="give every method N trials, and train it with the best options and settings \\[no tuning]",
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
RESUMED = "resume a comparison that was stopped; methods and students that are named beside it are added to it"
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="FOLDER",
        help="resume a comparison that was stopped; with --methods or --distil, add these to it",
        **PANEL,
    ),
]

Trust = Annotated[bool, typer.Option("--trust", help=HELP, **PANEL)]


@app.command(epilog=EPILOG)
@with_settings(leave_out=("method", "teacher"))
def compare(
    *,
    methods: Methods = None,
    distil: Distil = None,
    student: Student = None,
    seeds: Seeds = None,
    budget: Budget = None,
    tune: Tune = None,
    workers: Workers = None,
    config: ConfigFile = None,
    out: Out = None,
    runs: Runs = Path("runs"),
    resume: Resume = None,
    trust: Trust = False,
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
    from ..comparison import api
    from ..comparison.terminal_tables import print_comparison
    from ..file_formats.reading import read_settings
    from ..runs.config import Config, ConfigError
    from ..runs.consent import check_consent, format_consent
    from ..runs.run_folder import name_new_folder
    from ..training.interrupts import Interrupted

    evaluation: dict[str, Any] = {
        "corruptions": corruptions,
        "ood": ood,
        "attack": attack,
        "temperature": temperature,
        "shift_rows": shift_rows,
        "attack_rows": attack_rows,
    }
    if resume is not None:
        others = (config, out, seeds, budget, tune, *evaluation.values())
        if set(settings) - {"model"} or any(value is not None for value in others):
            raise FileError(
                "--resume continues the comparison as it was configured: leave the other settings out, except --methods, "
                "--distil and --student, which add to it"
            )
        path, wanted = resume, {}
        repeated = settings.get("model")
        consent = consent_to_repeated(None if repeated is None else [repeated], trust)
    else:
        wanted = override_settings(read_settings(config) if config else {}, settings)
        unknown = [name for name in wanted if name not in Config.model_fields]
        if unknown:
            raise ConfigError(describe_unknown("setting", unknown[0], Config.model_fields))
        path = out or name_new_folder(runs, f"compare-{name_data(wanted)}")
        consent = consent_to_typed(settings.get("model"), trust, config)
    with consent:
        check_consent(wanted.get("model"), config)
        try:
            done = api.compare(
                wanted.pop("model", None),
                wanted.pop("data", "digits"),
                methods=methods,
                distil=distil,
                student=student,
                seeds=seeds or 3,
                budget=budget or "epochs",
                tune=tune,
                folder=path,
                resume=resume is not None,
                workers=workers or min(os.cpu_count() or 1, 4),
                command=shlex.join(["pluribus", *sys.argv[1:]]),
                **evaluation,
                **wanted,
            )
        except (Interrupted, KeyboardInterrupt):
            again = f"pluribus compare --resume {path}{format_consent()}"
            fail(f"stopped, each run at its last checkpoint; continue with: {again}", 130)
    print_comparison(done.results, path)


def name_data(wanted: dict[str, Any]) -> str:
    """Return the name of the data, for the name of the folder."""
    from ..runs.choices import parse_choice

    data = wanted.get("data", "digits")
    return Path(parse_choice(data)["name"] if isinstance(data, str) else str(data.get("name", "data"))).stem
