"""The benchmark reads methods from the registry: a new one is measured without a change elsewhere."""

import importlib
import sys
from collections import Counter

import pytest

from pluribus import Spec
from pluribus.bench.method_sizes import build_benchmark_spec, describe_sizes
from pluribus.bench.page import format_page
from pluribus.bench.results import read_results
from pluribus.bench.run import Settings, plan_benchmark, run_benchmark
from pluribus.core.spec import list_methods

from .example_rows import ABOUT

NEW_METHOD = '''
from dataclasses import dataclass
from typing import ClassVar

from pluribus.methods.batch_ensemble import BatchEnsemble


@dataclass(frozen=True)
class Newcomer(BatchEnsemble):
    """Rank-one factors under another name."""

    name: ClassVar[str] = "newcomer"
    benchmark_options: ClassVar[dict] = {"members": 5}
'''


@pytest.fixture
def newcomer(tmp_path, monkeypatch):
    """A method in a module of its own, registered for one test."""
    (tmp_path / "newcomer_method.py").write_text(NEW_METHOD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(Spec, "registry", dict(Spec.registry))
    importlib.import_module("newcomer_method")
    yield "newcomer"
    del sys.modules["newcomer_method"]


def test_the_baseline_comes_first_and_the_reference_last():
    methods = list_methods()
    assert set(methods) == set(Spec.registry)
    assert Counter(kind.role for kind in Spec.registry.values()).items() >= {"baseline": 1, "reference": 1}.items()
    assert Spec.registry[methods[0]].role == "baseline"
    assert Spec.registry[methods[-1]].role == "reference"
    assert methods[1:-1] == sorted(methods[1:-1])


def test_every_fact_of_a_spec_names_an_option_of_it():
    for kind in Spec.registry.values():
        named = {kind.size_option, kind.nested_option, *kind.benchmark_options} - {None}
        assert named <= set(kind.__dataclass_fields__)
        assert kind.growth_axis is None or kind.size_option is not None
        assert isinstance(build_benchmark_spec(kind.name), kind)


def test_sizes_are_the_usual_ones_and_the_exceptions():
    assert describe_sizes(list_methods()) == "M = 4 (MIMO 3), m = 4, K = 20"
    assert describe_sizes(["single"]) == ""
    assert describe_sizes(["no-longer-registered", "inner"]) == "m = 4"


def test_a_new_method_is_in_the_table_and_in_growth_with_no_other_file_touched(newcomer, tmp_path, monkeypatch):
    monkeypatch.setattr("pluribus.analysis.timing.MIN_SECONDS", 0.0)
    assert newcomer in [job.name for job in plan_benchmark()["table"]]
    plan = plan_benchmark(["table", "growth"], ["mlp"], [newcomer])
    run_benchmark(plan, tmp_path / "results", Settings(1, 4, 1), ABOUT, lambda *_: None)
    found = read_results(tmp_path / "results")
    assert [(row["method"], row["work"]) for row in found["table"]] == [(newcomer, "training step"), (newcomer, "forward")]
    assert [row["method"] for row in found["growth"]] == [newcomer, newcomer]
    assert [point["at"] for point in found["growth"][0]["points"]] == [1, 2, 4, 8, 16]
    page = format_page(found)
    assert page.count("| newcomer | ") == 3  # one row of the table, and one for each workload of growth
    assert "M = 5; the middle half" in page
