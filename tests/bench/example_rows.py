"""Example rows for the tests of results, page and figures."""

from pluribus.bench.growth import fit_lines

ABOUT = {
    "versions": {"python": "3.11", "torch": "2.9", "pluribus": "0.1"},
    "machine": {"cpu": "Abacus", "cores": 2, "threads": 2},
    "settings": {"repeats": 9, "batch": 128, "threads": 2},
}


def spread(median):
    return {"median": median, "low": median - 0.1, "high": median + 0.2}


def cell(network="lenet5", method="inner", work="forward", time=1.5):
    return {"network": network, "method": method, "work": work, "time": spread(time), "memory": 2.0, "flops": 12.0}


def target(name="Inner, m = 4", work="training step", value=1.04, most=1.05):
    met = None if most is None else value <= most
    time = None if work == "state" else spread(value)
    about = {"network": "resnet20", "work": work, "name": name}
    return about | {"value": value, "most": most, "met": met, "time": time, "memory": 1.0, "flops": 1.0}


def grown(method="mixture", axis="M", work="forward"):
    points = [{"at": n, "time": spread(0.9 * n + 0.1), "memory": 0.5 * n, "flops": float(n)} for n in (1, 2, 4)]
    return {"network": "lenet5", "method": method, "axis": axis, "work": work, "points": points, "lines": fit_lines(points)}
