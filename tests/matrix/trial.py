"""Try a method on a network as a user would, step by step, and write down what came of each step."""

import contextlib
import tempfile
import warnings
from pathlib import Path

import torch

import pluribus
from pluribus.core.errors import PluribusError

from .networks import NETWORKS, ROWS

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


def try_pair(network: str, method: str, exports: bool = True) -> dict[str, str]:
    """What came of each step: "" where it worked, else the error. Steps that need one that failed are left out."""
    torch.manual_seed(0)
    case, outcome = NETWORKS[network], dict[str, str]()
    x, y = case.draw_batch(ROWS), case.draw_targets(ROWS)
    net = case.build()

    @contextlib.contextmanager
    def step(name: str):
        outcome[name] = ""
        try:
            yield
        except Exception as error:
            kind = "" if isinstance(error, PluribusError) else f"{type(error).__name__}: "
            outcome[name] = kind + str(error)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ensemble = None
        with step("convert"):
            ensemble = pluribus.ensemble(net, METHODS[method], example=x, **case.options)
        if ensemble is None:
            return outcome
        with step("train"):
            ensemble.train()
            before = {name: p.detach().clone() for name, p in ensemble.named_parameters() if p.requires_grad}
            optimizer = torch.optim.SGD(ensemble.param_groups(), lr=0.01)
            loss = ensemble.loss(x, y, examples=100)
            loss.backward()
            optimizer.step()
            assert loss.isfinite(), "the loss is not finite"
            moved = [name for name, p in ensemble.named_parameters() if name in before and not torch.equal(before[name], p)]
            assert moved, "no parameter moved"
        ensemble.eval()
        p = None
        with step("predict"):
            p = ensemble.predict(x)
            assert p.outputs.shape[:2] == (ensemble.members, ROWS), list(p.outputs.shape)
            if case.options.get("task") != "regression":
                assert p.labels.shape == y.shape, f"labels {list(p.labels.shape)} and targets {list(y.shape)}"
        if p is None:
            return outcome
        with step("fold"):
            fixed = ensemble.freeze() if ensemble.sampled else ensemble
            with torch.no_grad():
                answers = fixed.predict(x).outputs
                if method == "treenet":
                    folded = torch.stack([pluribus.core.pytrees.call_network(fixed.member(i), x) for i in range(2)])
                else:
                    folded = pluribus.core.pytrees.call_network(fixed.fold(), x)
            torch.testing.assert_close(folded, answers, rtol=1e-4, atol=1e-4)
        with step("save"), tempfile.TemporaryDirectory() as folder:
            if not ensemble.sampled:
                again = pluribus.load(pluribus.save(ensemble, Path(folder) / "e"), case.build()).eval()
                torch.testing.assert_close(again.predict(x).outputs, p.outputs, rtol=0, atol=0)
            else:
                pluribus.load(pluribus.save(ensemble, Path(folder) / "e"), case.build()).eval().predict(x)
        if exports:
            with step("export"), tempfile.TemporaryDirectory() as folder:
                pluribus.export(ensemble, Path(folder) / "model.pt2", example=x)
    return outcome
