"""The figures: complete, and the same bytes for the same results."""

from pluribus.bench.figures import draw_costs, draw_growth

from . import example_rows


def test_the_same_results_give_the_same_picture_of_costs():
    rows = [example_rows.cell(network, method) for network in ("mlp", "vit") for method in ("inner", "mimo")]
    found = draw_costs({"table": rows})
    assert found == draw_costs({"table": rows})
    assert found.startswith(b"<?xml")


def test_growth_has_a_panel_for_each_work_and_axis():
    rows = [example_rows.grown(), example_rows.grown(work="training step"), example_rows.grown("variance", "K")]
    found = draw_growth({"growth": rows})
    assert found == draw_growth({"growth": rows})
    assert found.count(b'id="axes_') == 3
