"""The site builds without a warning, and fetches nothing."""

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import pluribus

from ..reports.conftest import browser  # noqa: F401

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


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def address(site):
    """The address of the site while it is served."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.slow  # a browser beside the other tests
@pytest.mark.parametrize("width", [1280, 390])
def test_search_and_navigation_work_and_pages_fit(width, address, browser):  # noqa: F811
    page = browser.new_page(viewport={"width": width, "height": 900})
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for name in ("index", "tutorial", "choose", "results", "methods/mimo", "reference/ensembles", "CONTRIBUTING"):
        assert page.goto(f"{address}/{name}.html").ok
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, name
    page.goto(f"{address}/index.html")
    if width < 1000:
        page.click("label[for=__search]:visible")
    page.fill("input[name=query]", "temperature scaling")
    page.wait_for_selector(".md-search-result__item", timeout=60_000)
    assert "temperature" in page.inner_text(".md-search-result__list").lower()
    page.goto(f"{address}/index.html")
    if width < 1000:
        page.click(".md-header__button[for=__drawer]")
    menu = page.locator(".md-nav--primary")
    menu.locator("label.md-nav__link:visible", has_text=re.compile(r"^\s*Methods\s*$")).first.click()
    menu.locator("a.md-nav__link:visible", has_text=re.compile(r"^\s*MIMO\s*$")).first.click()
    page.wait_for_url("**/methods/mimo.html")
    assert page.inner_text("h1").startswith("MIMO")
    page.close()
    assert all(url.startswith((address, "data:", "blob:")) for url in asked)
