import copy
import re
from html.parser import HTMLParser

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from pluribus.reports import render_fragment

from . import sample

EVIL = "</style><script>alert(1)</script><b>"
KINDS = {"everything": sample.classification(6), "minimal": sample.minimal(), "regression": sample.regression()}


class Elements(HTMLParser):
    """All start tags with their attributes, and the text outside of style elements."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.open = [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


@pytest.fixture(scope="module", params=KINDS)
def rendered(request):
    return request.param, render_fragment(KINDS[request.param])


def test_it_has_the_recommendation_the_table_and_the_figures(rendered):
    name, text = rendered
    elements = Elements(text)
    for entry in KINDS[name]["recommendation"]:
        assert entry["text"] in elements.text
    assert sum(tag == "tr" for tag, _ in elements.tags) == 1 + len(KINDS[name]["methods"])
    images = [attributes for tag, attributes in elements.tags if tag == "svg" and attributes.get("role") == "img"]
    assert len(images) == {"everything": 5, "minimal": 0, "regression": 1}[name]
    assert all(len(attributes["aria-label"]) > 40 for attributes in images)


def test_it_is_one_element_that_runs_and_fetches_nothing(rendered):
    _, text = rendered
    elements = Elements(text)
    assert text.startswith('<div class="pluribus-comparison"')
    assert not {"script", "link", "iframe", "html", "body"} & {tag for tag, _ in elements.tags}
    for _, attributes in elements.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    assert "@import" not in text


def test_its_style_touches_nothing_outside_of_it(rendered):
    _, text = rendered
    sheet = re.sub(r"/\*.*?\*/", "", text.split("<style>")[1].split("</style>")[0], flags=re.DOTALL)
    selectors = [part.strip() for rule in sheet.split("}")[:-1] for part in rule.split("{")[0].split(",")]
    assert len(selectors) > 20
    assert all(selector.startswith(".pluribus-comparison.pluribus-comparison") for selector in selectors)


def test_no_figure_refers_to_a_part_of_another(rendered):
    _, text = rendered
    drawn = re.findall(r'<svg role="img".*?</svg>', text, re.DOTALL)
    names = [set(re.findall(r'\bid="([^"]+)"', image)) for image in drawn]
    for image, own in zip(drawn, names, strict=True):
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', image)) <= own
    assert len(set().union(*names)) == sum(map(len, names))


def test_names_are_text_wherever_they_stand():
    results = sample.classification(3)
    results["title"] = results["model"] = results["data"]["name"] = results["budget"]["text"] = EVIL
    results["methods"][1]["name"] = EVIL
    results["methods"][0]["attack"]["title"] = EVIL
    results["recommendation"], results["notes"] = [{"limit": EVIL, "method": EVIL, "text": EVIL}], [EVIL]
    elements = Elements(render_fragment(results))
    assert not {"script", "b"} & {tag for tag, _ in elements.tags}
    assert EVIL in elements.text


def test_the_same_results_give_the_same_text_and_stay_as_they_are():
    results = sample.classification(3)
    before = copy.deepcopy(results)
    assert render_fragment(results) == render_fragment(results)
    assert results == before
