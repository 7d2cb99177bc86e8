"""Run the ablations that decided the defaults of methods, and record them as JSON in results/ablations.

    python results/ablations.py                 run what is missing
    python results/ablations.py mimo-digits     run these alone

    mixture-scale    where the scale of a blob's weights stands, how losses are combined, which optimiser: LeNet-5, 4,000 rows
                     of MNIST
    mixture-cifar10  the same for SmallCNN on 4,000 rows of CIFAR-10, at one and four times the parameters
    mixture-forms    what carries the weights (a bank of common or of disjoint templates, a blob), how coefficients are drawn,
                     how losses are combined, which optimiser, at twice the parameters: the fast residual network, whose
                     convolutions are of one shape, on 4,000 rows of MNIST. A default of Mixture changes if another choice has
                     the lower calibrated NLL with both optimisers, and with each seed on their average
    mimo-digits      the share of repeated inputs and the repetition of batches by width: small-cnn on the digits
    mimo-heads       heads that start equal or independent: small-cnn on the digits
    distillation     the share of the teacher's answers in a student's loss, with and without mixed inputs, at one and three
                     times the epochs: small-cnn on the digits, students of a deep ensemble of four

A file grows by one result at a time, so that a run can be stopped at any moment. Scores are of the last rows of the training
set, which are not trained on, so that no default is chosen by test rows; the NLL is calibrated by cross-fitted temperatures.
Data are read as by `pluribus train`: MNIST and CIFAR-10 from PLURIBUS_DATA.
"""

import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

import pluribus
from pluribus.core.files import write_file
from pluribus.core.seeds import set_seed
from pluribus.core.spec import Spec
from pluribus.core.templates import Blob, Mixed
from pluribus.metrics import accuracy, calibrated_nll, nll
from pluribus.training.lightning_module import Diverged

HERE = Path(__file__).parent / "ablations"
SEEDS = (0, 1, 2)
TEACHERS: dict[tuple[int, float], pluribus.Ensemble] = {}
"""Trained once for all students of a seed and its inputs."""
Json = dict[str, Any]


def put_scale_into_coefficients(ensemble: pluribus.Ensemble) -> None:
    """Give a mixture the form that it once had here, which is the same function: numbers from N(0, 1), plain gradients."""
    for blob in (module for module in ensemble.modules() if isinstance(module, Blob)):
        blob.numbers.data /= blob.scale
    for layer in (module for module in ensemble.modules() if isinstance(module, Mixed)):
        layer.coefficients.data *= layer._bank[0].scale
        layer.mix_factor = layer.coefficient_factor = 1.0


def list_mixtures(factors: tuple[float, ...]) -> Iterator[tuple[Json, Spec]]:
    """Every combination of scale, loss, optimiser and budget; the single network and the deep ensemble beside them."""
    for optimizer in ("adamw", "sgd"):
        yield {"method": "single", "optimizer": optimizer}, pluribus.Single()
        yield {"method": "deep-ensemble", "optimizer": optimizer}, pluribus.DeepEnsemble(members=4)
        for parameters, scale, loss in itertools.product(factors, ("numbers", "coefficients"), ("sum", "mean")):
            facts = {"method": "mixture", "optimizer": optimizer, "parameters": parameters, "scale": scale, "loss": loss}
            yield facts, pluribus.Mixture(parameters=parameters, loss=loss, blob=True)  # type: ignore[arg-type]


def draw_coefficients_again(ensemble: pluribus.Ensemble, how: str) -> None:
    """Draw the coefficients of a mixture as independent normal numbers, or let each member begin with one template."""
    for layer in (module for module in ensemble.modules() if isinstance(module, Mixed)):
        length = layer.coefficients.data.norm(dim=1, keepdim=True)  # of the row of each member
        drawn = torch.randn_like(layer.coefficients)
        if how == "one template":
            drawn = torch.eye(drawn.shape[1])[torch.arange(len(drawn)) % drawn.shape[1]]
        layer.coefficients.data = length * nn.functional.normalize(drawn, dim=1)


def list_forms() -> Iterator[tuple[Json, Spec]]:
    """What carries a mixture's weights, with every loss and optimiser; and the ways to draw the coefficients of a bank."""
    forms: dict[str, Json] = {"common": {}, "disjoint": {"disjoint": True}, "blob": {"blob": True}}
    for optimizer in ("sgd", "adamw"):
        yield {"method": "single", "optimizer": optimizer}, pluribus.Single()
        for (form, options), loss in itertools.product(forms.items(), ("sum", "mean")):
            facts = {"method": "mixture", "optimizer": optimizer, "form": form, "loss": loss}
            yield facts, pluribus.Mixture(parameters=2.0, loss=loss, **options)  # type: ignore[arg-type]
        for how in ("normal", "one template"):
            facts = {"method": "mixture", "optimizer": optimizer, "form": "common", "loss": "sum", "coefficients": how}
            yield facts, pluribus.Mixture(parameters=2.0)


def list_mimo() -> Iterator[tuple[Json, Spec]]:
    for width in (1.0, 2.0, 4.0):
        yield {"method": "single", "width": width}, pluribus.Single()
        for share, repetition in itertools.product((0.0, 0.3, 0.6), (1, 2)):
            facts = {"method": "mimo", "width": width, "input_repetition": share, "batch_repetition": repetition}
            yield facts, pluribus.MIMO(members=3, input_repetition=share, batch_repetition=repetition)


def list_heads() -> Iterator[tuple[Json, Spec]]:
    for start, share in itertools.product(("keep", "fresh"), (0.0, 0.3, 0.6)):
        yield (
            {"method": "mimo", "heads": start, "input_repetition": share},
            pluribus.MIMO(
                members=3,
                init=start,
                input_repetition=share,  # type: ignore[arg-type]
            ),
        )


def list_students() -> Iterator[tuple[Json, Spec]]:
    """Students beside the single network and the deep ensemble with the same inputs and epochs."""
    for mixup, length in itertools.product((0.0, 0.2), (1, 3)):
        setting = {"mixup": mixup, "length": length}
        yield {"method": "single"} | setting, pluribus.Single()
        if length == 1:
            yield {"method": "deep-ensemble"} | setting, pluribus.DeepEnsemble(members=4)
        for weight in (0.5, 0.9, 1.0):
            yield {"method": "student", "weight": weight} | setting, pluribus.Single()
        yield {"method": "student of four heads", "weight": 0.9} | setting, pluribus.Multihead(members=4)


ABLATIONS: dict[str, Json] = {
    "mixture-scale": {
        "data": "mnist",
        "rows": 4000,
        "judged": 10_000,
        "model": "lenet5",
        "epochs": 8,
        "batch_size": 64,
        "cells": list_mixtures((1.0,)),
    },
    "mixture-cifar10": {
        **{"data": "cifar10", "rows": 4000, "judged": 10_000, "model": "small-cnn", "epochs": 12, "batch_size": 64},
        "cells": list_mixtures((1.0, 4.0)),
    },
    "mixture-forms": {
        **{
            "data": "mnist",
            "rows": 4000,
            "judged": 10_000,
            "model": "fast-resnet",
            "width": 0.5,
            "epochs": 8,
            "batch_size": 64,
        },
        "cells": list_forms(),
    },
    "mimo-digits": {
        "data": "digits",
        "rows": None,
        "judged": 400,
        "model": "small-cnn",
        "epochs": 100,
        "batch_size": 64,
        "cells": list_mimo(),
    },
    "mimo-heads": {
        "data": "digits",
        "rows": None,
        "judged": 400,
        "model": "small-cnn",
        "epochs": 100,
        "batch_size": 64,
        "cells": list_heads(),
    },
    "distillation": {
        "data": "digits",
        "rows": None,
        "judged": 400,
        "model": "small-cnn",
        "epochs": 60,
        "batch_size": 64,
        "cells": list_students(),
    },
}


def train_and_score(setting: Json, facts: Json, spec: Spec, seed: int) -> Json:
    """Train one network and return its scores on the last rows of the training set."""
    data = pluribus.data.load(setting["data"])
    begin = len(data.train) - setting["judged"]
    rows = slice(None, setting["rows"] or begin)
    x, y = data.preparation(data.train.x[rows]), data.train.y[rows]
    set_seed(seed)
    options = {name: value for name, value in (setting | facts).items() if name == "width"}
    net: nn.Module = pluribus.models.build(setting["model"], data.shape, data.outputs, **options)
    ensemble = pluribus.ensemble(net, spec, example=x[:2])
    if facts.get("scale") == "coefficients":
        put_scale_into_coefficients(ensemble)
    if "coefficients" in facts:
        draw_coefficients_again(ensemble, facts["coefficients"])
    began = time.time()
    training = {name: setting[name] for name in ("epochs", "batch_size")} | {"optimizer": facts.get("optimizer", "adamw")}
    training |= {"epochs": training["epochs"] * facts.get("length", 1), "mixup": facts.get("mixup", 0.0)}
    if "weight" in facts:  # the teacher is the deep ensemble of the same seed and inputs
        key = (seed, facts["mixup"])
        if key not in TEACHERS:
            TEACHERS[key] = pluribus.ensemble(net, pluribus.DeepEnsemble(members=4), example=x[:2])
            pluribus.fit(TEACHERS[key], (x, y), seed=seed, progress=False, **(training | {"epochs": setting["epochs"]}))
        training |= {"teacher": TEACHERS[key], "teacher_weight": facts["weight"]}
    try:
        pluribus.fit(ensemble, (x, y), seed=seed, progress=False, **training)
    except Diverged as error:
        return {"diverged": str(error).split(";")[0]}
    p, truth = ensemble.predict(data.preparation(data.train.x[begin:])), data.train.y[begin:]
    scores = {"accuracy": accuracy(p, truth), "nll": nll(p, truth), "calibrated_nll": calibrated_nll(p, truth)}
    return scores | {"seconds": round(time.time() - began, 1)}


def run_ablation(name: str) -> None:
    """Run what is missing of an ablation."""
    setting = dict(ABLATIONS[name])
    cells, place = list(setting.pop("cells")), HERE / f"{name}.json"
    known: list[Json] = json.loads(place.read_text(encoding="utf-8"))["results"] if place.is_file() else []
    done = {json.dumps([one["facts"], one["seed"]], sort_keys=True) for one in known}
    HERE.mkdir(exist_ok=True)
    for seed, (facts, spec) in itertools.product(SEEDS, cells):
        if json.dumps([facts, seed], sort_keys=True) in done:
            continue
        found = train_and_score(setting, facts, spec, seed)
        known.append({"facts": facts, "seed": seed} | found)
        content = {
            "setting": setting,
            "command": f"python results/ablations.py {name}",
            "torch": torch.__version__,
            "results": known,
        }
        write_file(place, (json.dumps(content, indent=1) + "\n").encode())
        print(
            name,
            seed,
            facts,
            {key: round(value, 4) if isinstance(value, float) else value for key, value in found.items()},
            flush=True,
        )


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ABLATIONS:
        run_ablation(wanted)
