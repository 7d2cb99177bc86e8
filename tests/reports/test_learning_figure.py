"""The figure of learning curves."""

import copy

from pluribus.reports.figures.learning import STILL, make_learning_figure

from . import sample


def make_results(*stills, seeds=2, score="calibrated_nll"):
    """Sample results whose methods have curves of three and four epochs, and ended as `stills` say."""
    results = copy.deepcopy(sample.classification(len(stills)))
    for place, (method, still) in enumerate(zip(results["methods"], stills, strict=True)):
        curves = [
            {
                "seed": seed,
                "epochs": list(range(1, 4 + seed)),
                "scores": [(place + 1) / epoch + seed for epoch in range(1, 4 + seed)],
                "decay_from": 2 + seed,
                "still_improving": still,
            }
            for seed in range(seeds)
        ]
        epochs = [3 + seed for seed in range(seeds)]
        summary = {"mean": sum(epochs) / seeds, "std": None, "seeds": epochs}
        method["training"] = {"score": score, "epochs": summary, "curves": curves}
    return results


def test_a_method_has_its_mean_over_the_epochs_that_all_seeds_have_and_a_thin_line_for_each_seed():
    figure = make_learning_figure(make_results(False, False))
    traces = [trace for trace in figure.panels[0].views[0].data if trace["meta"]["method"] == 1]
    thin, thick = traces[:-1], traces[-1]
    assert [trace["x"] for trace in thin] == [[1, 2, 3], [1, 2, 3, 4]]
    assert thick["x"] == [1, 2, 3]
    assert thick["y"] == [2.5, 1.5, 2 / 3 + 0.5]
    assert all(trace["line"]["width"] < thick["line"]["width"] for trace in thin)
    assert figure.numbers[0].rows[1] == [figure.numbers[0].rows[1][0], "3.5", "2 to 3", "1.1667", "no"]


def test_runs_that_were_still_improving_have_an_arrow_at_their_end_and_others_none():
    figure = make_learning_figure(make_results(True, False, None))
    marks = [trace for trace in figure.panels[0].views[0].data if trace["marker"]["symbol"] == STILL]
    assert [(trace["meta"]["method"], trace["x"]) for trace in marks] == [(0, [3]), (0, [4])]
    assert "still improving" in figure.how
    assert [row[-1] for row in figure.numbers[0].rows] == ["yes", "no", "not known"]
    assert "arrow" not in make_learning_figure(make_results(False)).how


def test_one_seed_has_one_line():
    figure = make_learning_figure(make_results(False, seeds=1))
    assert len(figure.panels[0].views[0].data) == 1
    assert "seeds" not in figure.how


def test_the_score_is_named_and_missing_ones_leave_a_gap():
    results = make_results(False, seeds=1, score="rmse")
    results["methods"][0]["training"]["curves"][0]["scores"] = [None, 0.5, None]
    figure = make_learning_figure(results)
    assert "RMSE" in figure.how
    assert figure.panels[0].views[0].data[0]["x"] == [2]


def test_results_without_curves_have_no_such_figure():
    assert make_learning_figure(sample.classification(2)) is None
    results = make_results(False)
    results["methods"][0]["training"] = None
    assert make_learning_figure(results) is None
    assert make_learning_figure(sample.minimal()) is None
