import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from pluribus.reports import format_csv, format_markdown
from pluribus.reports.table_columns import CLASSIFICATION, COSTS, REGRESSION, mark_best, mark_column, select_columns
from pluribus.reports.values import LOWEST_SHARE, Value, format_value

from . import sample


def parsed(results):
    return list(csv.DictReader(io.StringIO(format_csv(results))))


def cells(text, name):
    row = next(line for line in text.splitlines() if line.startswith(f"| {name} "))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_every_value_lands_in_its_own_cell():
    results = sample.classification(5)
    for row, method in zip(parsed(results), results["methods"], strict=True):
        assert row["name"] == method["name"]
        for part, key in (("mean", ""), ("std", "_std"), ("low", "_low"), ("high", "_high")):
            assert float(row["accuracy" + key]) == method["scores"]["accuracy"][part]
        assert float(row["member_accuracy"]) == method["member_scores"]["accuracy"]["mean"]
        assert float(row["tempered_nll"]) == method["tempered"]["nll"]["mean"]
        assert float(row["share_low"]) == method["share"]["low"]
        assert float(row["cost_latency"]) == method["cost"]["latency"]["value"]
        assert float(row["shift_kinds_fog"]) == method["shift"]["kinds"]["fog"]["mean"]
        assert float(row["ood_noise_auroc_confidence_high"]) == method["ood"]["noise"]["auroc"]["confidence"]["high"]
        assert row["cost_form"] == "ensemble"


def test_what_is_missing_is_empty_and_curves_stay_in_the_json():
    results = sample.classification(8)
    single, sampled = parsed(results)[0], parsed(results)[7]
    assert single["ood_noise_auroc_mutual-information"] == "" != sampled["ood_noise_auroc_mutual-information"]
    assert single["attack_one_sample_final"] == "" != sampled["attack_one_sample_final"]
    assert not any(key.startswith(("reliability", "risk", "shift_severities", "attack_success")) for key in single)


def test_a_diverged_run_leaves_an_empty_cell_not_nan():
    (row,) = parsed(sample.minimal())
    assert row["nll"] == ""
    assert float(row["accuracy"]) == 0.5


def test_commas_and_quotes_in_names_survive_the_csv():
    results = sample.minimal()
    results["methods"][0]["name"] = 'mimo:members=3,first="a\nb"'
    assert parsed(results)[0]["name"] == 'mimo:members=3,first="a\nb"'


def test_the_markdown_table_has_mean_and_spread_in_the_column_of_its_heading():
    results = sample.classification(4)
    text = format_markdown(results)
    heading, mimo = cells(text, "method"), cells(text, "mimo:members=3")
    score = results["methods"][3]["scores"]["nll"]
    assert mimo[heading.index("NLL")].replace("*", "") == f"{score['mean']:.4f} ± {score['std']:.4f}"
    share = results["methods"][3]["share"]
    expected = f"{100 * share['value']:.0f} ({100 * share['low']:.0f} to {100 * share['high']:.0f})"
    assert mimo[heading.index("share of gain, %")] == expected
    assert results["recommendation"][0]["text"] in text
    assert results["command"] in text


def test_markdown_of_every_kind_has_rows_as_wide_as_its_head():
    for results in (sample.classification(), sample.minimal(), sample.regression()):
        table = [line for line in format_markdown(results).splitlines() if line.startswith("|")]
        assert len(table) == 2 + len(results["methods"])
        assert len({line.count("|") for line in table}) == 1


def test_a_bar_in_a_name_opens_no_cell():
    results = sample.minimal()
    results["methods"][0]["name"] = "a|b<i>"
    assert "| a\\|b\\<i\\> |" in format_markdown(results)


def test_the_best_is_marked_and_those_in_its_reach_are_level_with_it():
    accuracy = CLASSIFICATION[0]
    values = [Value(0.9, 0.01, 0.88, 0.92), Value(0.91, 0.01, 0.89, 0.93), Value(0.8, 0.01, 0.79, 0.81), None]
    assert mark_best(accuracy, values) == ["level", "best", "", ""]


def test_a_method_is_not_level_because_its_own_runs_differ_much():
    assert mark_best(CLASSIFICATION[0], [Value(0.91, 0.01), Value(0.8, 0.3)]) == ["best", ""]


def test_a_method_that_guesses_has_not_the_best_calibration():
    def method(accuracy, ece):
        return {"scores": {"accuracy": accuracy, "ece": {"mean": ece, "std": 0.001, "seeds": [ece, ece]}}}

    ece = next(column for column in CLASSIFICATION if column.key == "ece")
    methods = [method(0.9, 0.02), method(0.23, 0.001), method(0.91, 0.03)]
    assert mark_column(ece, methods) == ["best", "", ""]


def test_the_heading_of_foreign_rows_is_a_name_and_no_path():
    results = sample.minimal()
    results["methods"][0]["ood"] = {"/home/me/photos/night.npz": {"auroc": {"entropy": 0.9}}}
    (title,) = [column.title for column in select_columns(results) if column.title.startswith("AUROC")]
    assert title == "AUROC night.npz"


def test_nothing_is_best_where_no_spread_is_known():
    assert mark_best(CLASSIFICATION[1], [Value(0.2), Value(0.21)]) == ["", ""]
    assert mark_best(COSTS[1], [Value(1.0), Value(4.0)]) == ["best", ""]  # counted, not sampled


def test_where_all_are_the_same_nobody_is_best():
    assert mark_best(CLASSIFICATION[0], [Value(1.0), Value(1.0), None]) == ["", "", ""]


def test_coverage_is_best_where_it_is_closest_to_what_it_claims():
    coverage = next(column for column in REGRESSION if column.key == "coverage_95")
    assert mark_best(coverage, [Value(0.99, 0.001), Value(0.94, 0.001), Value(0.8, 0.001)]) == ["", "best", ""]


@given(st.floats(-1e6, 1e6), st.sampled_from(["percent", "share", "score", "small", "ratio", "count"]))
def test_a_written_number_reads_back_and_nothing_has_no_sign(x, kind):
    text = format_value(x, kind).rstrip(" %×").replace("−", "-").replace(",", "")
    if kind == "share" and x < LOWEST_SHARE:
        assert text == "< -100"
        return
    assert abs(float(text) / (100 if kind in ("percent", "share") else 1) - x) <= max(0.51, abs(x) * 1e-2)
    assert not (float(text) == 0 and text.startswith("-"))
