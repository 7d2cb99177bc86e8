"""Cells and their notation."""

import itertools
import json

import pytest

from pluribus.core.errors import FileError
from pluribus.search import NAS_BENCH_201, Cell, CellGraph, draw_cell, draw_random_cell, make_operations

TEXT = "|inner_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|avg_pool_3x3~1|maxout_conv_3x3~2|"


def test_the_notation_is_that_of_nas_bench_201_and_json_gives_the_cell_again():
    cell = Cell.parse(TEXT)
    assert cell.graph == NAS_BENCH_201
    assert str(cell) == TEXT
    assert cell.list_edges()[2] == (1, 2, "nor_conv_1x1")
    assert Cell.from_json(json.loads(json.dumps(cell.to_json()))) == cell
    assert hash(cell) == hash(Cell.parse(TEXT))
    with pytest.raises(AttributeError):
        cell.operations = ()


def test_edges_may_be_given_in_any_order():
    assert CellGraph(3, ((1, 2), (0, 1))) == CellGraph(3, ((0, 1), (1, 2)))
    chain = Cell(CellGraph(3, ((1, 2), (0, 1))), ("a", "b"))
    assert str(chain) == "|a~0|+|b~1|"
    assert Cell.parse(str(chain)) == chain


@pytest.mark.parametrize(
    ("nodes", "edges", "words"),
    [
        (1, (), "at least 2"),
        (3, ((0, 1), (2, 1)), "from a lower node to a higher one"),
        (3, ((0, 1), (1, 3)), "from a lower node to a higher one"),
        (3, ((0, 1), (0, 2), (1, 2), (0, 1)), "once"),
        (3, ((0, 2), (1, 2)), "node 1 has no input"),
        (3, ((0, 1), (0, 2)), "node 1 leads nowhere"),
        (2, ((0, 1, 2),), "pair of nodes"),
    ],
)
def test_a_graph_that_makes_no_sense_is_refused(nodes, edges, words):
    with pytest.raises(ValueError, match=words):
        CellGraph(nodes, edges)


@pytest.mark.parametrize("text", ["", "a~0", "|a~0|b~1", "|a~0|++|b~1|", "|a 1~0|", "|a~x|", "|a~0|+|b~7|"])
def test_a_text_that_is_no_cell_is_refused(text):
    with pytest.raises(ValueError, match=r"must be written as|lower node"):
        Cell.parse(text)


@pytest.mark.parametrize("content", [None, 3, {}, {"nodes": 2, "edges": [[0, 1]]}, {"nodes": 2, "edges": [[0, 1, "a|b"]]}])
def test_json_that_is_no_cell_is_refused(content):
    with pytest.raises(FileError, match="this is no cell"):
        Cell.from_json(content)


def test_a_cell_has_an_operation_for_each_edge():
    with pytest.raises(ValueError, match="6 edges need as many operations, got 1"):
        Cell(NAS_BENCH_201, ("none",))


def test_random_cells_are_uniform_and_their_edges_independent():
    """2,100 cells: by chance the statistics exceed these bounds in one of 10,000 cases."""
    names = list(make_operations())
    cells = [draw_random_cell(names, seed=seed).operations for seed in range(2100)]
    for edge in range(6):
        counts = [sum(cell[edge] == name for cell in cells) for name in names]
        assert sum((count - 300) ** 2 / 300 for count in counts) < 27.9  # χ² with 6 degrees of freedom
    for first, second in ((0, 1), (2, 5)):
        expected = 2100 / 49
        pairs = [(cell[first], cell[second]) for cell in cells]
        counts = [pairs.count(pair) for pair in itertools.product(names, repeat=2)]
        assert sum((count - expected) ** 2 / expected for count in counts) < 94.5  # with 48
    assert draw_random_cell(make_operations(), seed=5).operations == cells[5]
    with pytest.raises(ValueError, match="at least one name"):
        draw_random_cell([])


def test_a_drawing_shows_every_operation_but_none_and_is_the_same_again():
    drawing = draw_cell(Cell.parse(TEXT))
    assert drawing == draw_cell(Cell.parse(TEXT))
    names = {name for name in make_operations() if f"<!-- {name} -->".encode() in drawing}
    assert names == set(Cell.parse(TEXT).operations) - {"none"}
    assert draw_cell(Cell.parse("|none~0|")).startswith(b"<?xml")
