"""Try a method on a network as a user would, step by step, and write down what came of each step."""

import contextlib
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

import pluribus
from pluribus.core.errors import PluribusError
from pluribus.core.pytrees import call_network

from .networks import ROWS, Network

METHODS: dict[str, pluribus.Spec] = {
    "single": pluribus.Single(),
    "inner": pluribus.Inner(copies=2),
    "maxout": pluribus.Maxout(copies=2),
    "variance": pluribus.Variance(samples=2),
    "variational": pluribus.VariationalDropout(samples=2),
    "mimo": pluribus.MIMO(members=2),
    "mixture": pluribus.Mixture(members=2, parameters=2.0),
    "batch-ensemble": pluribus.BatchEnsemble(members=2),
    "treenet": pluribus.TreeNet(members=2),
    "multihead": pluribus.Multihead(members=2),
    "mc-dropout": pluribus.MCDropout(samples=2),
    "deep-ensemble": pluribus.DeepEnsemble(members=2),
}
STEPS = ("convert", "train", "predict", "fold", "save", "export")
Outcome = dict[str, str]


def try_method(case: Network, method: str, exports: bool = False) -> Outcome:
    """What came of each step: "" where it worked, else the reason. Steps that need one that failed are left out."""
    torch.manual_seed(0)
    outcome: Outcome = {}
    x, y, net = case.draw_batch(ROWS), case.draw_targets(ROWS), case.build()

    @contextlib.contextmanager
    def step(name: str) -> Iterator[None]:
        outcome[name] = ""
        try:
            yield
        except Exception as error:
            kind = "" if isinstance(error, PluribusError) else f"{type(error).__name__}: "
            outcome[name] = kind + " ".join(str(error).split())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ensemble = None
        with step("convert"):
            ensemble = pluribus.ensemble(net, METHODS[method], example=x, **case.options)
        if ensemble is None:
            return outcome
        with step("train"):
            take_step(ensemble.train(), x, y)
        ensemble.eval()
        with step("predict"):
            check_prediction(ensemble, x, y)
        with step("fold"):
            check_members(ensemble, method, x)
        with step("save"), tempfile.TemporaryDirectory() as folder:
            again = pluribus.load(pluribus.save(ensemble, Path(folder) / "e"), case.build()).eval()
            answers = again.predict(x).outputs
            if not ensemble.sampled:
                torch.testing.assert_close(answers, ensemble.predict(x).outputs, rtol=0, atol=0)
        if exports:
            with step("export"), tempfile.TemporaryDirectory() as folder:
                pluribus.export(ensemble, Path(folder) / "model.pt2", example=x)
    return outcome


def take_step(ensemble: pluribus.Ensemble, x: object, y: torch.Tensor) -> None:
    """One step of SGD, after which some parameter must be another."""
    before = {name: p.detach().clone() for name, p in ensemble.named_parameters()}
    loss = ensemble.loss(x, y, examples=100)
    loss.backward()
    torch.optim.SGD(ensemble.param_groups(), lr=0.01).step()
    assert loss.isfinite(), "the loss is not finite"
    assert any(not torch.equal(before[name], p) for name, p in ensemble.named_parameters()), "no parameter moved"


def check_prediction(ensemble: pluribus.Ensemble, x: object, y: torch.Tensor) -> None:
    """An answer of every member to every row, and a label for every target."""
    p = ensemble.predict(x)
    assert p.outputs.shape[:2] == (ensemble.members, ROWS), f"outputs of the shape {list(p.outputs.shape)}"
    assert p.is_finite.all(), "an answer is not finite"
    if ensemble.task == "classification":
        assert p.labels.shape == y.shape, f"labels of the shape {list(p.labels.shape)}, targets of {list(y.shape)}"


def check_members(ensemble: pluribus.Ensemble, method: str, x: object) -> None:
    """What folding leaves answers as the ensemble does; TreeNet, which has no folded form, has members that do."""
    fixed = ensemble.freeze() if ensemble.sampled else ensemble
    with torch.no_grad():
        answers = fixed.predict(x).outputs
        if method == "treenet":
            plain = torch.stack([call_network(fixed.member(index), x) for index in range(fixed.members)])
        else:
            plain = call_network(fixed.fold(), x)
    torch.testing.assert_close(plain, answers, rtol=1e-4, atol=1e-4)
