"""What the page says of networks and methods is what was recorded, and what was recorded is what happens."""

import re

import pytest

from .networks import NEEDED, NETWORKS, Network
from .page import PAGE, format_section, read_outcomes
from .trial import METHODS, STEPS, try_method

RECORDED = read_outcomes()
PAIRS = [(network, method) for network in NETWORKS for method in METHODS]
NAMES = list(METHODS)
QUICK = {(network, NAMES[(5 * place + 6) % len(NAMES)]) for place, network in enumerate(NETWORKS)}
"""Every network with one method, and every method with one network at least."""
QUICK |= {("ViT", "batch-ensemble"), ("GPT-2", "batch-ensemble"), ("BERT", "mc-dropout"), ("ResNet, heads", "multihead")}


def require(network: str) -> Network:
    """The network, if the library that it comes from is there; else the test is skipped."""
    if network in NEEDED:
        pytest.importorskip(NEEDED[network], reason=f"{network} comes from {NEEDED[network]}, which is not installed")
    return NETWORKS[network]


@pytest.mark.parametrize(
    ("network", "method"),
    [pytest.param(*pair, marks=[] if pair in QUICK else [pytest.mark.slow], id="-".join(pair)) for pair in PAIRS],
)
def test_a_network_of_others_becomes_an_ensemble_or_is_refused_as_recorded(network, method):
    recorded = {step: reason for step, reason in RECORDED["networks"][network]["outcomes"][method].items() if step != "export"}
    assert try_method(require(network), method) == recorded


EXPORTED = [("encoder", "single"), ("two inputs", "batch-ensemble"), ("GRU", "deep-ensemble"), ("U-Net", "multihead")]


@pytest.mark.slow
@pytest.mark.parametrize(("network", "method"), EXPORTED, ids="-".join)
def test_networks_of_others_are_exported_as_recorded(network, method):
    assert try_method(require(network), method, exports=True) == RECORDED["networks"][network]["outcomes"][method]


def test_every_pair_is_recorded():
    assert len(NETWORKS) >= 16
    for network in NETWORKS:
        assert set(RECORDED["networks"][network]["outcomes"]) == set(METHODS), network
        for outcome in RECORDED["networks"][network]["outcomes"].values():
            assert "convert" in outcome
            assert set(outcome) <= set(STEPS)


def test_every_refusal_says_what_stands_in_the_way():
    """None is an error of Python or of torch that went through."""
    for network, each in RECORDED["networks"].items():
        for method, outcome in each["outcomes"].items():
            for step, reason in outcome.items():
                assert not re.match(r"\w*(Error|Exception): ", reason), (network, method, step, reason)
                assert not outcome.get("train"), (network, method)
                assert not outcome.get("predict"), (network, method)
                assert not outcome.get("save"), (network, method)


def test_every_method_but_mimo_multihead_and_treenet_takes_all_but_a_few():
    """Those three need a first or a last layer of their own, or a place to split at, which tied weights do not allow."""
    for method in METHODS:
        refused = [network for network, each in RECORDED["networks"].items() if each["outcomes"][method].get("convert")]
        most = {"mimo": 9, "multihead": 3, "treenet": 3, "variance": 3}.get(method, 0)
        assert len(refused) <= most, (method, refused)


def test_the_page_shows_what_was_recorded():
    assert format_section(RECORDED) in PAGE.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "mobilenetv3_small_050"])
@pytest.mark.parametrize("method", METHODS)
def test_networks_of_timm_are_converted(name, method):
    timm = pytest.importorskip("timm", exc_type=ImportError, reason="timm needs torchvision, which the CPU build cannot load")
    import torch

    case = Network(
        "timm, images",
        lambda: timm.create_model(name, num_classes=3),
        lambda rows: torch.randn(rows, 3, 224, 224),
        lambda rows: torch.randint(0, 3, (rows,)),
        {},
    )
    outcome = try_method(case, method)
    assert not any(re.match(r"\w*(Error|Exception): ", reason) for reason in outcome.values()), outcome
