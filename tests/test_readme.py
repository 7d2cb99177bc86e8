"""What README.md and docs/ say of names, commands and costs is what the code has."""

import importlib
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import torch
import typer
from torch import nn

import pluribus
from pluribus import metrics
from pluribus.core.describe import count_parameters
from pluribus.core.flop_counting import count_call_flops
from pluribus.data import image_folder, table
from pluribus.data.catalog import SETS
from pluribus.data.limits import BYTES, COLUMNS, PIXELS

ROOT = Path(__file__).parent.parent
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]}
TRAINING, COMPARING = PAGES["docs/training.md"], PAGES["docs/comparing.md"]
PERFORMANCE = PAGES["docs/performance.md"]


def list_commands() -> list[str]:
    """The `pluribus …` lines of all code blocks, those of the recorded comparisons among them."""
    blocks = [block for text in PAGES.values() for block in re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]
    return sorted({line for block in blocks for line in re.findall(r"^pluribus ([^#&\n]+)", block, re.MULTILINE)})


@pytest.mark.parametrize("line", list_commands())
def test_the_command_line_takes_every_command_of_the_pages(line):
    """Parsed with all their options, and not run."""
    from pluribus.cli import (  # noqa: F401
        app,
        bench,
        bench_tables,
        calibrate,
        compare,
        data,
        evaluate,
        export,
        methods,
        models,
        predict,
        report,
        reproduce,
        serve,
        train,
    )

    command, words = typer.main.get_command(app.app), shlex.split(line)
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    assert command.make_context("pluribus", words).params


def test_every_target_of_make_that_is_named_is_there():
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"`make ([\w-]+)`|^make ([\w-]+) ", "\n".join(PAGES.values()), re.MULTILINE))
    targets = {a or b for a, b in named}
    assert {"demo", "test", "test-all", "bench", "bench-peers", "results"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert "demo: $(VENV)/ready" in makefile
    assert "test: lint" in makefile
    assert "lint: $(VENV)/ready-dev" in makefile


def test_the_oldest_python_is_that_of_the_package():
    least = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    assert f"Python {least} or newer" in PAGES["README.md"]


def test_the_data_sets_that_are_named_are_in_the_catalog_and_all_of_it_is_named():
    said = re.search(r"\*\*Data\*\*: (.*?); or a path", TRAINING, re.DOTALL).group(1)
    names = {"MNIST", "Fashion-MNIST", "KMNIST", "CIFAR-10", "-100", "SVHN", "the digits", "UCI regressions", "synthetic"}
    assert all(name in said for name in names)
    plain = {"mnist", "fashion-mnist", "kmnist", "cifar10", "cifar100", "cifar100-coarse", "svhn", "digits"}
    others = {name for name in SETS if not name.startswith("uci-")} - plain
    assert plain <= set(SETS)
    assert others == {"blundell", "four-gaussians"}, "the papers' synthetic sets"


def test_the_options_of_tables_and_image_folders_are_those_of_the_code():
    said = re.search(r"Tables take (.*?); image\s+folders (.*?)\.\n", TRAINING, re.DOTALL)
    for text, module in zip(said.groups(), (table, image_folder), strict=True):
        assert set(re.findall(r"`(\w+)`", text)) == set(module.OPTIONS)


def test_the_limits_of_data_files_are_those_of_the_code():
    said = " ".join(TRAINING.split())
    assert f"more than {BYTES.default / 2**30:g} GiB" in said
    assert f"more than {PIXELS.default / 1e6:g} million pixels" in said
    assert f"more than {COLUMNS.default:,} columns" in said


def test_the_comparison_of_the_page_runs(tmp_path, monkeypatch):
    """With one seed and one epoch."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pluribus.analysis.timing.MIN_SECONDS", 0.0)
    example = re.findall(r"```python\n(.*?)```", COMPARING, re.DOTALL)[0]
    short = 'distil=["multihead"], epochs=1, seeds=1, progress=False'
    example = example.replace('distil=["multihead"]', short)
    rows = {"x": torch.randn(64, 4), "x_test": torch.randn(40, 4), "x_val": torch.randn(40, 4)}
    scope = rows | {name.replace("x", "y"): torch.arange(len(x)) % 3 for name, x in rows.items()} | {"pluribus": pluribus}
    scope["net"] = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    scope["ensemble"] = pluribus.ensemble(scope["net"], pluribus.MIMO(members=2))
    exec(compile(example, "docs/comparing.md", "exec"), scope)
    found = scope["found"]
    assert "latency" in str(found.recommendation)
    assert list(found.to_frame().index) == ["single", "inner", "mimo", "deep-ensemble", "multihead ← deep-ensemble"]
    kinds = {"report.html", "results.json", "results.csv"}
    assert kinds <= {path.name for path in (tmp_path / "comparison").iterdir()}
    assert {".md", ".svg"} <= {path.suffix for path in (tmp_path / "comparison").iterdir()}


def test_metrics_and_analysis_have_what_is_named():
    for name in ("accuracy", "nll", "ece", "brier", "aurc", "auroc", "crps"):
        assert callable(getattr(metrics, name)), name
    for name in ("attacks", "diversity", "cost"):
        assert importlib.import_module(f"pluribus.analysis.{name}")


def test_the_module_of_every_method_cites_its_paper():
    for cls in pluribus.Spec.registry.values():
        text = importlib.import_module(cls.__module__).__doc__
        assert cls is pluribus.Single or re.search(r"\b20[012]\d\b", text), cls.__name__


FIRST, MIDDLE, LAST = 8 * 16, 16 * 16, 16 * 4  # products for a row in each layer, which are also its weights
WHOLE = FIRST + MIDDLE + LAST
COSTS = {
    "Single()": (1, 1, 1),
    "Inner(copies=4)": (1, 1, 1),
    "Maxout(copies=4, include='2')": (FIRST + 4 * MIDDLE + LAST,) * 3,
    "Variance(samples=5, include='2')": (1, FIRST + MIDDLE + 5 * LAST, 1),
    "VariationalDropout(samples=5)": (2, 2 * FIRST + 2 * 5 * (MIDDLE + LAST), WHOLE + 3),
    "VariationalDropout(samples=5, parameterization='weight')": (2, 2 * FIRST + 2 * 5 * (MIDDLE + LAST), 2),
    "MCDropout(samples=5)": (1, FIRST + MIDDLE + 5 * LAST, 1),
    "Multihead(members=4)": (FIRST + MIDDLE + 4 * LAST,) * 3,
    "MIMO(members=4)": (4 * FIRST + MIDDLE + 4 * LAST, FIRST + MIDDLE + 4 * LAST, FIRST + MIDDLE + 4 * LAST),
    "MIMO(members=4, batch_repetition=2)": (
        *(2 * (4 * FIRST + MIDDLE + 4 * LAST), FIRST + MIDDLE + 4 * LAST, FIRST + MIDDLE + 4 * LAST),
    ),
    "TreeNet(members=4, split='2')": (FIRST + 4 * (MIDDLE + LAST),) * 3,
    "BatchEnsemble(members=4)": (4, 4, WHOLE + 4 * (8 + 16 + 16 + 16 + 16 + 4)),
    "BatchEnsemble(members=4, batches='split')": (1, 4, WHOLE + 4 * (8 + 16 + 16 + 16 + 16 + 4)),
    "LowRank(members=4, rank=2)": (
        *(FIRST + 4 * (MIDDLE + LAST) + 4 * 2 * (8 + 16 + 16 + 16 + 16 + 4), 4),
        WHOLE + 4 * 2 * (8 + 16 + 16 + 16 + 16 + 4),
    ),
    "Mixture(members=4, parameters=0.8)": (4, 4, 0.8),
    "DeepEnsemble(members=4)": (4, 4, 4),
}
"""FLOPs of a forward pass in training, FLOPs of an answer, and stored parameters: a few times the base network's, or a sum."""


@pytest.mark.parametrize("spec", COSTS)
def test_a_method_costs_the_flops_and_parameters_of_the_page(spec):
    """On a network without biases, so that weights and products are the same numbers."""
    base = nn.Sequential(
        *(nn.Linear(8, 16, bias=False), nn.ReLU(), nn.Linear(16, 16, bias=False), nn.ReLU()),
        *(nn.Dropout(0.1), nn.Linear(16, 4, bias=False)),
    )
    x, y = torch.randn(32, 8), torch.arange(32) % 4
    ensemble = pluribus.ensemble(base, eval(spec, vars(pluribus)), example=x)
    training = count_call_flops(lambda: ensemble.train().loss(x, y, examples=100))
    try:
        deployed = ensemble.eval().fold()
    except pluribus.Unsupported:
        deployed = ensemble.eval()
    answer = count_call_flops(lambda: deployed(x))
    stored = count_parameters(deployed if spec.startswith(("Inner", "MIMO")) else ensemble)
    found = [training / (2 * 32), answer / (2 * 32), stored]
    expected = [cost * WHOLE if cost < 10 else cost for cost in COSTS[spec]]
    if spec.startswith("Mixture"):  # the weights are mixed once for a batch, and a budget is met to within one template
        assert 0 < found[0] - expected[0] < expected[0] / 3
        found[0], found[2] = expected[0], expected[2] if abs(found[2] - expected[2]) < 16 else found[2]
    assert found == expected


def test_the_numbers_in_the_prose_of_performance_are_those_of_the_code():
    from pluribus.analysis.timing import MIN_SECONDS
    from pluribus.bench.run import Settings
    from pluribus.bench.targets import TARGET_GROUPS
    from pluribus.core.noise import round_rate
    from pluribus.core.passes import TRUNK_SHARE

    assert f"until it lasts {1000 * MIN_SECONDS:g} ms" in " ".join(PERFORMANCE.split())
    assert f"less than {100 * TRUNK_SHARE:g} % of a member's FLOPs" in PERFORMANCE
    assert f"under {100 * TRUNK_SHARE:g} % of a large network's FLOPs" in " ".join(PAGES["docs/methods.md"].split())
    assert f"(0.1 becomes {256 * round_rate(0.1).rate:g}/256)" in PERFORMANCE
    assert "runs with two threads" in PERFORMANCE
    assert Settings().threads in (1, 2)
    limits = {target.name: target.most for group in TARGET_GROUPS for target in group.targets}
    tightened = [limits[name] for name in ("Variance, first dense layer, K = 20", "MC dropout after it, K = 20")]
    assert f"LeNet-5: {tightened[0]} and {tightened[1]} instead of 3" in PERFORMANCE
    assert f"deep ensemble: {limits['deep ensemble, M = 16, batch of 32']:g} instead of 6" in PERFORMANCE.replace("\n", " ")


def test_the_recorded_comparisons_with_others_and_of_mechanisms_are_those_of_their_files():
    """`make bench-peers` and `benchmarks/parts.py` are not run here: their pages follow from what they recorded."""
    results = ROOT / "benchmarks" / "results"
    parts, peers = (json.loads((results / f"{name}.json").read_text()) for name in ("parts", "peers"))
    page = (results / "parts.md").read_text()
    for row in parts["rows"]:
        assert f"| {row['title']} | {row['median']:.2f}× | {row['low']:.2f} to {row['high']:.2f} |" in page
    assert {row["part"] for row in parts["rows"]} == {"masks", "layout", "memory", "apart", "stacked", "compile"}
    assert f"{parts['rows'][0]['median']:.2f}× the time in `parts.md`" in PERFORMANCE
    page = (results / "peers.md").read_text()
    for row in peers["rows"]:
        times = " ({low:.2f} to {high:.2f}) |".format(**row["theirs_over_base"])
        assert re.search(rf"\| {re.escape(row['method'])} \| {row['work']} .*{re.escape(times)}", page)
        if row["theirs"] == "TabM's layers" and row["work"] == "forward pass":
            assert row["sizes"]["theirs"]["flops"] == row["sizes"]["ours"]["flops"]
    assert {"torch-uncertainty", "tabm"} <= set(peers["versions"])


def test_the_recorded_table_of_cifar10_that_is_named_has_all_methods():
    results = json.loads((ROOT / "results" / "cifar10-methods" / "results.json").read_text())
    names = {method["name"].partition(":")[0] for method in results["methods"]}
    assert set(pluribus.Spec.registry) - {"low-rank"} <= names
    said = " ".join(PAGES["docs/results.md"].split())
    assert "all methods but `LowRank`" in said
    assert "6,000 training rows, 40 epochs" in said
