"""Results as a comparison leaves them, made up: no network was trained, and no number here means anything."""

import base64
import io
import math
from typing import Any

import numpy as np

NAMES = (
    ("single", 1, 1.0),
    ("deep-ensemble:members=4", 4, 4.1),
    ("inner:copies=4", 1, 1.0),
    ("mimo:members=3", 3, 1.04),
    ("batch-ensemble:members=4", 4, 3.2),
    ("treenet:members=4,split=2", 4, 2.1),
    ("multihead:members=4", 4, 1.03),
    ("mc-dropout:samples=16", 16, 15.6),
    ("variance", 16, 1.3),
    ("variational-dropout:samples=16", 16, 31.0),
    ("maxout:copies=4", 1, 3.5),
    ("mixture:members=4", 4, 4.0),
    ("mimo:members=2", 2, 1.02),
    ("deep-ensemble:members=2", 2, 2.02),
    ("deep-ensemble:members=2,of=inner", 2, 2.05),
    ("deep-ensemble:members=2,of=mimo", 6, 2.11),
)
KINDS = ("gaussian-noise", "fog", "motion-blur", "contrast", "pixelate")
CLASSES = [str(digit) for digit in range(10)]


def classification(methods: int = 12, seed: int = 0) -> dict[str, Any]:
    """With everything that a comparison can have."""
    rng = np.random.default_rng(seed)
    made = [_classifier(rng, *entry) for entry in NAMES[:methods]]
    return _frame("invented-digits · imagined-cnn", "classification", made) | {
        "recommendation": [
            {
                "limit": "under 1.1 × the latency of one network",
                "method": "mimo:members=3",
                "text": "mimo:members=3 reaches 46 % of the deep ensemble's gain at 1.04 × the latency.",
            },
            {
                "limit": "under 4 × the latency of one network",
                "method": "treenet:members=4,split=2",
                "text": "treenet:members=4,split=2 has the highest share; deep-ensemble:members=2 is not told apart from it.",
            },
            {"limit": "no more parameters than one network", "method": None, "text": "No method's interval lies above zero."},
        ],
        "notes": ["Two seeds only: the intervals are wide.", "The pixels are noise; nobody has seen these digits."],
    }


def minimal() -> dict[str, Any]:
    """One method, one seed, and None wherever it may stand."""
    nothing = dict.fromkeys(("tempered", "gain", "share", "reliability", "risk_coverage", "shift", "attack"))
    cost = dict.fromkeys(
        ("parameters", "deployed_parameters", "flops", "deployed_flops", "training_flops", "memory", "latency")
    )
    method = {
        **{"name": "single", "spec": "Single()", "about": "The network as it is.", "members": 1, "epochs": 1},
        "scores": {
            "accuracy": {"mean": 0.5, "std": 0.0, "seeds": [0.5]},
            "nll": {"mean": math.nan, "std": 0.0, "seeds": [math.nan]},
        },
        **{"member_scores": {}, "diversity": {}, "ood": {}, "unsure": [], "seconds": None, "runs": [], "cost": cost},
        **nothing,
    }
    return _frame("invented-digits · imagined-mlp", "classification", [method]) | {
        "seeds": [0],
        "recommendation": [],
        "notes": [],
    }


def regression(methods: int = 6, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return _frame("invented-houses · imagined-mlp", "regression", [_regressor(rng, *entry) for entry in NAMES[:methods]]) | {
        "recommendation": [
            {"limit": "any latency", "method": "deep-ensemble:members=4", "text": "deep-ensemble:members=4 has the lowest NLL."}
        ],
        "notes": [],
    }


def _frame(title: str, task: str, methods: list[dict[str, Any]]) -> dict[str, Any]:
    name, model = title.split(" · ")
    return {
        "format": 1,
        "title": title,
        "command": f"pluribus compare --data {name} --model {model} --methods all --seeds 2",
        "data": {
            **{"name": name, "task": task, "classes": CLASSES if task == "classification" else [], "shape": [1, 8, 8]},
            **{"train": 1437, "test": 360},
        },
        "model": model,
        "budget": {"kind": "training-flops", "text": "training FLOPs of 30 epochs of the single network"},
        "seeds": [0, 1],
        "settings": {"batch": 64, "lr": 0.001, "optimiser": "adamw", "epochs": 30, "augment": None},
        "versions": {"pluribus": "0.0.0", "torch": "0.0"},
        "machine": {"cpu": "an imagined processor", "cores": 2},
        "seconds": 123.4,
        "methods": methods,
    }


def number(rng: np.random.Generator, mean: float, width: float, drawn: bool = True) -> dict[str, Any]:
    seeds = [float(mean + width * z) for z in rng.normal(size=2)]
    made: dict[str, Any] = {"mean": float(np.mean(seeds)), "std": float(np.std(seeds, ddof=1)), "seeds": seeds}
    return made | ({"low": made["mean"] - 2 * width, "high": made["mean"] + 2 * width} if drawn else {})


def interval(value: float, width: float) -> dict[str, float]:
    return {"value": float(value), "low": float(value - width), "high": float(value + width)}


def _cost(rng: np.random.Generator, name: str, members: int, latency: float) -> dict[str, Any]:
    copies = members if name.startswith("deep") else 1.0 + 0.02 * members
    return {
        **{"parameters": copies, "deployed_parameters": copies, "flops": latency, "deployed_flops": latency * 0.97},
        **{"training_flops": latency * 1.1, "memory": 1.0 + latency / 3, "passes": latency, "form": "ensemble"},
        "latency": interval(latency, 0.02 * latency),
    }


def _gains(
    rng: np.random.Generator, name: str, latency: float
) -> tuple[dict[str, float] | None, dict[str, float] | None, float]:
    if name == "single":
        return interval(0, 0), interval(0, 0), 0.0
    share = (
        1.0
        if name == "deep-ensemble:members=4"
        else float(np.clip(0.25 + 0.25 * math.log2(latency + 0.3) + rng.normal() * 0.2, -0.2, 1))
    )
    return interval(0.04 * share, 0.006), interval(share, 0 if share == 1 else 0.15), share


def _classifier(rng: np.random.Generator, name: str, members: int, latency: float) -> dict[str, Any]:
    gain, share, skill = _gains(rng, name, latency)
    accuracy = 0.95 + 0.025 * skill
    bins = np.linspace(0.05, 0.99, 12)
    right = np.clip(bins - 0.1 * (1 - skill) * np.sin(np.pi * bins) + rng.normal(size=12) * 0.03, 0, 1)
    fall = [accuracy - 0.03 * s * (1.3 - 0.4 * skill) - 0.01 * s * s for s in range(6)]
    coverage = np.linspace(0.01, 1, 200)
    success = [float(min(1, (1 - accuracy) + (0.12 - 0.05 * skill) * step)) for step in range(11)]
    entropy = [float(0.2 + 0.05 * step * (1 + skill)) for step in range(11)]
    draws = name.startswith(("mc", "var"))
    doubts = ("confidence", "entropy", *(("mutual-information",) if members > 1 else ()))
    return {
        **_about(name, members),
        "scores": {
            "accuracy": number(rng, accuracy, 0.004),
            "nll": number(rng, 0.18 - 0.04 * skill, 0.006),
            "brier": number(rng, 0.08 - 0.02 * skill, 0.002, drawn=False),
            "ece": number(rng, 0.03 - 0.01 * skill, 0.003, drawn=False),
        },
        "member_scores": {"accuracy": number(rng, accuracy - 0.01 - 0.01 * rng.random(), 0.003, drawn=False)},
        "tempered": {
            "nll": number(rng, 0.16 - 0.03 * skill, 0.004),
            "ece": number(rng, 0.015, 0.002),
            "temperature": number(rng, 1.3, 0.1),
        },
        **{"gain": gain, "share": share},
        "diversity": {"disagreement": number(rng, 0.0 if members == 1 else 0.02 + 0.06 * rng.random(), 0.001, drawn=False)},
        "reliability": {
            "confidence": [None, *map(float, bins)],
            "accuracy": [None, *map(float, right)],
            "count": [0, *(int(4 + 200 * b**8) for b in bins)],
        },
        "risk_coverage": {"coverage": list(map(float, coverage)), "risk": [float((1 - accuracy) * c**3) for c in coverage]},
        "shift": {
            **{"cacc": number(rng, float(np.mean(fall[1:])), 0.01), "mce": number(rng, 1 - 0.2 * skill, 0.02)},
            "severities": {"accuracy": fall, "nll": [3 * (1 - a) for a in fall], "ece": [(1 - a) / 4 for a in fall]},
            "kinds": {kind: number(rng, float(np.mean(fall)) - 0.02 * k, 0.01) for k, kind in enumerate(KINDS)},
        },
        "ood": {
            foreign: {
                "auroc": {doubt: number(rng, 0.8 + 0.1 * skill + 0.04 * far, 0.01) for doubt in doubts},
                "fpr95": {doubt: number(rng, 0.3 - 0.1 * skill, 0.01) for doubt in doubts},
            }
            for far, foreign in enumerate(("shuffled", "noise"))
        },
        "attack": {
            **{"title": "PGD, L∞, ε = 0.1", "success": success, "entropy": entropy, "final": number(rng, success[-1], 0.01)},
            "one_sample": {
                "success": [s * 0.6 for s in success],
                "entropy": entropy,
                "final": number(rng, success[-1] * 0.6, 0.01),
            }
            if draws
            else None,
        },
        "unsure": [_unsure(rng, place) for place in range(8)],
        "cost": _cost(rng, name, members, latency),
        "seconds": number(rng, 10 * latency, 0.5),
        "runs": [f"runs/{name.split(':')[0]}-{seed}" for seed in (0, 1)],
    }


def _about(name: str, members: int) -> dict[str, Any]:
    about = f"An invented description of {name}."
    return {"name": name, "spec": name.upper(), "about": about, "members": members, "epochs": 30}


def _regressor(rng: np.random.Generator, name: str, members: int, latency: float) -> dict[str, Any]:
    gain, share, skill = _gains(rng, name, latency)
    rmse = 3.2 - 0.3 * skill
    nothing = dict.fromkeys(("tempered", "reliability", "risk_coverage", "shift", "attack"))
    return {
        **_about(name, members),
        "scores": {
            **{
                "rmse": number(rng, rmse, 0.05),
                "nll": number(rng, 2.6 - 0.1 * skill, 0.02),
                "crps": number(rng, 1.7 - 0.1 * skill, 0.02),
            },
            **{"coverage_50": number(rng, 0.47 + 0.03 * skill, 0.01), "coverage_95": number(rng, 0.91 + 0.03 * skill, 0.01)},
        },
        "member_scores": {"rmse": number(rng, rmse + 0.1 + 0.3 * rng.random(), 0.03)},
        "diversity": {} if members == 1 else {"bias": number(rng, rmse**2, 0.1), "variance": number(rng, 0.8, 0.1)},
        **{"gain": gain, "share": share, "ood": {}, "unsure": [], "runs": []},
        **{"cost": _cost(rng, name, members, latency), "seconds": number(rng, 10 * latency, 0.5)},
        "interval_calibration": {"level": [n / 20 for n in range(1, 20)], "held": [(n / 20) ** 1.2 for n in range(1, 20)]},
        "residuals": {"truth": [1e5, 2e5, 4e5], "predicted": [1.2e5, 1.9e5, 3e5 + 1e4 * skill], "target": "price"},
        **nothing,
    }


def _unsure(rng: np.random.Generator, place: int) -> dict[str, Any]:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8)).save(file, "PNG")
    truth, answer = (CLASSES[k] for k in rng.integers(0, 10, 2))
    uri = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    return {"image": uri, "truth": truth, "answer": answer, "confidence": 0.21 + 0.03 * place}
