"""The network for tables: its embeddings by hand, its columns, and every method on it."""

import itertools
import math

import pytest
import torch
from scipy.stats import norm
from torch import nn

import pluribus
from pluribus.core.members import Converted
from pluribus.models.registry import ModelError, build
from pluribus.models.tabular import ColumnEmbeddings, Periodic, Piecewise, ResidualBlock, tabular
from pluribus.runs.config import build_spec

from ..contract_rows import METHODS

WIDTHS = (0, 3, 0, 1)
"""A number, a column of three categories, and a number with a mark where it is missing."""


def draw_rows(count, dtype=torch.float):
    x = torch.randn(count, 6, dtype=dtype)
    x[:, 1:4] = nn.functional.one_hot(torch.arange(count) % 3, 3).to(dtype)
    x[:, 5] = (torch.arange(count) % 2).to(dtype)
    return x


def test_periodic_embeddings_by_hand():
    layer = Periodic(columns=2, size=3, count=4, scale=0.5).double()
    x = torch.randn(5, 2, dtype=torch.double)
    found = layer(x).view(5, 2, 3)
    for row in range(5):
        for column in range(2):
            angles = [2 * math.pi * f * x[row, column].item() for f in layer.frequencies[column].tolist()]
            waves = torch.tensor([math.cos(a) for a in angles] + [math.sin(a) for a in angles], dtype=torch.double)
            expected = (waves @ layer.mixing[column] + layer.shift[column, 0]).relu()
            torch.testing.assert_close(found[row, column], expected, rtol=0, atol=1e-12)


def test_frequencies_start_with_the_scale_that_is_asked_for():
    frequencies = Periodic(columns=50, size=1, count=100, scale=0.2).frequencies
    assert frequencies.std().item() == pytest.approx(0.2 * 0.9866, rel=0.03)  # of a normal cut off at three deviations
    assert frequencies.abs().max() <= 0.6


def test_piecewise_embeddings_by_hand():
    layer = Piecewise(columns=2, size=3, bins=4).double()
    edges = [-3.0, norm.ppf(0.25), 0.0, norm.ppf(0.75), 3.0]
    torch.testing.assert_close(layer.edges, torch.tensor(edges, dtype=torch.double), rtol=0, atol=1e-6)
    layer.edges.copy_(torch.tensor(edges, dtype=torch.double))
    with torch.no_grad():
        layer.bends.normal_()
    x = torch.tensor([[-9.0, 0.1], [0.5, 2.0], [-1.0, 40.0]], dtype=torch.double)
    found = layer(x).view(3, 2, 3)
    for row in range(3):
        for column in range(2):
            value = x[row, column].item()
            filled = [min(1, max(0, (value - a) / (b - a))) for a, b in itertools.pairwise(edges)]
            bent = torch.tensor(filled, dtype=torch.double) @ layer.bends[column]
            expected = layer.slope[column, 0] * value + layer.shift[column, 0] + bent
            torch.testing.assert_close(found[row, column], expected, rtol=0, atol=1e-12)


def test_piecewise_embeddings_begin_as_linear_ones():
    layer = Piecewise(columns=1, size=2, bins=5)
    low, middle, high = layer(torch.tensor([[-1.0], [0.0], [1.0]]))
    torch.testing.assert_close(high - middle, middle - low)


def test_columns_are_embedded_apart_and_an_unknown_category_is_zero():
    layer = ColumnEmbeddings(WIDTHS, nn.Identity(), size=2)
    assert [tuple(table.shape) for table in layer.tables] == [(3, 2), (1, 1)]
    x = torch.tensor([[1.5, 0, 1, 0, -2.5, 1], [1.5, 0, 0, 0, -2.5, 0]])
    known, unknown = layer(x)
    torch.testing.assert_close(known, torch.cat([torch.tensor([1.5, -2.5]), layer.tables[0][1], layer.tables[1][0]]))
    torch.testing.assert_close(unknown, torch.tensor([1.5, -2.5, 0, 0, 0]))


def test_a_residual_block_adds_to_what_it_gets():
    block = ResidualBlock(4, dropout=0.5).double().eval()
    x = torch.randn(3, 4, dtype=torch.double)
    centred = x - x.mean(1, keepdim=True)
    hidden = block.widen(centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt()).relu()
    torch.testing.assert_close(block(x), x + block.narrow(hidden), rtol=0, atol=1e-12)


@pytest.mark.parametrize("embedding", ["periodic", "piecewise", "none"])
@pytest.mark.parametrize("trunk", ["mlp", "residual"])
def test_every_embedding_suits_every_trunk_and_any_columns(embedding, trunk):
    for widths in (WIDTHS, None, (3, 3)):
        net = tabular(6, 2, widths, embedding, trunk, width=8, depth=2, dropout=0.1)
        assert net(draw_rows(5)).shape == (5, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embedding": "sines"}, "embedding must be one of periodic, piecewise, none, got 'sines'"),
        ({"trunk": "tree"}, "trunk must be one of mlp, residual, got 'tree'"),
        ({"dropout": 1}, "dropout must be a number from 0 to just below 1, got 1"),
        ({"depth": 0}, "depth of tabular must be a whole number of at least 1, got 0"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(ModelError, match=message):
        build("tabular", (6,), 1, **options)


def test_columns_that_do_not_fit_the_rows_are_refused():
    with pytest.raises(ValueError, match="columns of \\(0, 3\\) have 4 numbers a row, and not 6"):
        tabular(6, 1, (0, 3))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_converts_it_trains_and_answers_as_its_members_do(method):
    row = METHODS[method]
    net = build("tabular", (6,), 2, column_widths=WIDTHS, width=8, depth=1, dropout=0.1).double()
    x = draw_rows(7, torch.double)
    ensemble = pluribus.ensemble(net, row.spec, example=x[:2])
    ensemble.train().loss(x, torch.arange(7) % 2, examples=7).backward()
    assert any(p.grad is not None and bool((p.grad != 0).any()) for p in ensemble.parameters())
    answers = ensemble.eval()(x)
    assert answers.shape == (row.members, 7, 2)
    if row.plain_members:
        torch.testing.assert_close(ensemble.member(0)(x), answers[0], rtol=0, atol=1e-10)
    if row.folds:
        torch.testing.assert_close(ensemble.fold()(x), answers, rtol=0, atol=1e-10)


def test_the_first_layer_of_a_method_is_the_first_dense_one_and_embeddings_run_once():
    net = build("tabular", (6,), 1, column_widths=WIDTHS, width=8, depth=1)
    for name in ("mimo", "batch-ensemble:heads=own,init=first-sign"):
        choice, _, options = name.partition(":")
        spec = build_spec({"name": choice} | dict(pair.split("=") for pair in options.split(",") if pair))
        ensemble = pluribus.ensemble(net, spec, example=draw_rows(2), task="regression").eval()
        rows = []
        ensemble.net[1].register_forward_hook(lambda module, args, output, rows=rows: rows.append(len(args[0])))
        ensemble.predict(draw_rows(7))
        assert set(rows) == {7}
        assert isinstance(ensemble.net[2], Converted), "the first dense layer"
