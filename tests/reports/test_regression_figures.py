"""The figures of a regression: what they draw, and when there are none."""

import pytest

from pluribus.reports.figures.regression import make_interval_figure, make_residual_figure

from . import sample


def test_intervals_are_drawn_against_the_level_that_they_promise():
    found = make_interval_figure(sample.regression(2))
    view = found.panels[0].views[0]
    guide, first, second = view.data
    assert guide["x"] == guide["y"] == [0, 100]
    assert first["x"] == pytest.approx([5 * n for n in range(1, 20)])
    assert first["y"] == pytest.approx([100 * (n / 20) ** 1.2 for n in range(1, 20)])
    assert found.numbers[0].rows[0][1:] == [f"{100 * level**1.2:.2f}" for level in (0.5, 0.8, 0.9, 0.95)]
    assert found.key == [first["meta"]["method"], second["meta"]["method"]] == [0, 1]
    assert f"{100 * 0.9**1.2:.2f} %" in view.alt


def test_residuals_are_in_the_unit_of_the_target():
    results = sample.regression(2)
    results["methods"][0]["residuals"] = {"truth": [1e5, 2e5, None], "predicted": [9e4, 2.5e5, 1.0], "target": "price <$>"}
    found = make_residual_figure(results)
    assert found.choices == [method["name"] for method in results["methods"]]
    view = found.panels[0].views[0]
    assert (view.data[1]["x"], view.data[1]["y"]) == ([1e5, 2e5], [9e4, 2.5e5])
    assert view.layout["xaxis"]["title"]["text"] == "true price &lt;$&gt;"
    assert found.numbers[0].rows[0][1:] == ["2", "20000", "50000", "50000"]
    assert "true value of 200000, for which 250000 is predicted" in view.alt


def test_results_without_them_have_no_such_figures():
    results = sample.regression(2)
    for method in results["methods"]:
        del method["interval_calibration"], method["residuals"]
    for given in (results, sample.classification(2)):
        assert make_interval_figure(given) is None
        assert make_residual_figure(given) is None
