"""Every code block of README.md and docs/ runs, page by page: the blocks of one page share names and a working folder."""

import doctest
import importlib
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pluribus import Spec

from ..cli.conftest import call_pluribus
from ..shortcuts import shorten_measurements

ROOT = Path(__file__).parent.parent.parent
OTHER_TESTS = {
    "docs/comparing.md": "test_readme.py",
    "docs/decisions.md": "cli/test_docs.py",
    "docs/mimo.md": "papers/mimo/test_capacity_page.py",
    "docs/pretrained.md": "core/test_pretrained_page.py",
    "docs/results.md": "test_package.py",  # commands as they were recorded
    "docs/serving.md": "cli/test_serving_docs.py",
}
"""Pages whose blocks run in tests of their own."""
PAGES = [path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]]
SHOWN = {"", "text", "json", "yaml", "xml", "toml", "dockerfile", "html"}
"""Languages of blocks that show and do not run."""


@pytest.fixture(scope="module")
def generator():
    """The modules of docs/generator, which import one another as mkdocs lets them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs" / "generator")
        yield importlib.import_module


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder of a page, where `import nets` finds a file that the page writes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PLURIBUS_DATA", "data")
    monkeypatch.setattr(Spec, "registry", dict(Spec.registry))  # a page defines a method
    known = set(sys.modules)
    with shorten_measurements():
        yield tmp_path
    for name in set(sys.modules) - known:
        if getattr(sys.modules[name], "__file__", None) and Path(sys.modules[name].__file__).parent == tmp_path:
            del sys.modules[name]


@pytest.fixture
def servers(monkeypatch):
    """The processes that a page starts with `&`, which end with its test."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    started = []
    yield started
    for process in started:
        process.terminate()
        process.wait(timeout=60)


def run_command(line, servers):
    """Run a line of a shell block: `pluribus` in this process, scripts of the page in another one, nothing that installs."""
    words = shlex.split(line, comments=True)
    if words[-1] == "&":
        servers.append(subprocess.Popen([sys.executable, "-m", *words[:-1]]))
        return 0
    if words[0] == "pluribus":
        return call_pluribus(*words[1:])
    if words[0] == "python":
        return subprocess.run([sys.executable, *words[1:]], check=False).returncode
    assert words[0] in ("pip", "make"), f"{line}: nobody runs this"
    return 0


def run_block(block, page, scope, folder, servers):
    if block.title:
        (folder / block.title).write_text(block.code)
    elif block.language == "python":
        exec(compile("\n" * block.line + block.code, page, "exec"), scope)
    elif block.language in ("sh", "console") and not block.is_parsed:
        for line in block.code.replace("\\\n", " ").splitlines():
            line = line.removeprefix("$ ")
            assert not line.strip() or run_command(line, servers) == 0, line
    else:
        assert block.is_parsed or block.language in SHOWN, f"{page}:{block.line}: nobody runs {block.language}"


@pytest.mark.parametrize("page", [page for page in PAGES if page not in OTHER_TESTS])
def test_the_blocks_of_a_page_run(page, folder, generator, servers):
    blocks = generator("code_blocks").list_blocks((ROOT / page).read_text())
    scope = {"__name__": "__main__"}
    for block in blocks:
        try:
            run_block(block, page, scope, folder, servers)
        except SystemExit as ended:
            pytest.fail(f"{page}:{block.line} ended with {ended.code}")


def test_a_block_that_breaks_fails(folder, generator, servers):
    text = "```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n\n```sh\npluribus train --data nothing-of-this-name\n```\n"
    blocks, scope = generator("code_blocks").list_blocks(text), {}
    run_block(blocks[0], "page", scope, folder, servers)
    for block in blocks[1:]:
        with pytest.raises(AssertionError):
            run_block(block, "page", scope, folder, servers)


def test_pages_with_tests_of_their_own_have_them():
    for page, test in OTHER_TESTS.items():
        assert not (ROOT / page).is_file() or (ROOT / "tests" / test).is_file(), page


@pytest.mark.parametrize("name", ["code_blocks", "docstrings", "navigation", "repository"])
def test_the_examples_of_the_generator_hold(name, generator):
    if name == "docstrings":
        pytest.importorskip("griffe", reason="pip install 'pluribus[docs]'")
    found = doctest.testmod(generator(name))
    assert found.attempted
    assert not found.failed
