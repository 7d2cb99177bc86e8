"""`pluribus.compare` and `pluribus.evaluate`: the main jobs as Python functions. The command line calls the same code."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from ..core.ensemble import Ensemble
from ..core.modes import copy_for_evaluation
from ..core.spec import list_methods
from ..core.texts import quote
from ..data import Data
from ..data.dataset import Part, number_classes, take_no_rows
from ..data.preparation import Preparation
from ..experiments import check_workers
from ..runs.choices import parse_choice, split_choices
from ..runs.config import ConfigError
from ..runs.consent import Trust, find_model_name, give_consent
from ..runs.evaluation import build_evaluation_settings, evaluate_case, measure_cost
from ..runs.evaluation_case import EvaluationCase
from ..runs.grid import parse_seeds
from ..runs.loading import load_set, passed_objects, set_samples
from .comparison_folder import ComparisonFolder
from .extension import extend_comparison
from .passed_data import build_data, gather_rows
from .progress import comparison_progress, row_progress
from .result_objects import Comparison, Evaluation
from .students import expand_students

Network = nn.Module | Callable[..., nn.Module] | str | Mapping[str, Any]


def compare(
    network: Network | None = None,
    data: Any = "digits",
    *,
    test: Any = None,
    methods: Any = None,
    distil: Any = None,
    student: str | Mapping[str, Any] | None = None,
    seeds: int | str | Sequence[int] = 3,
    budget: str = "epochs",
    tune: int | str | None = None,
    corruptions: str | None = None,
    ood: Sequence[str] | str | None = None,
    attack: Any = None,
    temperature: bool | None = None,
    shift_rows: int | None = None,
    attack_rows: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    trust: Trust = False,
    workers: int | str = 1,
    progress: bool = True,
    command: str = "",
    **settings: Any,
) -> Comparison:
    """Train and evaluate ensemble methods on one network and one data set, and recommend one.

    Args:
        network: a network; a function that returns one; a name such as "resnet20" or "package.module:factory"; None for the
            usual network for such data. Of a network object, every seed trains a copy whose trainable weights are drawn anew,
            at the scale that they have: weights that are trained already are not used. A function is called for each run, after
            the seed is set, and its weights are used as they are. It gets the arguments `classes`, `outputs`, `channels`,
            `size`, `inputs` and `shape` that it has.
        data: a name or path, as `pluribus.data.load` takes it; a `Data`; or training rows: a pair of tensors (x, y), a Dataset
            or a DataLoader, which is read once into memory. Whole targets are labels, real ones belong to a regression.
        test: test rows for such training rows. Without any, half of the validation rows take their place.
        methods: names with options ("mimo", "mimo:members=3"), specs (`pluribus.MIMO(members=3)`), or None for all methods. The
            single network is added, because gains are over it.
        distil: students, as `methods` names them: each is trained to answer as the deep ensemble of the same seed does, once
            that is trained. `teacher_weight` and `teacher_temperature` are settings of theirs.
        student: settings of training that students have in place of the others': `{"epochs": 60, "mixup": 1.0}`. A student can
            learn longer than its teacher did without overfitting, and from mixed inputs that the teacher answers.
        seeds: how many seeds, or a list of them.
        budget: what is held equal: "epochs", "training-flops", "deployed-flops" or "parameters".
        tune: give every method, the single network included, so many trials, of which the first is the default configuration,
            and train its judged runs with the best one's options and settings. Trials are scored on validation rows, by the
            calibrated NLL (of a regression, the RMSE). A deep ensemble has none: it is made of networks as tuned. None: nothing
            is tuned.
        corruptions, ood, attack, temperature, shift_rows, attack_rows: what to evaluate besides the test scores, as the options
            of `pluribus compare` of these names.
        folder: where runs and results are kept; None keeps the result in memory alone.
        resume: go on with the comparison in `folder`, as it was configured; methods and students that it lacks are added to it.
            Network and data must be passed again if they were passed as objects.
        trust: what code the files in `folder` may name. A network "package.module:factory" in them is imported if its name was
            passed as `network` or is among these names; True imports whatever they name.
        workers: 1 trains in this process; a larger number, "dask://host:port" or "ray" trains in other processes, to which
            network and data are pickled.
        progress: whether to show progress, on the terminal or in the notebook.
        command: the command line that the results record, if there was one.
        settings: every other setting of a run: epochs, batch_size, lr, optimizer, validation, rows and so on. By default,
            `epochs` is that of the recipe or else "auto": each run is trained until its validation score no longer improves,
            for at most `max_epochs`.

    Returns:
        A `Comparison`, which shows itself in a notebook: `results`, `recommendation`, `to_frame()`, `page()`, `save(folder)`.

    Raises:
        ConfigError, DataError, ModelError or FileError before anything is trained, if something does not fit together;
        ConsentError if a file names a factory that is not trusted.

    Example:
        >>> import torch, pluribus
        >>> x = torch.randn(200, 4); y = (x[:, 0] > 0).long()
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> methods = ["mimo:members=2", pluribus.DeepEnsemble(members=2)]
        >>> found = pluribus.compare(net, (x[:100], y[:100]), test=(x[100:], y[100:]), methods=methods, seeds=1, epochs=1,
        ...                          progress=False)
        >>> list(found.to_frame().index)
        ['single', 'mimo:members=2', 'deep-ensemble:members=2']
    """
    objects = name_objects(network, data, test, settings)
    if settings.get("recipe") is None:  # a recipe has its own number of epochs
        settings = {"epochs": "auto"} | settings
    check_picklable(objects, str(workers))
    check_workers(str(workers))
    judging = build_evaluation_settings(
        corruptions=corruptions,
        ood=split_choices(ood) if isinstance(ood, str) else ood,
        attack=attack,
        temperature=temperature,
        shift_rows=shift_rows,
        attack_rows=attack_rows,
    )
    if settings.get("teacher") is not None:
        raise ConfigError("a comparison has its own teachers: name students with distil (--distil), and leave teacher out")
    if resume and folder is None:
        raise ConfigError("resume needs the folder of a comparison: pass folder=…")
    with (
        tempfile.TemporaryDirectory(prefix="pluribus-") as scratch,
        passed_objects(objects),
        give_consent(find_model_name(settings.get("model"))),
        give_consent(trust),
    ):
        path = Path(scratch) / "comparison" if folder is None else Path(folder)
        if resume:
            made = ComparisonFolder.open(path, objects)
            made = extend_comparison(made, [] if methods is None else expand_methods(methods), expand_students(distil), student)
        else:
            made = ComparisonFolder.plan(
                path,
                settings,
                expand_methods(methods),
                expand_seeds(seeds, settings.get("seed", 0)),
                budget=budget,
                judging=judging,
                command=command,
                objects=objects,
                tune=parse_tune(tune),
                students=expand_students(distil),
                student=student,
            )
        with comparison_progress(made.grid, progress) as (report, announce):
            results = made.run(str(workers), report, announce)
    return Comparison(results, None if folder is None else path)


def evaluate(
    ensemble: Ensemble,
    data: Any,
    *,
    split: str = "test",
    validation: Any = None,
    samples: int | None = None,
    corruptions: str | None = None,
    ood: Sequence[str] | str | None = None,
    attack: Any = None,
    temperature: bool | None = None,
    shift_rows: int | None = None,
    attack_rows: int | None = None,
    network: nn.Module | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Evaluation:
    """Evaluate a trained ensemble: scores with intervals, calibration, members, diversity; more if it is asked for.

    Args:
        ensemble: what `pluribus.ensemble` or `pluribus.load` returned, trained. Its mode is left as it is.
        data: a name or path, as `pluribus.data.load` takes it; a `Data`; or the rows themselves: a pair of tensors (x, y), a
            Dataset or a DataLoader. Inputs of a name or a `Data` are prepared as that says, rows are used as they are.
        split: which rows of a name or a `Data`: "test" or "train".
        validation: rows, as for `data`, that the temperature of a classification and the noise of a regression are fitted on.
        samples: how many draws a method takes that draws noise.
        corruptions, ood, attack, temperature, shift_rows, attack_rows: what to evaluate besides the scores, as the options of
            `pluribus evaluate` of these names.
        network: the base network; with it, latency, memory and FLOPs are measured, as ratios to it.
        seed: of the noise that methods draw.
        progress: whether to show a progress bar.

    Returns:
        An `Evaluation` with `scores`, `intervals`, `results` and `to_frame()`.

    Raises:
        ConfigError or DataError if the data does not fit the ensemble or what is asked for.

    Example:
        >>> import torch, pluribus
        >>> ensemble = pluribus.ensemble(torch.nn.Linear(4, 3), pluribus.BatchEnsemble(members=2))
        >>> found = pluribus.evaluate(ensemble, (torch.randn(50, 4), torch.randint(3, (50,))), progress=False)
        >>> sorted(found.scores)[:4]
        ['accuracy', 'accuracy_at_80', 'adaptive_ece', 'aurc']
    """
    if not isinstance(ensemble, Ensemble):
        raise TypeError(
            f"evaluate takes an ensemble, got {type(ensemble).__name__}: make one with pluribus.ensemble(net, spec)"
        )
    judging = build_evaluation_settings(
        corruptions=corruptions,
        ood=split_choices(ood) if isinstance(ood, str) else ood,
        attack=attack,
        temperature=temperature,
        shift_rows=shift_rows,
        attack_rows=attack_rows,
    )
    held, part = select_rows(ensemble, data, split)
    judging.check(held)
    fitted = None if validation is None else gather_rows(validation, "validation")
    ensemble = copy_for_evaluation(ensemble)
    if samples is not None:
        set_samples(ensemble, samples)
    with row_progress(judging.count_rows(len(part), len(fitted) if fitted else 0), progress) as report:
        found, _ = evaluate_case(EvaluationCase(ensemble, held, part, seed, report), fitted, judging)
    cost = None if network is None else measure_cost(ensemble, network, held, part)
    about = {"title": str(ensemble.spec), "data": held.name, "split": split}
    return Evaluation(about | found | {"cost": cost})


# --- what users may pass ----------------------------------------------------------------------------------------------


def name_objects(network: Any, data: Any, test: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Put network and data into the settings by name, and return those that are objects by their names."""
    objects: dict[str, Any] = {}
    if isinstance(network, (str, Mapping)):
        settings["model"] = network
    elif isinstance(network, nn.Module) or callable(network):
        kind = network if isinstance(network, type) or hasattr(network, "__name__") else type(network)
        settings["model"] = {"name": f"<{kind.__name__.strip('<>')}>"}
        objects[settings["model"]["name"]] = network
    elif network is not None:
        raise ConfigError(f"network must be a network, a function that returns one or a name, got {type(network).__name__}")
    if isinstance(data, os.PathLike):
        data = {"name": os.fspath(data)}
    if isinstance(data, (str, Mapping)):
        if test is not None:
            raise ConfigError("test is for training rows that are passed as tensors or a loader: named data has its own")
        settings["data"] = data
        return objects
    if isinstance(data, Data):
        passed = data if test is None else replace(data, test=gather_rows(test, "test"))
    else:
        passed = build_data(data, test)
    settings["data"] = {"name": f"<{passed.name}>"}
    objects[settings["data"]["name"]] = passed
    return objects


def check_picklable(objects: Mapping[str, Any], workers: str) -> None:
    """Raise ConfigError if objects cannot be sent to other processes, which only workers=1 does without."""
    if workers == "1":
        return
    import cloudpickle  # as joblib does: it pickles the functions and classes of a notebook by value

    for name, value in objects.items():
        try:
            cloudpickle.dumps(value)
        except Exception as error:
            raise ConfigError(
                f"{name} cannot be sent to other processes ({type(error).__name__}: {error}): use workers=1, or pass "
                "a name, for a network package.module:factory"
            ) from error


def expand_methods(methods: Any) -> list[Any]:
    """The methods as a list; None and "all" are all of them."""
    if methods is None:
        return list_methods()
    named = split_choices(methods) if isinstance(methods, str) else methods if isinstance(methods, Sequence) else [methods]
    if not named:
        raise ConfigError(f"methods must be all, or names between commas or in a list, got {methods!r}")
    return [name for each in named for name in (list_methods() if isinstance(each, str) and each == "all" else [each])]


def expand_seeds(seeds: int | str | Sequence[int], first: Any) -> list[int]:
    """The seeds as a list: so many from the first on, or these."""
    if isinstance(seeds, (int, str)):
        return parse_seeds(str(seeds), first)
    if not seeds or not all(isinstance(seed, int) and seed >= 0 for seed in seeds):
        raise ConfigError(f"seeds must be a number of them, or a list of whole numbers, got {seeds!r}")
    return list(seeds)


def parse_tune(tune: Any) -> int | None:
    """The number of trials. Raises ConfigError if it is no whole number.

    >>> parse_tune("8"), parse_tune(None)
    (8, None)
    """
    try:
        if tune is None:
            return None
        if isinstance(tune, (bool, float)):
            raise ValueError
        return int(tune)
    except (TypeError, ValueError):
        raise ConfigError(f"tune must be a whole number of trials, got {quote(tune)}") from None


def select_rows(ensemble: Ensemble, data: Any, split: str) -> tuple[Data, Part]:
    """The rows to evaluate on, and the data that they belong to."""
    if isinstance(data, os.PathLike):
        data = os.fspath(data)
    if isinstance(data, str):
        data = load_set(parse_choice(data), None)
    if isinstance(data, Data):
        if split not in ("train", "test"):
            raise ConfigError(f"split must be train or test, got {split!r}")
        if data.task != ensemble.task:
            raise ConfigError(f"{data.name} is a {data.task}, and the ensemble was made for a {ensemble.task}")
        part = data.test if split == "test" else data.train
        if not len(part):
            raise ConfigError(f"{data.name} has no {split} rows: choose another split")
        return data, part
    part = gather_rows(data, "evaluation")
    if part.y.is_floating_point() != (ensemble.task == "regression"):
        kind = "real" if part.y.is_floating_point() else "whole"
        raise ConfigError(f"the targets are {kind} numbers, and the ensemble was made for a {ensemble.task}")
    classes: tuple[str, ...] = ()
    if ensemble.task == "classification":
        like = next(ensemble.parameters())
        rows = Preparation()(part.x[:2]).to(like.device, like.dtype)
        classes = number_classes(ensemble.predict(rows).probs.shape[1])
    return Data("data", take_no_rows(part), part, Preparation(), classes), part
