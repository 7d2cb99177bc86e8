"""How a run falls to attacks: the choice of one as people write it, in pixels from 0 to 1."""

from dataclasses import fields, replace
from typing import Any

import torch

from ..analysis.attacks import Attack, attack
from ..core.spec import require_number
from ..data import Data, Pixels
from .answers import Case
from .config import ConfigError

KINDS = {"linf": "PGD, L∞", "l2": "PGD, L2", "fgsm": "fast sign, one step"}


def meant(choice: dict[str, Any], data: Data) -> tuple[Attack, str]:
    """The attack, and its title. Unless told, epsilon is 0.1 on grey images and 8/255 on colour; 1.5 and 0.5 in L2."""
    kind, options = choice["name"], {key: value for key, value in choice.items() if key != "name"}
    known = [field.name for field in fields(Attack) if field.name != "norm"]
    for option in options:
        if option not in known:
            raise ConfigError(f"attack {kind} has no option {option!r}; it has: {', '.join(known)}")
    grey = data.shape[0] == 1
    usual = (1.5 if grey else 0.5) if kind == "l2" else (0.1 if grey else 8 / 255)
    epsilon = options.get("epsilon", usual)
    try:
        require_number("epsilon", epsilon, positive=True)
        steps = {"step": epsilon, "iterations": 1} if kind == "fgsm" else {"step": epsilon / 4}
        made = Attack(**{"epsilon": epsilon, "norm": "l2" if kind == "l2" else "linf"} | steps | options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"attack {kind}: {error}") from None
    restarts = f", {made.restarts} restarts" if made.restarts else ""
    length = f", {made.iterations} steps" if made.iterations != 1 else ""
    return made, f"{KINDS[kind]}, ε = {epsilon:.3g}{length}{restarts}{', targeted' if made.targeted else ''}"


def attacked(case: Case, choice: dict[str, Any], rows: int) -> dict[str, Any]:
    """By iteration; of a method that draws also through one draw, which noise defends from."""
    assert isinstance(case.data.preparation, Pixels)
    spec, title = meant(choice, case.data)
    chosen, like = case.sample(rows), next(case.ensemble.parameters())
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (case.data.preparation.mean, case.data.preparation.std))
    low, high = -mean / std, (1 - mean) / std
    x = torch.minimum(torch.maximum(case.data.preparation(chosen.x), low), high)  # rounding may put white a hair beyond
    y, classes = chosen.y, case.data.outputs
    if spec.targeted:
        y = (y + torch.randint(1, classes, (len(y),), generator=torch.Generator().manual_seed(0))) % classes
    x, low, high, scale = (tensor.to(like.device, like.dtype) for tensor in (x, low, high, 1 / std))

    def run(samples: int | None) -> dict[str, Any]:
        made = replace(spec, samples=samples)
        found = attack(case.ensemble, x, y.to(like.device), made, low=low, high=high, scale=scale, seed=case.seed)
        curves = {"success": found.success.tolist(), "entropy": found.entropy.tolist()}
        return curves | {"final": found.final_success, "final_entropy": found.final_entropy}

    whole = run(spec.samples)
    return {"title": title, "rows": len(chosen)} | whole | {"one_sample": run(1) if case.sampled else None}
