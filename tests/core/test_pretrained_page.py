"""docs/pretrained.md says what the recorded ablation says, and its code runs."""

import json
import re
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import pluribus

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "pretrained.md").read_text()
WORDS = " ".join(PAGE.split())


@pytest.fixture(scope="module")
def pretrained():
    sys.path.insert(0, str(ROOT / "results"))
    try:
        import pretrained
    finally:
        sys.path.pop(0)
    return pretrained


@pytest.fixture(scope="module")
def recorded():
    return json.loads((ROOT / "results" / "ablations" / "pretrained.json").read_text())


def test_the_page_shows_the_recorded_table(pretrained, recorded):
    assert pretrained.format_table(recorded) in PAGE


def test_the_verdict_is_that_of_the_rule_on_the_recorded_results(pretrained, recorded):
    verdict = pretrained.judge(recorded["results"])
    verdict |= pretrained.judge_default(recorded["results"], verdict["best spread"])
    assert recorded["verdict"] == verdict


def test_the_default_is_the_spread_that_the_rule_chose(pretrained, recorded):
    best = recorded["verdict"]["best spread"]
    assert recorded["verdict"]["becomes default"]
    assert best == f"normal {pluribus.BatchEnsemble().spread}"
    pairs = [
        [
            f"{pretrained.average(recorded['results'], name, 'untrained', cell, 'end', 'calibrated_nll'):.4f}"
            for name in ("digits", "mnist")
        ]
        for cell in (best, pretrained.DEFAULT)
    ]
    ours, former = pairs
    assert f"its NLL is {ours[0]} on the digits and {ours[1]} on MNIST" in WORDS
    assert f"former default of 0.5 is {former[0]} and {former[1]}" in WORDS
    assert pluribus.BatchEnsemble.candidates["spread"] == (0.1, 0.25, 0.5)


def test_the_code_of_the_page_runs_and_does_what_its_comments_say():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    scope: dict = {}
    exec(compile(block, "docs/pretrained.md", "exec"), scope)
    assert scope["before"].disagreement.max() == 0
    assert scope["p"].disagreement.max() > 0
    p, y = scope["p"], scope["y"][1000:]
    losses = [nn.functional.cross_entropy(output, y).item() for output in p.outputs]
    best = scope["net"].eval()(scope["x"][1000:])
    torch.testing.assert_close(best, p.outputs[losses.index(min(losses))], rtol=0, atol=1e-4)


def test_shared_weights_that_were_frozen_stay_frozen():
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3)).requires_grad_(False)
    ensemble = pluribus.ensemble(net, pluribus.LowRank(members=2))
    assert {name for name, parameter in ensemble.named_parameters() if parameter.requires_grad} == {
        *("net.0.down", "net.0.up", "net.1.down", "net.1.up")
    }
