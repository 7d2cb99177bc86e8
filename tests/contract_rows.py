"""The methods that the contract is tested with, and on which networks. A new method adds one row."""

from dataclasses import dataclass

import pytest
import torch

from pluribus import (
    MIMO,
    BatchEnsemble,
    DeepEnsemble,
    Inner,
    LowRank,
    Maxout,
    MCDropout,
    Mixture,
    Multihead,
    Predictive,
    PredictiveSummary,
    Single,
    Spec,
    TreeNet,
    Variance,
    VariationalDropout,
)

from .networks import NETWORKS


@dataclass
class Row:
    spec: Spec
    members: int  # the first axis in evaluation
    folds: bool  # whether fold() gives a plain module, or raises Unsupported
    plain_members: bool  # the same of member(i)
    restores: bool = True  # the same of pluribus.restore


METHODS = {
    "single": Row(Single(), 1, True, True),
    "inner": Row(Inner(copies=3), 1, True, True),
    "inner+fc": Row(Inner(copies=3, include="*"), 1, True, True),
    "inner-lean": Row(Inner(copies=3, include="*", lean=True), 1, True, True),
    "maxout": Row(Maxout(copies=2), 1, False, False, False),
    "variance": Row(Variance(samples=4), 4, False, False, False),
    "variance-uniform": Row(Variance(noise="uniform", samples=4), 4, False, False, False),
    "variational": Row(VariationalDropout(samples=3), 3, False, False),
    "variational-mean": Row(VariationalDropout(answer="mean"), 1, True, True),
    "mimo": Row(MIMO(members=3), 3, True, True),
    "mixture": Row(Mixture(members=3, parameters=1.6), 3, True, True),
    "mixture-blob": Row(Mixture(members=3, parameters=0.9, blob=True), 3, True, True),
    "mixture-of-mimo": Row(Mixture(members=2, parameters=2.5, of=MIMO(members=2)), 4, True, True),
    "batch-ensemble": Row(BatchEnsemble(members=3), 3, True, True),
    "batch-ensemble-split": Row(BatchEnsemble(members=3, batches="split", batchnorm="own"), 3, True, True),
    "batch-ensemble-heads": Row(BatchEnsemble(members=3, heads="own", init="first-sign"), 3, True, True),
    "treenet": Row(TreeNet(members=3), 3, False, True),
    "treenet-of-dropout": Row(TreeNet(members=2, of=MCDropout(samples=3)), 6, False, False),
    "multihead": Row(Multihead(members=3), 3, True, True),
    "mc-dropout": Row(MCDropout(samples=4), 4, False, False),
    "deep": Row(DeepEnsemble(members=2), 2, True, True),
    "deep-inner": Row(DeepEnsemble(members=2, of=Inner(copies=2)), 2, True, True),
    "deep-mimo": Row(DeepEnsemble(members=2, of=MIMO(members=2)), 4, True, True),
    "deep-variance": Row(DeepEnsemble(members=2, of=Variance(samples=3)), 6, False, False, False),
    "single-dropout": Row(Single(dropout=0.3), 1, True, True),
    "low-rank": Row(LowRank(members=3, rank=2), 3, True, True),
    "low-rank-frozen": Row(LowRank(members=3, frozen=True), 3, True, True),
}


def rotate(*steps: int) -> list[tuple[str, str]]:
    """Every method on as many networks as there are steps, and every network with the same number of methods."""
    names = list(NETWORKS)
    return [(method, names[(place + step) % len(names)]) for place, method in enumerate(METHODS) for step in steps]


PAIRS, SOME_PAIRS, FEW_PAIRS = rotate(0, 1, 2, 3), rotate(0, 2), rotate(0)
"""Every method on every network, on two networks, and on one: the last two are for what does not depend on both."""


def on(pairs: list[tuple[str, str]], network: str = "case", slow: list[tuple[str, str]] | None = None):
    """Run a test on these pairs of a method and a network, a new one (`case`) or one that tests share (`trained`).

    Pairs that are in `slow` alone are left to `make test-all`.
    """
    more = [pytest.param(*pair, marks=pytest.mark.slow) for pair in slow or [] if pair not in pairs]
    ids = ["-".join(pair) for pair in pairs] + ["-".join(param.values) for param in more]
    return pytest.mark.parametrize(("row", network), [*pairs, *more], indirect=True, ids=ids)


AVERAGES = {
    "classification": ("log_probs", "probs", "confidence", "entropy", "expected_entropy", "mutual_information", "disagreement"),
    "regression": ("mean", "variance", "std", "spread_variance", "noise_variance"),
}


def check_same_averages(short: PredictiveSummary, full: Predictive) -> None:
    """Whatever needs no members is the same with and without them, in double to 1e-12."""
    for name in AVERAGES[full.task]:
        torch.testing.assert_close(getattr(short, name), getattr(full, name), rtol=0, atol=1e-12, msg=name)
    if full.task == "classification":
        assert torch.equal(short.labels, full.labels)
        torch.testing.assert_close(short.nll(full.labels), full.nll(full.labels), rtol=0, atol=1e-12)
