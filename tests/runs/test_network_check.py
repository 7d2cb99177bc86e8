"""What is checked before a run begins."""

import pytest
from torch import nn

from pluribus import BatchEnsemble, DeepEnsemble, Inner, Single
from pluribus.runs import network_check
from pluribus.runs.config import ConfigError, build_config
from pluribus.runs.network_check import WEIGHTS, check_weight_memory
from pluribus.runs.training import train_run

NET = nn.Linear(1023, 1)
"""4,096 bytes."""


def test_weights_may_take_as_much_as_the_limit_and_no_byte_more(monkeypatch):
    monkeypatch.setenv(WEIGHTS.variable, str(4096 * 50))
    check_weight_memory(NET, DeepEnsemble(members=50), "it")
    with pytest.raises(ConfigError, match=r"it would have 0\.0 GiB of weights, more than the limit.*PLURIBUS_MAX_WEIGHTS"):
        check_weight_memory(NET, DeepEnsemble(members=51), "it")
    with pytest.raises(ConfigError, match="of weights"):
        check_weight_memory(NET, DeepEnsemble(members=26, of=Inner(copies=2)), "it")


def test_memory_is_limited_and_not_the_number_of_members(monkeypatch):
    monkeypatch.setenv(WEIGHTS.variable, str(4096 * 200))
    check_weight_memory(NET, BatchEnsemble(members=150), "it")  # a vector for each
    check_weight_memory(NET, DeepEnsemble(members=150), "it")
    with pytest.raises(ConfigError, match="of weights"):
        check_weight_memory(NET, DeepEnsemble(members=250), "it")


def test_a_network_that_is_larger_than_the_limit_may_be_used_alone(monkeypatch):
    monkeypatch.setenv(WEIGHTS.variable, "100")
    check_weight_memory(NET, Single(), "it")


def test_small_ensembles_are_not_even_counted(monkeypatch):
    monkeypatch.setattr(network_check, "count_weight_bytes", lambda *_: pytest.fail("it counted"))
    check_weight_memory(NET, DeepEnsemble(members=1000), "it")


def test_a_run_that_would_fill_the_memory_is_refused_before_anything_is_built_or_written(tmp_path):
    """1,000 wide residual networks of 11 MB each."""
    method = {"name": "deep-ensemble", "members": 1000}
    config = build_config(
        {"data": "digits", "model": {"name": "wrn", "depth": 16, "width": 4}, "method": method, "rows": 40, "validation": 0}
    )
    with pytest.raises(ConfigError, match=r"would have 10\.\d GiB of weights, more than the limit of 4\.0 GiB"):
        train_run(config, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()
