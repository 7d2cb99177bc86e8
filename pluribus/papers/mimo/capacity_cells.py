"""The cells of mimo/capacity: which networks are trained on what, with how many members, which ρ and repetition."""

import itertools

from ..recipe import Json
from .configurations import describe_mimo

MEMBERS, SHARES, REPETITIONS = (2, 3, 4), (0.0, 0.3, 0.6), (1, 2)
SETS: dict[str, Json] = {
    "digits": {"data": "digits", "epochs": 100, "batch_size": 64},
    "MNIST": {"data": "mnist", "recipe": "fast-mnist", "rows": 6000, "epochs": 5},
    "CIFAR-10": {"data": "cifar10", "recipe": "fast", "rows": 5000, "epochs": 16},
}
WIDTHS: dict[str, tuple[float, ...]] = {"digits": (1, 2, 4), "MNIST": (0.125, 0.25, 0.5), "CIFAR-10": (0.25, 0.5, 1)}
NETWORKS = {"digits": "small-cnn", "MNIST": "fast-cnn", "CIFAR-10": "fast-cnn"}
SEEDS = 3


def list_cells(scale: str) -> dict[str, Json]:
    """The cells of the map; at scale smoke, a corner of it on the digits."""
    small = scale == "smoke"
    found: dict[str, Json] = {}
    for name in ("digits",) if small else SETS:
        settings = SETS[name] | ({"rows": 100, "epochs": 1} if small else {})
        for width, seed in itertools.product(WIDTHS[name][:1] if small else WIDTHS[name], range(1 if small else SEEDS)):
            model = {"name": NETWORKS[name], "width": width}
            for label, method, times in list_methods(small):
                training = settings | {"model": model, "method": method, "seed": seed, "epochs": times * settings["epochs"]}
                found[f"{name}, width {width:g}, {label}, seed {seed}"] = {"seed": seed, "training": training}
    return found


def list_methods(small: bool) -> list[tuple[str, Json, int]]:
    """One network, also with as many gradients as MIMO with repeated batches, and MIMO: name, method, times the epochs."""
    found: list[tuple[str, Json, int]] = [(name_single(times), {"name": "single"}, times) for times in REPETITIONS]
    for count, share, times in itertools.product(MEMBERS, SHARES, REPETITIONS):
        if small and (count > 2 or share != 0.6):
            continue
        method = describe_mimo(count, input_repetition=share, batch_repetition=times)
        found.append((name_mimo(count, share, times), method, 1))
    return found


def name_single(times: int) -> str:
    return "one network" if times == 1 else f"one network, {times} times the epochs"


def name_mimo(count: int, share: float, times: int) -> str:
    """
    >>> name_mimo(2, 0.0, 1), name_mimo(3, 0.6, 2)
    ('M = 2, ρ = 0', 'M = 3, ρ = 0.6, rows twice')
    """
    return f"M = {count}, ρ = {share:g}" + (", rows twice" if times == 2 else "")
