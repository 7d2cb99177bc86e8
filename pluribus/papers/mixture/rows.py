"""Which methods are trained how at each scale."""

from ..recipe import Json

BASELINE, BATCH_ENSEMBLE, OWN_NORM, MIMO = "baseline", "BatchEnsemble", "BatchEnsemble, own BatchNorm", "MIMO"
MIXTURE, LARGE, THIN = "mixture, 1×", "mixture, 3.3×", "thin mixture, 1×"
NAIVE, CONTROL = "naive ensemble, 4×", "thin naive ensemble, 1×"
SEEDS = {"smoke": 1, "cpu": 3, "paper": 3}
BUDGETS = (0.2, 0.4, 1.0, 2.0, 3.3)
MEMBERS = (2, 4, 8)
TRAININGS: dict[str, Json] = {
    "smoke": {"data": "digits", "epochs": 1, "rows": 100},
    "cpu": {"data": "cifar10", "recipe": "fast-sgd"},
    "paper": {
        "data": "cifar100",
        "epochs": 200,
        "batch_size": 128,
        "optimizer": "sgd",
        "nesterov": True,
        "lr": 0.1,
        "weight_decay": 5e-4,
        "schedule": "step",
        "milestones": [0.3, 0.6, 0.9],
        "gamma": 0.2,
        "validation": 0.0,
    },
}
"""At scale cpu the fast recipe with SGD, by which the paper trains: Muon would train all methods but mixtures, whose
convolutions have no weights of their own. At scale paper the published settings. Coefficients are never decayed."""
NETWORKS: dict[str, tuple[Json, float]] = {
    "smoke": ({"name": "resnet", "depth": 8}, 0.25),
    "cpu": ({"name": "fast-resnet"}, 0.5),
    "paper": ({"name": "wrn", "depth": 28}, 10),
}
"""Network and width. That of scale cpu has eight convolutions of equal shape, which one bank serves."""
OPTIONS: dict[str, Json] = {
    BASELINE: {"name": "single"},
    BATCH_ENSEMBLE: {"name": "batch-ensemble", "members": 4},
    OWN_NORM: {"name": "batch-ensemble", "members": 4, "batchnorm": "own"},
    MIMO: {"name": "mimo", "members": 2, "input_repetition": 0.6},
    MIXTURE: {"name": "mixture", "members": 4, "parameters": 1.0},
    LARGE: {"name": "mixture", "members": 4, "parameters": 3.3},
    NAIVE: {"name": "deep-ensemble", "members": 4},
    CONTROL: {"name": "deep-ensemble", "members": 4},
}
"""MIMO has M = 2 and ρ = 0.6, which suit a network of this size; as published it has M = 3, ρ = 0 and rows four times."""
PUBLISHED_MIMO: Json = {"name": "mimo", "members": 3, "input_repetition": 0.0, "batch_repetition": 4, "init": "fresh"}


def build_model(scale: str, factor: float = 1.0) -> Json:
    """The network with a factor on its width."""
    model, width = NETWORKS[scale]
    wide = width * factor
    return model | {"width": int(wide) if scale == "paper" else wide}


def configure_row(scale: str, row: str, data: str | None = None) -> Json:
    """The settings of a row of the tables, without a seed."""
    settings = TRAININGS[scale] | ({"data": data} if data else {})
    if row == THIN:  # four times as many parameters as a thin network are one network's; it has banks for single layers, too
        method: Json = {"name": "mixture", "members": 4, "parameters": 4.0, "per_layer": True}
        return settings | {"model": build_model(scale, 0.5), "method": method} | lengthen(scale)
    if row == CONTROL:
        return settings | {"model": build_model(scale, 0.5), "method": OPTIONS[row]} | lengthen(scale)
    method = PUBLISHED_MIMO if row == MIMO and scale == "paper" else OPTIONS[row]
    return settings | {"model": build_model(scale), "method": method}


def lengthen(scale: str) -> Json:
    """Thin networks are trained for 1,000 epochs in the paper."""
    return {"epochs": 1000} if scale == "paper" else {}


def configure_budget(scale: str, parameters: float, members: int = 4) -> Json:
    """The settings of a mixture with any budget and number of members."""
    method: Json = {"name": "mixture", "members": members, "parameters": parameters}
    return TRAININGS[scale] | {"model": build_model(scale), "method": method}


def configure_narrow(scale: str, row: str, parameters: float) -> Json:
    """The settings of a method that has a smaller budget by a narrower network: parameters grow with the width squared."""
    return configure_row(scale, row) | {"model": build_model(scale, round(parameters**0.5, 2))}


def list_cells(scale: str, rows: tuple[str, ...], data: str | None = None) -> dict[str, Json]:
    """The cells of some rows, by seed."""
    return {
        f"{row}, seed {seed}": {"seed": seed, "scale": scale, "training": configure_row(scale, row, data)}
        for row in rows
        for seed in range(SEEDS[scale])
    }
