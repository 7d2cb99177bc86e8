"""One browser for all tests of the page."""

import shutil

import pytest

from . import sample

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
ARGUMENTS += ["--disable-sync", "--no-first-run"]


@pytest.fixture(scope="session")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright: pip install playwright")
    binary = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
    if binary is None:
        pytest.skip("no chromium, chromium-browser or google-chrome on the path")
    with sync.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=binary, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def reports(tmp_path_factory):
    """The pages of all kinds of results, by name."""
    pytest.importorskip("plotly")
    pytest.importorskip("jinja2")
    from pluribus.reports import render_page

    folder = tmp_path_factory.mktemp("reports")
    kinds = {
        "everything": sample.classification(4),
        "many": sample.classification(16),
        "minimal": sample.minimal(),
        "regression": sample.regression(),
    }
    for name, results in kinds.items():
        (folder / f"{name}.html").write_text(render_page(results), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in kinds}
