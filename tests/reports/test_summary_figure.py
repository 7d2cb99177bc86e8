import xml.etree.ElementTree as ET

import pytest

pytest.importorskip("matplotlib")

from pluribus.reports import write_summary_figure
from pluribus.reports.figures.traces import find_pareto_front

from . import sample


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_same_results_give_the_same_bytes(tmp_path, suffix):
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    for path in (first, second):
        write_summary_figure(sample.classification(5), path)
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) > 5000


@pytest.mark.parametrize(
    "results", [sample.minimal(), sample.regression(), sample.classification(16)], ids=["minimal", "regression", "16"]
)
def test_every_kind_of_result_can_be_drawn(tmp_path, results):
    write_summary_figure(results, tmp_path / "picture.svg")
    assert ET.parse(tmp_path / "picture.svg").getroot().tag.endswith("svg")


def test_a_dollar_in_a_name_is_no_formula(tmp_path):
    results = sample.classification(2)
    results["title"] = results["methods"][0]["name"] = "$\\nonsense{$"
    write_summary_figure(results, tmp_path / "picture.svg")
    assert results["title"] in (tmp_path / "picture.svg").read_text(encoding="utf-8")


def test_the_style_of_the_user_is_left_alone(tmp_path):
    import matplotlib

    with matplotlib.rc_context({"font.size": 31.0}):
        write_summary_figure(sample.minimal(), tmp_path / "picture.svg")
        assert matplotlib.rcParams["font.size"] == 31.0


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\.svg or a \.png"):
        write_summary_figure(sample.minimal(), tmp_path / "picture.gif")


def test_the_front_is_who_is_not_beaten_by_a_cheaper_one():
    assert find_pareto_front([1.0, 1.0, 2.0, 3.0, 4.0], [0.5, 0.4, 0.6, 0.3, 0.3]) == [1, 3]
    assert find_pareto_front([], []) == []
