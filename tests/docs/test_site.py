"""The site builds without a warning, and fetches nothing."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pluribus

pytest.importorskip("mkdocs", reason="pip install 'pluribus[docs]'")
pytest.importorskip("material", reason="pip install 'pluribus[docs]'")
pytest.importorskip("mkdocstrings_handlers.python", reason="pip install 'pluribus[docs]'")
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site; any warning of mkdocs fails the tests."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    yield folder
    shutil.rmtree(folder)


def test_every_page_and_method_is_in_the_navigation(site):
    start = (site / "index.html").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        place = page.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / place).is_file(), page
        assert f'href="{place}"' in start, page
    for name in pluribus.Spec.registry:
        assert f'href="methods/{name}.html"' in start


def test_every_generated_block_is_filled_in(site):
    for page in site.rglob("*.html"):
        assert "<!-- generate:" not in page.read_text(), page
    page = (site / "methods" / "mimo.html").read_text()
    assert "input_repetition" in page
    assert '<svg class="drawing"' in page
    assert "cifar10-wide" in page


def test_nothing_is_fetched(site):
    fetched = re.compile(r"""<(?:(?:script|img|iframe|source)[^>]*\ssrc|link[^>]*\shref)=["']?(?:https?:)?//""")
    for page in site.rglob("*.html"):
        assert not fetched.search(page.read_text()), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", sheet.read_text()), sheet


def test_words_of_a_page_are_in_the_search_index(site):
    index = (site / "search" / "search_index.json").read_text()
    assert "temperature scaling" in index
    assert "BatchEnsemble" in index
