"""The house: what imports what, what comes along, what the front page says."""

import ast
import inspect
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import pluribus
from pluribus.bench.page import format_section
from pluribus.bench.results import read_results

ROOT = Path(__file__).parent.parent
ROOMS = {
    "core": {"core"},
    "file_formats": {"core", "file_formats"},
    "methods": {"core", "methods"},
    "metrics": {"core", "metrics"},
    "models": {"core", "models"},
    "data": {"core", "data"},
    "analysis": {"core", "metrics", "analysis"},
    "decisions": {"core", "metrics", "decisions"},
    "exporting": {"core", "file_formats", "data", "decisions", "exporting"},
    "serving": {"core", "file_formats", "data", "decisions", "exporting", "runs", "serving"},
    "training": {"core", "data", "metrics", "training"},
    "reports": {"core", "file_formats", "reports"},
    "experiments": {"core", "experiments"},
    "sklearn": {"core", "data", "decisions", "models", "training", "runs", "sklearn"},
    "search": {"core", "methods", "data", "training", "reports", "search"},
    "bench": {"core", "file_formats", "methods", "metrics", "models", "analysis", "reports", "bench"},
    "runs": {
        *("core", "file_formats", "data", "metrics", "models", "analysis", "training", "reports", "experiments", "decisions"),
        "exporting",
        "runs",
    },
    "comparison": {
        *("core", "file_formats", "data", "metrics", "models", "analysis", "training", "reports", "experiments", "runs"),
        "comparison",
    },
    "papers": {
        "core",
        "file_formats",
        "methods",
        "metrics",
        "models",
        "data",
        "analysis",
        "training",
        "reports",
        "experiments",
        "runs",
        "comparison",
        "search",
        "bench",
        "papers",
    },
}


def test_importing_needs_torch_and_numpy_only():
    """Everything else that could be imported is made unimportable. The room of data does without the libraries, too."""
    blocked = ["safetensors", "sklearn", "rich", "scipy", "matplotlib", "pandas", "lightning", "torchvision"]
    blocked += ["pydantic", "yaml", "typer", "joblib", "PIL", "pyarrow", "dask", "distributed", "torchmetrics"]
    blocked += ["plotly", "jinja2", "hypothesis", "playwright", "pooch", "fastapi", "uvicorn", "prometheus_client"]
    code = f"""
import sys; sys.modules.update(dict.fromkeys({blocked!r}))
import pluribus
assert not {{"pluribus.data", "pluribus.runs"}} & set(sys.modules)
import pluribus.data.download
print(pluribus.__version__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == pluribus.__version__


def test_rooms_and_functions_are_there_after_the_import_and_loaded_when_they_are_used():
    """The test above shows that the import loads none of them."""
    for name in pluribus.__all__:
        assert getattr(pluribus, name) is not None, name
    assert pluribus.data.load("digits").shape == (1, 8, 8)


def test_saving_without_safetensors_says_what_to_install(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "safetensors"] + ["safetensors"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pip install safetensors"):
        pluribus.save(pluribus.ensemble(torch.nn.Linear(2, 2), pluribus.Inner()), tmp_path / "x")


def list_imports(source: str, package: str) -> set[str]:
    """Every module of ours that a file names in an import, wherever it stands: at the top or in a function, relative or
    absolute, by a statement or by `import_module` with a text."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module":
            named = node.args[0] if node.args else None
            if isinstance(named, ast.Constant) and isinstance(named.value, str):
                parents = package if named.value.startswith(".") else ""
                found.add(parents + named.value)
    return {name for name in found if name.split(".")[0] == "pluribus"}


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from ..runs import config", "pluribus.runs.config"),
        ("def f():\n    from ..runs.config import Config", "pluribus.runs.config.Config"),
        ("from pluribus.runs import config", "pluribus.runs.config"),
        ("import pluribus.runs.config", "pluribus.runs.config"),
        ("def f():\n    import pluribus.runs", "pluribus.runs"),
        ("from .. import runs", "pluribus.runs"),
        ("import importlib\nimportlib.import_module('pluribus.runs')", "pluribus.runs"),
    ],
)
def test_imports_of_every_form_are_seen(source, module):
    assert list_imports(source, "pluribus.core") == {module}


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_one_way(room):
    folder = ROOT / "pluribus" / room
    for file in folder.rglob("*.py"):
        package = ".".join(file.parent.relative_to(ROOT).parts)
        for module in list_imports(file.read_text(), package):
            parts = module.split(".")
            if len(parts) == 1 or (len(parts) == 2 and hasattr(pluribus, parts[1]) and parts[1] not in ROOMS):
                # The public face may be used only by rooms that may use everything below it.
                assert room in ("papers", "runs", "comparison", "experiments", "bench"), f"{file} imports {module}"
                continue
            assert parts[1] in ROOMS[room], f"{file} imports {module}"
            if room == "methods" and parts[1] == "methods" and file.name != "__init__.py":
                raise AssertionError(f"{file} imports another method")


def test_every_method_is_one_file_with_a_test_beside_it():
    files = {f.stem for f in (ROOT / "pluribus/methods").glob("*.py")} - {"__init__"}
    assert files == {f.stem.removeprefix("test_") for f in (ROOT / "tests/methods").glob("test_*.py")}
    assert len(pluribus.Spec.registry) == len(files)


def test_files_stay_readable():
    for file in [*ROOT.glob("pluribus/**/*.py"), *ROOT.glob("tests/**/*.py")]:
        assert len(file.read_text().splitlines()) <= 350, file
    ensemble = inspect.getsource(pluribus.Ensemble)
    assert len(ensemble.splitlines()) < 250


def test_the_map_names_files_that_are_there():
    """Every file and folder in the map of CONTRIBUTING.md exists, and every room is on it."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    tree = re.search(r"```\n(pluribus/.*?)```", text, re.DOTALL).group(1)
    rooms = dict(re.findall(r"^  (\w+)/ +(.*(?:\n    .*)*)", tree, re.MULTILINE))
    assert set(rooms) == {path.parent.name for path in ROOT.glob("pluribus/*/__init__.py")}
    for room, about in rooms.items():
        for name in re.findall(r"(?<![\w/])\w+\.py", about):
            assert (ROOT / "pluribus" / room / name).is_file(), f"{room}/{name}"


def test_the_page_of_methods_names_every_one():
    table = (ROOT / "docs" / "methods.md").read_text()
    for cls in pluribus.Spec.registry.values():
        assert f"`{cls.__name__}" in table, cls.__name__


@pytest.mark.slow
def test_the_demo_compares_tuned_methods_and_leaves_a_page(tmp_path):
    """The command of the Makefile, with one epoch, two trials and one seed."""
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    command = re.search(r"bin/pluribus (compare [^\n]*)", text).group(1)
    short = re.sub(r"--seeds \d+", "--seeds 1", re.sub(r"--tune \d+", "--tune 2", command))
    arguments = [*re.sub(r"--max-epochs \d+", "--epochs 1", short).split(), "--workers", "1"]
    asked = [sys.executable, "-m", "pluribus", *arguments, "--out", str(tmp_path / "demo")]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    page = (tmp_path / "demo" / "report.html").read_text()
    for name in ("single", "mimo", "batch-ensemble", "deep-ensemble", "single ← deep-ensemble"):
        assert name in done.stdout
        assert name in page
    assert "chosen" in done.stdout
    assert done.stdout.rstrip().endswith("report.html")


def test_the_pages_show_the_recorded_results():
    sys.path.insert(0, str(ROOT / "results"))
    try:
        import record
    finally:
        sys.path.pop(0)
    assert record.format_section() in (ROOT / "docs" / "results.md").read_text()
    assert record.format_known() in (ROOT / "README.md").read_text()
    for name, options in record.COMPARISONS.items():
        place = ROOT / "results" / name / "results.json"
        if place.is_file():
            command = json.loads(place.read_text())["command"].removesuffix(f" --out runs/{name}")
            assert command in [f"pluribus compare {stage}" for stage in record.list_stages(options)]


def test_the_documentation_shows_the_recorded_costs():
    costs = read_results(ROOT / "benchmarks" / "results")
    assert format_section(costs, "../benchmarks/results") in (ROOT / "docs" / "performance.md").read_text()


@pytest.mark.parametrize("script", ["benchmarks/throughput.py", "benchmarks/parts.py"])
def test_a_wrong_argument_is_answered_with_a_sentence_and_exit_code_2(script, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [script, "--repeats", "0"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    assert ended.value.code == 2
    assert "must be at least 1" in capsys.readouterr().err
