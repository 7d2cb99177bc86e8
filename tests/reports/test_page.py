import copy
import json
import re
from html.parser import HTMLParser

import pytest

pytest.importorskip("plotly")
pytest.importorskip("jinja2")

from pluribus.reports import render_page, write_report
from pluribus.reports.palette import DARK, LIGHT, THEMES, method_style

from . import sample

EVIL = "</script><script>alert(1)</script><b>"
KINDS = {"everything": sample.classification(6), "minimal": sample.minimal(), "regression": sample.regression()}


class Elements(HTMLParser):
    """All start tags with their attributes, and the text of all scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.inside = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        self.inside = tag == "script"

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data

    def ids(self):
        return {attributes["id"] for _, attributes in self.tags if "id" in attributes}

    def drawn(self):
        place = [attributes for tag, attributes in self.tags if tag == "script"]
        return json.loads(self.scripts[[attributes.get("id") for attributes in place].index("drawn")])


@pytest.fixture(scope="module", params=KINDS)
def parsed(request):
    return request.param, Elements(render_page(KINDS[request.param]))


def test_every_figure_says_in_words_what_it_shows(parsed):
    _, elements = parsed
    plots = [attributes for _, attributes in elements.tags if attributes.get("class") == "plot"]
    assert [attributes["id"] for attributes in plots] == list(elements.drawn()["panels"])
    for attributes in plots:
        assert attributes["role"] == "img"
        assert len(attributes["aria-label"]) > 40
        assert re.search(r"\d", attributes["aria-label"])


def test_a_section_without_data_is_not_there(parsed):
    name, elements = parsed
    everything = {"share", "cost", "reliability", "shift", "risk", "diversity", "ood", "attack", "temperature", "unsure"}
    own = {"intervals", "residuals"}
    expected = {"everything": everything, "minimal": set(), "regression": {"share", "cost", "diversity"} | own}[name]
    assert (everything | own) & elements.ids() == expected


def test_nothing_is_fetched_from_anywhere(parsed):
    _, elements = parsed
    for tag, attributes in elements.tags:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            target = attributes.get(name) or "#"
            assert re.match(r"#|data:|results\.(json|csv|md)$", target), (tag, name, target)
    own = [script for script in elements.scripts if len(script) < 1e6]
    assert not any(re.search(r"fetch\(|XMLHttpRequest|import\(", script) for script in own)
    assert "@import" not in render_page(KINDS["minimal"]).split("</style>")[0]


def test_headings_ids_and_labels_fit_together(parsed):
    _, elements = parsed
    ids = [attributes["id"] for _, attributes in elements.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in elements.tags:
        assert attributes.get("aria-labelledby", ids[0]) in ids
        if (attributes.get("href") or "").startswith("#"):
            assert attributes["href"][1:] in ids


def test_names_are_text_wherever_they_stand():
    results = sample.classification(3)
    results["title"] = results["command"] = results["model"] = EVIL
    results["methods"][1] |= {"name": EVIL, "spec": EVIL, "about": EVIL, "runs": [EVIL]}
    results["methods"][1]["unsure"][0] |= {"truth": EVIL, "answer": EVIL}
    results["methods"][1]["ood"] = {EVIL: results["methods"][1]["ood"]["noise"]}
    results["methods"][1]["attack"]["title"] = EVIL
    results["methods"][1]["shift"]["kinds"] = {EVIL: {"mean": 0.5, "std": 0, "seeds": [0.5]}}
    results["recommendation"] = [{"limit": EVIL, "method": EVIL, "text": EVIL}]
    results["notes"], results["settings"] = [EVIL], {EVIL: EVIL}
    results["data"]["name"], results["budget"]["text"] = EVIL, EVIL
    text = render_page(results)
    harmless = Elements(render_page(sample.classification(3)))
    elements = Elements(text)
    assert len(elements.scripts) == len(harmless.scripts)
    assert "b" not in {tag for tag, _ in elements.tags}
    assert "alert(1)</script>" not in text
    assert "<script>alert(1)" in elements.drawn()["panels"]["share-0"]["views"][0]["alt"]


def test_an_image_that_is_an_address_is_not_shown():
    results = sample.classification(2)
    for case in results["methods"][0]["unsure"]:
        case["image"] = "https://example.org/tracker.png"
    assert "tracker.png" not in render_page(results)


def test_a_method_looks_the_same_in_every_figure():
    panels = Elements(render_page(sample.classification(16))).drawn()["panels"]
    looks = {}
    for panel in panels.values():
        for view in panel["views"]:
            for trace in view["data"]:
                if "meta" in trace and "marker" in trace and isinstance(trace["marker"]["symbol"], str):
                    looks.setdefault(trace["meta"]["method"], set()).add((trace["marker"]["color"], trace["marker"]["symbol"]))
    assert set(looks) == set(range(16))
    assert all(len(look) == 1 for look in looks.values())
    assert len(set.union(*looks.values())) == 16


def test_64_methods_have_64_looks():
    assert len({method_style(index) for index in range(64)}) == 64


def contrast(a, b):
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("mode", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_symbols_and_text_stand_out_from_their_background(mode, colours):
    theme = THEMES[mode]
    assert all(contrast(colour, theme["paper"]) >= 3 for colour in colours)
    for text in ("ink", "muted", "accent"):
        assert all(contrast(theme[text], theme[ground]) >= 4.5 for ground in ("paper", "panel", "mild"))


def test_numbers_that_are_none_do_not_break_the_page():
    results = sample.classification(3)
    results["methods"][1]["scores"]["nll"] = {"mean": float("inf"), "std": float("nan"), "seeds": [float("inf")] * 2}
    results["methods"][2]["cost"]["latency"] = None
    results["methods"][2]["share"] = None
    drawn = Elements(render_page(results)).drawn()["panels"]
    assert [trace["meta"]["method"] for trace in drawn["share-0"]["views"][0]["data"]] == [0, 1]


def test_one_seed_has_no_spread():
    results = sample.minimal()
    text = render_page(results)
    assert "One seed: no spread." in text
    assert "± 0" not in text
    results["methods"][0]["scores"]["accuracy"] |= {"low": 0.45, "high": 0.55}
    assert "interval over rows alone" in render_page(results)
    assert "45.00 to 55.00" in render_page(results)


def test_the_results_are_left_as_they_are(tmp_path):
    results = sample.classification(2)
    before = copy.deepcopy(results)
    write_report(results, tmp_path)
    assert results == before


def test_a_folder_holds_the_page_and_everything_it_points_to(tmp_path):
    made = write_report(sample.minimal(), tmp_path / "new" / "folder")
    assert made == tmp_path / "new" / "folder" / "report.html"
    assert sorted(path.name for path in made.parent.iterdir()) == [
        "picture.svg",
        "report.html",
        "results.csv",
        "results.json",
        "results.md",
    ]
    read = json.loads((made.parent / "results.json").read_text(), parse_constant=pytest.fail)
    assert read["methods"][0]["scores"]["nll"]["mean"] is None
