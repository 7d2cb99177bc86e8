"""A method is one file: written into a temporary module, with no other file touched, it has everything that others have."""

import importlib
import inspect
import sys

import pytest
import torch
from torch import nn

import pluribus
from pluribus import Spec
from pluribus.bench.run import Settings, plan_benchmark, run_benchmark
from tests import test_contract as contract
from tests.contract_rows import Row
from tests.networks import NETWORKS

SOURCE = '''
"""Members with weights of their own in every linear layer.

A. Newcomer, "One file is enough", 2026.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn

from pluribus.core.affine import get_weight_and_bias
from pluribus.core.ensemble import Ensemble
from pluribus.core.heads import OwnWeights
from pluribus.core.initialization import draw_copies
from pluribus.core.spec import Keeps, Spec, require_count


@dataclass(frozen=True)
class Newcomer(Spec):
    """Give each member linear layers of its own."""

    name: ClassVar[str] = "newcomer"
    keeps: ClassVar[Keeps] = "other layers"
    size_option: ClassVar[str | None] = "members"
    growth_axis: ClassVar[Literal["M", "K"] | None] = "M"

    members: int = 5

    def check(self):
        require_count("members", self.members, 2, "one member is the base network")

    def convert(self, subject):
        replaced = {}
        for name, layer in subject.select((nn.Linear,)).items():
            weight, bias = get_weight_and_bias(layer)
            biases = None if bias is None else draw_copies(bias, self.members)
            replaced[name] = OwnWeights(layer, draw_copies(weight, self.members), biases)
        return Ensemble(subject, self, self.members, replaced)
'''


@pytest.fixture
def newcomer(tmp_path, monkeypatch) -> type[Spec]:
    (tmp_path / "newcomer_module.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(Spec, "registry", dict(Spec.registry))
    yield importlib.import_module("newcomer_module").Newcomer
    del sys.modules["newcomer_module"]


CONTRACT = [name for name in vars(contract) if name.startswith("test_")]


@pytest.mark.parametrize(
    "network", ["residual", "transformer", *(pytest.param(n, marks=pytest.mark.slow) for n in ("mlp", "dense"))]
)
def test_it_passes_the_contract(newcomer, network, tmp_path, monkeypatch):
    row = Row(newcomer(members=3), 3, True, True)
    known = {"tmp_path": tmp_path, "monkeypatch": monkeypatch, "task": "classification"}
    for name in CONTRACT:
        make, data = NETWORKS[network]
        test = getattr(contract, name)
        known |= {"row": row, "case": (make(), data), "trained": contract.convert_trained(row.spec, network)}
        test(**{parameter: known[parameter] for parameter in inspect.signature(test).parameters})
    assert len(CONTRACT) > 15


def test_the_command_line_lists_and_describes_it(newcomer, capsys):
    from pluribus.cli.methods import methods

    methods(None)
    assert "newcomer" in capsys.readouterr().out
    methods("newcomer")
    assert "One file is enough" in capsys.readouterr().out


def test_it_is_benchmarked(newcomer, tmp_path):
    plan = plan_benchmark(("table", "growth"), ("mlp",), ("newcomer",))
    found = run_benchmark(plan, tmp_path, Settings(repeats=1, batch=4, threads=1), {}, lambda *_: None)
    assert {row["work"] for row in found["table"]} == {"training step", "forward"}
    assert {row["axis"] for row in found["growth"]} == {"M"}


@pytest.mark.slow  # comparison/test_api.py compares a new method, too, on fewer rows
def test_it_is_compared_and_recommended(newcomer):
    """On few rows of a curved boundary networks err in different places, so that the mean of several is better."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4300, 20, generator=generator)
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
    net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    found = pluribus.compare(
        net, (x[:300], y[:300]), test=(x[300:], y[300:]), methods=["newcomer"], seeds=1, epochs=60, lr=0.003, optimizer="adam",
        batch_size=30, progress=False,
    )  # fmt: skip
    assert list(found.to_frame().index) == ["single", "newcomer"]
    assert "newcomer" in [each["method"] for each in found.recommendation]
    assert "newcomer" in found._repr_html_()
