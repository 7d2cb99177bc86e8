"""Our attacks against those that others wrote: run where torchattacks or the adversarial-robustness-toolbox is installed."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import DeepEnsemble, Single
from pluribus.analysis import Attack
from pluribus.analysis.attacks import compute_gradient
from pluribus.analysis.perturbation_region import PerturbationRegion

SPECS = {
    "fgsm": Attack(0.03, 0.03, iterations=1),
    "fgsm, targeted": Attack(0.03, 0.03, iterations=1, targeted=True),
    "pgd": Attack(0.05, 0.02, iterations=6),
    "pgd, targeted": Attack(0.05, 0.02, iterations=6, targeted=True),
    "pgd l2": Attack(0.8, 0.2, iterations=6, norm="l2"),
    "pgd l2, targeted": Attack(0.8, 0.2, iterations=6, norm="l2", targeted=True),
}


class Averaging(nn.Module):
    """What an ensemble answers, as one network: its softmax is the members' mean."""

    def __init__(self, ensemble):
        super().__init__()
        self.ensemble = ensemble

    def forward(self, x):
        return self.ensemble(x).softmax(2).mean(0).log()


def torchattacks(net, x, y, spec):
    library = pytest.importorskip("torchattacks")
    options = {"eps": spec.epsilon, "alpha": spec.step, "steps": spec.iterations, "random_start": False}
    if spec.iterations == 1:
        theirs = library.FGSM(net, eps=spec.epsilon)
    else:
        theirs = library.PGD(net, **options) if spec.norm == "linf" else library.PGDL2(net, **options)
    if spec.targeted:
        theirs.set_mode_targeted_by_label(quiet=True)
    return theirs(x, y)


def toolbox(net, x, y, spec):
    pytest.importorskip("art.attacks")
    from art.attacks.evasion import FastGradientMethod, ProjectedGradientDescentPyTorch
    from art.estimators.classification import PyTorchClassifier

    victim = PyTorchClassifier(net, nn.CrossEntropyLoss(), x.shape[1:], 3, clip_values=box(toolbox, spec), device_type="cpu")
    options = {"norm": "inf" if spec.norm == "linf" else 2, "eps": spec.epsilon, "targeted": spec.targeted}
    if spec.iterations == 1:
        theirs = FastGradientMethod(victim, **options)
    else:
        steps = {"eps_step": spec.step, "max_iter": spec.iterations, "num_random_init": 0, "verbose": False}
        theirs = ProjectedGradientDescentPyTorch(victim, **options, **steps)
    return torch.from_numpy(theirs.generate(x.numpy(), y.numpy()))


@pytest.mark.parametrize("method", [Single(), DeepEnsemble(3)], ids=["single", "ensemble"])
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("theirs", [torchattacks, toolbox])
def test_perturbations_are_those_of(theirs, kind, method):
    spec = SPECS[kind]
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Softplus(), nn.Flatten(), nn.Linear(8 * 36, 3))
    dtype = torch.float if theirs is toolbox else torch.double  # the toolbox knows single precision only
    ensemble = pluribus.ensemble(net.to(dtype), method).eval()
    x, y = torch.rand(10, 3, 8, 8, dtype=dtype), torch.randint(0, 3, (10,))
    expected = theirs(Averaging(ensemble), x.clone(), y, spec)
    found = last_point(ensemble, x, y, spec, *box(theirs, spec))
    torch.testing.assert_close(found, expected.to(dtype), rtol=0, atol=1e-5)


def box(theirs, spec):
    """The toolbox goes back into the box before the L2 ball, others (and we) after: there they agree if the box is wide."""
    return (-9.0, 9.0) if theirs is toolbox and spec.norm == "l2" else (0.0, 1.0)


def last_point(ensemble, x, y, spec, low, high):
    """Where the first run ends. `attack` itself keeps the best point on the way, which need not be the last."""
    region = PerturbationRegion(
        x, torch.full_like(x, low), torch.full_like(x, high), torch.ones_like(x), spec.norm, spec.epsilon
    )
    for _ in range(spec.iterations):
        x = region.take_step(x, compute_gradient(ensemble, x, y, spec), spec.step)
    return x
