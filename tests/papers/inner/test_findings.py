"""The sentences of the page follow from the cells."""

from pluribus.papers.inner import list_departures, list_findings

from . import test_rules_of_cells, test_rules_of_costs, test_rules_of_tables


def wrap(found):
    return {"cells": {name: {"found": {"diverged": False} | cell} for name, cell in found.items()}}


def build():
    table = test_rules_of_tables.build_table(
        inverse=test_rules_of_tables.score(0.061, shift=0.3), slow=test_rules_of_tables.score(0.06)
    )
    return {
        "inner/table-1": wrap(table),
        "inner/table-3": wrap(test_rules_of_cells.build()),
        "inner/table-4": wrap(test_rules_of_costs.build()),
    }


def test_the_page_tells_what_belongs_to_the_learning_rate_what_folding_does_and_what_it_costs():
    rate, folding, cells, times = list_findings(build())
    assert "to 1e-09" in rate
    assert "IEN and the base network at lr and wd differ by -0.0050 (-0.0050 to -0.0050)" in rate
    assert "copies still lie 5 % of their mean's norm" in folding
    assert "by up to 0.3, and errors by up to 0.10 %" in folding
    assert "DARTS-V1 17 % inner, 33 % maxout" in cells
    assert "ResNet-20 1.02× and 3.40×" in times


def test_without_results_there_is_nothing_to_tell():
    assert list_findings({}) == list_departures({}) == []


def test_a_training_that_diverged_is_named():
    found = build()
    assert list_departures(found) == []
    next(iter(found["inner/table-1"]["cells"].values()))["found"]["diverged"] = True
    assert "ResNet56: IEN, seed 0" in list_departures(found)[0]
