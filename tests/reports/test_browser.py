"""The page in a real browser, as people open it: from disk."""

from contextlib import contextmanager

import pytest

DRAWN = """() => [...document.querySelectorAll('.plot')].map(plot => {
  const svg = plot.querySelector('.main-svg'), box = svg ? svg.getBoundingClientRect() : { width: 0, height: 0 };
  const shapes = plot.querySelectorAll('.scatterlayer .trace path, .barlayer .point path');
  return { id: plot.id, width: box.width, height: box.height, traces: shapes.length };
})"""
COLUMN = "column => [...document.querySelectorAll('#scores tbody tr')].map(row => row.cells[column].dataset.value ?? null)"
FONTS = "() => [...document.querySelectorAll('.plot .xtick text')].map(text => getComputedStyle(text).fill)"


@contextmanager
def opened(browser, path, width=1280, **options):
    """A page with all figures drawn, and what went wrong or was asked for on the way."""
    context = browser.new_context(viewport={"width": width, "height": 800}, **options)
    page = context.new_page()
    page.wrong, page.asked = [], []
    page.on("console", lambda message: page.wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(path.as_uri())
    settled(page)
    yield page
    context.close()


def settled(page):
    page.wait_for_selector("html[data-drawn=yes]", state="attached", timeout=30_000)


@pytest.mark.parametrize("kind", ["everything", "minimal", "regression"])
def test_every_figure_is_drawn_without_error_or_network(browser, reports, kind):
    with opened(browser, reports[kind]) as page:
        plots = page.evaluate(DRAWN)
        assert {"everything": 15, "minimal": 0, "regression": 6}[kind] == len(plots)
        for plot in plots:
            assert plot["width"] > 100, plot
            assert plot["height"] > 100, plot
            assert plot["traces"] > 0, plot
        assert page.wrong == []
        assert [url for url in page.asked if not url.startswith("data:")] == [reports[kind].as_uri()]


COVERED = """() => [...document.querySelectorAll('.plot')].flatMap(plot => {
  const bar = plot.querySelector('.modebar');
  if (!bar) return [];
  const over = bar.getBoundingClientRect();
  const marks = [...plot.querySelectorAll('.main-svg text, .scatterlayer .point')].map(mark => mark.getBoundingClientRect());
  const isOver = mark => mark.left < over.right && over.left < mark.right && mark.top < over.bottom && over.top < mark.bottom;
  return marks.filter(isOver).map(() => plot.id);
})"""


@pytest.mark.parametrize("width", [1280, 390])
def test_the_toolbar_of_a_figure_covers_neither_its_title_nor_its_points(browser, reports, width):
    with opened(browser, reports["everything"], width) as page:
        assert page.evaluate(COVERED) == []
        assert (page.locator(".modebar").count() > 0) == (width > 500)  # where it would not fit there is none


@pytest.fixture(scope="module")
def page(browser, reports):
    """One page for several tests, as opening one takes a second: each leaves it as it found it, but for the table's order."""
    with opened(browser, reports["regression"]) as shared:
        yield shared
        assert shared.wrong == []


@pytest.mark.parametrize("kind", ["many", "minimal"])
def test_a_phone_does_not_scroll_sideways(browser, reports, kind):
    with opened(browser, reports[kind], width=360, has_touch=True, is_mobile=True) as page:
        fits(page)
        assert page.wrong == []


def test_a_window_made_as_narrow_as_a_phone_does_not_scroll_sideways(page):
    page.set_viewport_size({"width": 360, "height": 800})
    page.wait_for_function("document.querySelector('#share-0 .main-svg').getBoundingClientRect().width < 360")
    fits(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_function("document.querySelector('#share-0 .main-svg').getBoundingClientRect().width > 1000")


def fits(page):
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth && innerWidth === 360")
    for plot in page.evaluate(DRAWN):
        assert plot["width"] <= 330
        assert plot["traces"] > 0
    page.evaluate("() => document.querySelectorAll('details').forEach(details => { details.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_table_sorts_by_click_and_by_keyboard_in_both_directions(page):
    heads = page.locator("#scores thead th")
    titles = [title.split("\n")[0] for title in heads.all_inner_texts()]
    for title, first in (("RMSE", "ascending"), ("latency", "ascending"), ("share of gain", "descending")):
        column = titles.index(title)
        button = heads.nth(column).locator("button")
        for turn, act in enumerate(
            (button.click, lambda button=button: button.press("Enter"), lambda button=button: button.press("Space"))
        ):
            act()
            order = first if turn % 2 == 0 else {"ascending": "descending", "descending": "ascending"}[first]
            assert heads.nth(column).get_attribute("aria-sort") == order
            values = [float(value) for value in page.evaluate(COLUMN, column)]
            assert values == sorted(values, reverse=order == "descending")
            assert page.locator("#scores [aria-sort]").count() == 1


def test_what_is_missing_stays_last_in_either_order(page):
    cell = page.locator("#scores tbody td").first.element_handle()
    kept = cell.evaluate("cell => { const value = cell.dataset.value; delete cell.dataset.value; return value; }")
    for _ in range(2):
        page.locator("#scores thead th").nth(1).locator("button").click()
        values = page.evaluate(COLUMN, 1)
        assert values[-1] is None
        assert None not in values[:-1]
    cell.evaluate("(cell, value) => { cell.dataset.value = value; }", kept)


def test_dark_and_light_change_page_and_figures_and_the_choice_is_kept(browser, reports):
    ground = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, reports["regression"], color_scheme="light") as page:
        light, fonts = page.evaluate(ground), page.evaluate(FONTS)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"{ground} !== '{light}'")
        settled(page)
        dark, dark_fonts = page.evaluate(ground), page.evaluate(FONTS)
        assert (light, dark) == ("rgb(255, 255, 255)", "rgb(21, 24, 28)")
        assert len(fonts) == len(dark_fonts) > 0
        assert set(fonts).isdisjoint(dark_fonts)
        page.locator("#mode").press("Enter")
        settled(page)
        assert page.evaluate(ground) == light
        assert page.evaluate(FONTS) == fonts
        page.reload()
        settled(page)
        assert page.evaluate(ground) == light
        assert page.wrong == []


def test_paper_is_light_without_controls_and_the_figures_fit(browser, reports):
    with opened(browser, reports["everything"], color_scheme="dark") as page:
        before = page.evaluate(DRAWN)
        page.set_viewport_size({"width": 690, "height": 980})
        page.emulate_media(media="print", color_scheme="dark")
        settled(page)
        page.wait_for_timeout(100)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert set(page.evaluate(FONTS)) == {"rgb(27, 31, 36)"}
        for control in ("#mode", ".chooser", "summary", "nav"):
            assert not page.locator(control).first.is_visible()
        assert page.locator(".key").first.is_visible()
        assert all(plot["width"] <= 640 and plot["traces"] > 0 for plot in page.evaluate(DRAWN))
        page.emulate_media(media="screen", color_scheme="dark")
        page.set_viewport_size({"width": 1280, "height": 800})
        page.wait_for_function("document.querySelector('#share-0 .main-svg').getBoundingClientRect().width > 1000")
        assert [plot["traces"] for plot in page.evaluate(DRAWN)] == [plot["traces"] for plot in before]
        assert page.wrong == []


def test_another_cost_moves_the_points_and_is_said(page):
    place = "document.querySelector('#cost-0').data.find(trace => trace.meta).x[0]"
    before, said = page.evaluate(place), page.locator("#cost-0").get_attribute("aria-label")
    page.locator("#cost input").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"{place} !== {before}")
    assert "against FLOPs" in page.locator("#cost-0").get_attribute("aria-label")
    assert "against latency" in said
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"{place} === {before}")


def test_a_method_is_brought_out_in_every_figure_from_the_keyboard(page):
    page.locator("#share .key button").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    settled(page)
    for figure in ("share", "cost", "diversity"):
        vivid = page.evaluate(
            f"document.querySelector('#{figure}-0').data.filter(t => t.meta && !(t.opacity < 1)).map(t => t.meta.method)"
        )
        assert vivid == [1]
        assert page.locator(f"#{figure} .key [data-method='1']").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator(".key [aria-pressed='true']").count() == 0


def test_the_tabulator_begins_with_the_skip_link_and_never_enters_a_figure(page):
    first = "document.querySelector('a[href], button, input, summary, [tabindex=\"0\"]')"
    assert page.evaluate(f"{first}.className") == "skip"
    page.locator(".skip").press("Enter")
    assert page.evaluate("document.activeElement.id") == "table"
    visited = set()
    for _ in range(45):
        page.keyboard.press("Tab")
        assert not page.evaluate("Boolean(document.activeElement.closest('.plot'))")
        visited.add(page.evaluate("document.activeElement.closest('section')?.id"))
    assert visited >= {"table", "share", "cost", "diversity", "setup"}
