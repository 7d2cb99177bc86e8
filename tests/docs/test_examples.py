"""The scripts of examples/ run with few epochs, the notebooks as they stand."""

import runpy
import sys
from pathlib import Path

import pytest

from ..shortcuts import shorten_measurements

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SCRIPTS = {
    "abstain.py": ("--epochs 3 --risk 0.3", "wrong among the answers"),
    "compare_methods.py": ("--epochs 1 --seeds 1 --out page", "page/report.html"),
    "intervals_for_a_table.py": ("--epochs 3", "intervals of 90% hold"),
    "own_loop.py": ("--epochs 1", "loaded, it answers the same: True"),
    "teach_one_network.py": ("--epochs 1 --out student.pt2", "student.pt2 answers as the student does"),
}
"""Arguments that are fast, and words that it prints in the end."""


def test_every_example_is_run_and_listed():
    scripts, notebooks = ({path.name for path in EXAMPLES.glob(f"*.{kind}")} for kind in ("py", "ipynb"))
    assert scripts == set(SCRIPTS)
    assert len(notebooks) == 2
    assert all(f"]({name})" in (EXAMPLES / "README.md").read_text() for name in scripts | notebooks)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs(name, tmp_path, monkeypatch, capsys):
    arguments, said = SCRIPTS[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, *arguments.split()])
    with shorten_measurements():
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("name", ["two_kinds_of_uncertainty.ipynb", "intervals_of_a_regression.ipynb"])
def test_a_notebook_runs(name, tmp_path):
    nbformat, nbclient, _ = map(pytest.importorskip, ("nbformat", "nbclient", "ipykernel"))
    read = nbformat.read(EXAMPLES / name, as_version=4)
    done = nbclient.NotebookClient(read, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in shown)
    assert not any(cell.outputs for cell in nbformat.read(EXAMPLES / name, as_version=4).cells if cell.cell_type == "code")
