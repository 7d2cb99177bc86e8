"""Every method is in the table, and trains and predicts on every network."""

import pytest
import torch

from pluribus.bench.measurement import convert_with
from pluribus.bench.method_sizes import build_benchmark_spec
from pluribus.bench.networks import CLASSES, NETWORKS
from pluribus.bench.table import plan_table
from pluribus.bench.workloads import TrainingStep, prepare_forward
from pluribus.core.spec import list_methods


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("pluribus.analysis.timing.MIN_SECONDS", 0.0)


EVERY = [(method, network) for method in list_methods() for network in NETWORKS]
FEW = [(method, list(NETWORKS)[place % len(NETWORKS)]) for place, method in enumerate(list_methods())]
"""Every method on one network, every network with two methods or more; the other pairs are left to `make test-all`."""


@pytest.mark.parametrize(
    ("method", "network"), [pair if pair in FEW else pytest.param(*pair, marks=pytest.mark.slow) for pair in EVERY]
)
def test_every_method_learns_and_answers_on_every_network(method, network):
    x, y = NETWORKS[network].draw_batch(2)
    ensemble = convert_with(build_benchmark_spec(method))(NETWORKS[network].make(), x)
    before = [parameter.clone() for parameter in ensemble.parameters()]
    TrainingStep(ensemble, x, y)()
    assert any(not torch.equal(old, new) for old, new in zip(before, ensemble.parameters(), strict=True))
    probs = prepare_forward(ensemble, x)().probs
    assert probs.shape == (2, CLASSES)
    assert probs.isfinite().all()


@pytest.mark.parametrize("network", NETWORKS)
def test_a_batch_fits_its_network_and_images_have_their_channels_last(network):
    x, y = NETWORKS[network].draw_batch(3)
    assert NETWORKS[network].make().eval()(x).shape == (3, CLASSES)
    assert y.shape == (3,)
    assert x.dim() == 2 or x.is_contiguous(memory_format=torch.channels_last)


def test_the_table_has_a_training_step_and_an_answer_of_every_method_on_every_network():
    methods = list_methods()
    assert len(plan_table(NETWORKS, methods)) == 2 * len(NETWORKS) * len(methods)
    assert len(plan_table(["mlp"], ["mimo", "inner", "mimo"])) == 4
    job = plan_table(["mlp"], ["mimo"])[0]
    (row,) = job.make_rows(job.measurement.run(4, 2, lambda timings: None))
    assert {"network": "mlp", "method": "mimo", "work": "training step"}.items() <= row.items()
    assert row["time"]["low"] <= row["time"]["median"] <= row["time"]["high"]
    assert row["memory"] > 1
    assert row["flops"] > 1
