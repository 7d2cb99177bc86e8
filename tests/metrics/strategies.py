"""Cases of hypothesis that the metrics must cope with: one row, one member, one logit, ties, certainty, impossibility,
single and double precision, targets with an axis too many, outputs with more axes.

A column of its own is the logit of a yes, so no prediction has a single class; that all targets are of one class is drawn.
"""

from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st

from pluribus import Predictive

repeatable = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def draw_ties(generator, shape):
    return generator.integers(-2, 3, shape).astype(float)


def draw_normal(generator, shape):
    return generator.normal(scale=3, size=shape)


def draw_extreme(generator, shape):
    """Logits that make probabilities of exactly 0 and 1."""
    return generator.choice([-torch.inf, -torch.inf, -5000.0, 0.0, 1.0, 5000.0], shape)


# The shapes are hypothesis's, the values are a generator's: hundreds of draws a case are slow and much alike.
DTYPES = st.sampled_from([torch.float, torch.double])
GENERATORS = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def classifications(draw, rows=8, kinds=(draw_ties, draw_normal, draw_extreme), beyond=((), (), (2,))):
    """A prediction of a class and its targets."""
    generator, values = draw(GENERATORS), draw(st.sampled_from(kinds))
    shape = (draw(st.integers(1, 4)), draw(st.integers(1, rows)), draw(st.integers(1, 4)), *draw(st.sampled_from(beyond)))
    outputs = torch.from_numpy(values(generator, shape))
    if shape[2] > 1:  # a row needs a class that is possible
        outputs[:, :, 0] = torch.where((outputs == -torch.inf).all(2), 0.0, outputs[:, :, 0])
    highest = draw(st.sampled_from([1, max(shape[2], 2)]))  # targets of one class, or of all
    targets = torch.from_numpy(generator.integers(0, highest, (shape[1], *shape[3:])))
    wide = not shape[3:] and draw(st.booleans())
    return Predictive(outputs.to(draw(DTYPES))), targets.unsqueeze(1) if wide else targets


@st.composite
def large_classifications(draw):
    """More rows."""
    generator, values = draw(GENERATORS), draw(st.sampled_from([draw_ties, draw_normal]))
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 150)), draw(st.integers(2, 4)))
    outputs, targets = values(generator, shape), generator.integers(0, shape[2], shape[1])
    return Predictive(torch.from_numpy(outputs).to(draw(DTYPES))), torch.from_numpy(targets)


@st.composite
def regressions(draw, rows=5):
    """A regression and its targets; members may agree to the last digit."""
    generator, values = draw(GENERATORS), draw(st.sampled_from([draw_ties, draw_normal]))
    shape = (draw(st.integers(1, 4)), draw(st.integers(1, rows)), *draw(st.sampled_from([(), (1,), (2,)])))
    centre, agree = draw(st.sampled_from([0.0, 100.0])), draw(st.booleans())
    outputs = centre + values(generator, (1 if agree else shape[0], *shape[1:]))
    targets = torch.from_numpy(centre + values(generator, shape[1:]))
    outputs, dtype = torch.from_numpy(outputs).expand(shape), draw(DTYPES)
    return Predictive(outputs.to(dtype), "regression"), (targets.flatten() if shape[2:] == (1,) else targets).to(dtype)


def scores(most=45):
    """Scores of some rows, many of them equal, some infinite."""
    value = st.one_of(st.integers(0, 4).map(float), st.floats(-3, 3, width=16), st.sampled_from([-torch.inf, torch.inf]))
    return st.builds(torch.tensor, st.lists(value, min_size=1, max_size=most), dtype=DTYPES)


class Stated(Predictive):
    """Probabilities `[B, C]` to the last bit, which a softmax would round."""

    @property
    def log_probs(self):
        return self.outputs[0].log()

    @property
    def probs(self):
        return self.outputs[0]


def compute_exact_probabilities(p):
    """The members' probabilities and their average, `[M][N][C]` and `[N][C]`: e^x / Σ e^x with 40 digits and no overflow."""
    outputs = p.outputs.movedim(2, -1).flatten(1, -2).tolist()
    with localcontext(Context(prec=40)):
        members = [[softmax([0.0, *row] if len(row) == 1 else row) for row in member] for member in outputs]
        rows = [[sum(each) / len(members) for each in zip(*row, strict=True)] for row in zip(*members, strict=True)]
    return members, rows


def softmax(logits):
    terms = [Decimal(x).exp() for x in logits]
    return [term / sum(terms) for term in terms]


def flat(p, targets):
    """Probabilities `[N, C]`, targets `[N]`, confidences `[N]` and right answers `[N]` as arrays."""
    right = p.labels.flatten() == targets.flatten()
    probs = p.probs.double().movedim(1, -1).flatten(0, -2)
    return probs.numpy(), targets.flatten().numpy(), p.confidence.double().flatten().numpy(), right.numpy()


def near(value, p, scale=1.0):
    """Equal but for the rounding of the prediction's precision."""
    single = p.outputs.dtype == torch.float
    return pytest.approx(float(value), rel=1e-5 if single else 1e-10, abs=scale * (2e-6 if single else 1e-12))
