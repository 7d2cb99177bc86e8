"""`pluribus.compare` in a notebook, with a network that is defined in a cell."""

import re

import pytest

NETWORK = """
import torch, pluribus
from torch import nn

class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.last = nn.Linear(64, 16), nn.Linear(16, 10)

    def forward(self, x):
        return self.last(torch.relu(self.hidden(x.flatten(1))))
"""
COMPARE = """
found = pluribus.compare(
    Mine(), "digits", methods=["mimo:members=2", pluribus.DeepEnsemble(members=2)], seeds=2, epochs=1, rows=100
)
found
"""
EVALUATE = """
ensemble = pluribus.ensemble(Mine(), pluribus.MIMO(members=2))
pluribus.evaluate(ensemble, pluribus.data.load("digits"))
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    nbformat, nbclient, _ = map(pytest.importorskip, ("nbformat", "nbclient", "ipykernel"))
    cells = [nbformat.v4.new_code_cell(text) for text in (NETWORK, COMPARE, EVALUATE)]
    made = nbformat.v4.new_notebook(cells=cells)
    place = {"metadata": {"path": tmp_path_factory.mktemp("nb")}}
    with pytest.MonkeyPatch.context() as patch:
        # torchmetrics imports transformers where it is installed, and with it a progress bar that asks for widgets.
        patch.setenv("PYTHONWARNINGS", "ignore:IProgress not found")
        return nbclient.NotebookClient(made, timeout=300, resources=place).execute()


def outputs(cell, kind):
    return [output["data"]["text/html"] for output in cell.outputs if output.output_type == kind]


def test_a_comparison_shows_itself_with_recommendation_table_and_figures(notebook):
    (html,) = outputs(notebook.cells[1], "execute_result")
    for piece in ("digits · Mine", "single", "mimo:<wbr>members=2", "deep-ensemble:", "<svg", "<table"):
        assert piece in html, piece
    assert "<script" not in html
    assert not re.search(r"(?:src|href)=[\"']?https?:", html), "nothing is fetched"
    assert len(html) < 2_000_000
    assert "2 seeds tell little" in html


def test_its_progress_is_one_line_that_is_empty_in_the_end(notebook):
    shown = outputs(notebook.cells[1], "display_data")
    assert shown == [""]
    assert not [output for output in notebook.cells[1].outputs if output.output_type == "stream"]


def test_an_evaluation_shows_its_scores(notebook):
    (html,) = outputs(notebook.cells[2], "execute_result")
    assert "MIMO(members=2) on digits, 500 rows" in html
    assert "accuracy" in html
