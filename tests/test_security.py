"""SECURITY.md names a test for every statement, and nothing in the package can run what a file holds."""

import ast
import re
from pathlib import Path

import pytest

from pluribus.file_formats.reading import parse_yaml_value

from .test_promises import list_statements, list_tests

ROOT = Path(__file__).parent.parent
RUNS_CODE = {
    *("eval", "exec", "compile", "__import__", "execfile"),
    *("torch.load", "pickle.load", "pickle.loads", "joblib.load", "cloudpickle.load", "cloudpickle.loads", "marshal.loads"),
    *("dill.load", "dill.loads", "shelve.open", "yaml.load", "yaml.full_load", "yaml.unsafe_load", "pandas.read_pickle"),
    *("torch.hub.load", "runpy.run_path", "runpy.run_module", "os.system", "os.popen", "importlib.import_module"),
    *("torch.export.load", "torch.jit.load"),
    *("subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_output", "pickle.Unpickler"),
}
KNOWN = {
    ("pluribus/__init__.py", "importlib.import_module"): "rooms and functions of pluribus, by names that stand in the file",
    ("pluribus/papers/__init__.py", "importlib.import_module"): "the recipes, by names that stand in the package",
    ("pluribus/papers/page.py", "importlib.import_module"): "the recipes of a paper that was found in the package",
    ("pluribus/models/factories.py", "importlib.import_module"): "a user's own network, with consent",
    ("pluribus/exporting/formats.py", "torch.export.load"): "the file that `export` has just written, to compare its answers",
    ("pluribus/exporting/loading.py", "torch.export.load"): "a .pt2 file that `serve` was told to trust",
    ("pluribus/file_formats/reading.py", "yaml.load"): "nothing: its loader is a safe one, as the test below shows",
    ("pluribus/data/download_protocols.py", "subprocess.run"): "npm and apt, on `pluribus data get`",
    ("pluribus/papers/commits.py", "subprocess.run"): "git, which says at which commit the code is",
    ("pluribus/data/cifar.py", "pickle.Unpickler"): "published pickles by their checksum, by an unpickler of arrays alone",
}
"""The calls that could run code, and what they run."""


def list_calls(source: str) -> set[str]:
    """The calls, base classes and imported names of a file that are in RUNS_CODE."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            found.add(ast.unparse(node.func))
        elif isinstance(node, ast.ClassDef):
            found |= {ast.unparse(base) for base in node.bases}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found & RUNS_CODE


def test_calls_that_run_code_are_seen():
    source = "from pickle import loads\nimport torch\ndef f(x):\n    torch.load(x)\nclass A(pickle.Unpickler): ...\nexec('1')"
    assert list_calls(source) == {"pickle.loads", "torch.load", "pickle.Unpickler", "exec"}


def test_nothing_in_the_package_runs_what_a_file_holds():
    """Every call that could is known, with what it runs."""
    files = {file.relative_to(ROOT).as_posix(): file for file in (ROOT / "pluribus").rglob("*.py")}
    assert {(name, call) for name, file in files.items() for call in list_calls(file.read_text())} == set(KNOWN)


@pytest.mark.parametrize("tag", ["object/apply:os.system", "object/new:os.system", "name:os.system", "module:os"])
def test_yaml_builds_no_objects(tag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="tag"):
        parse_yaml_value(f"setting: !!python/{tag} ['touch sprung']")
    assert not (tmp_path / "sprung").exists()


def test_numpy_never_unpickles():
    """`numpy.load` unpickles nothing unless it is told to."""
    for file in (ROOT / "pluribus").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert ast.unparse(node.value) == "False", file
            if isinstance(node, ast.keyword) and node.arg == "weights_only":
                assert ast.unparse(node.value) != "False", file


# --- the page ----------------------------------------------------------------------------------------------------------


def list_rows() -> list[tuple[str, list[str]]]:
    """The statements of SECURITY.md that stand in its tables, each with its tests."""
    lines = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not set(line) <= set("|:- ")]
    return [(words, re.findall(r"`([\w/]+\.py::\w+)`", tests)) for words, tests in cells if tests != "test"]


def test_every_row_of_the_page_names_tests_that_are_there():
    rows = list_rows()
    assert len(rows) > 10
    for words, tests in rows:
        assert tests, words
        for test in tests:
            file, _, name = test.partition("::")
            assert name in list_tests(ROOT / "tests" / file), test


@pytest.mark.parametrize("section", ["What is trusted", "What is not", "What a server takes", "What a run folder may contain"])
def test_the_page_promises_nothing_outside_its_tables(section):
    """Beside a table there is one sentence, which says what the table is of."""
    text = (ROOT / "SECURITY.md").read_text()
    part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    assert part
    assert len([said for said in list_statements(part) if not said.startswith("|")]) <= 1
