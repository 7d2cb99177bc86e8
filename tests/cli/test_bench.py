"""`pluribus bench`, small: what it prints, leaves and keeps."""

import json

import pytest

SMALL = "bench --networks mlp --methods inner,mimo --repeats 2 --batch 4 --threads 1"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("pluribus.analysis.timing.MIN_SECONDS", 0.0)


def read(work):
    return json.loads((work / "runs/bench/bench.json").read_text())


def test_bench_tables_ranks_contenders_and_goes_on(pluribus, work):
    command = "bench tables --smoke --contenders hist-gradient-boosting,sklearn-mlp --splits 1 --out found"
    answer = pluribus(command)
    assert answer.code == 0, answer
    assert "scikit-learn's HistGradientBoosting" in answer.out
    assert "tables.json and tables.md are in found" in answer.out
    record = (work / "found/tables.json").read_text()
    assert str(work) not in record, "no paths of this machine"
    again = pluribus(command)
    assert again.code == 0
    assert again.err.strip().splitlines()[-1] == "2 of 2 cells"


def test_bench_measures_prints_and_leaves_everything(pluribus, work):
    answer = pluribus(SMALL)
    assert answer.code == 0, answer
    assert "Growth of time" in answer.out
    assert "runs/bench/bench.md" in answer.out
    assert "table: MLP 64-64, forward: mimo" in answer.err  # no terminal, so lines
    assert {file.name for file in (work / "runs/bench").iterdir()} == {"bench.json", "bench.md", "cost.svg", "growth.svg"}
    found = read(work)
    assert [(row["method"], row["work"]) for row in found["table"]] == [
        (method, work) for method in ("inner", "mimo") for work in ("training step", "forward")
    ]
    assert [row["method"] for row in found["growth"]] == ["inner", "inner", "mimo", "mimo"]
    (run,) = found["runs"].values()
    assert run["settings"] == {"repeats": 2, "batch": 4, "threads": run["machine"]["threads"]}
    assert run["machine"]["cpu"]
    assert {"python", "torch"} <= set(run["versions"])


def test_targets_are_printed_with_their_verdict_in_80_columns(pluribus):
    answer = pluribus("bench --part targets --networks mlp --repeats 1 --batch 4 --threads 1")
    assert answer.code == 0, answer
    (line,) = [line for line in answer.out.splitlines() if "deep ensemble, M = 16" in line]
    assert "≤ 3.00×" in line
    assert line.split()[-1] in ("met", "noise", "MISSED")
    assert max(map(len, answer.out.splitlines())) <= 80
    assert "1 repeats are too few for a verdict" in answer.out


def test_what_is_not_measured_again_is_kept_and_the_document_follows(pluribus, work):
    (work / "costs.md").write_text("before\n<!-- cost table: make bench -->\nold\n<!-- end -->\nafter\n")
    assert pluribus(f"{SMALL} --part growth --methods inner").code == 0
    before = read(work)["growth"]
    assert pluribus(f"{SMALL} --part table --docs costs.md").code == 0
    found = read(work)
    assert found["growth"] == before
    assert {row["method"] for row in found["table"]} == {"inner", "mimo"}
    text = (work / "costs.md").read_text()
    assert text.startswith("before\n<!-- cost table: make bench -->\n\n## Every method")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert "](runs/bench/growth.svg)" in text


def test_page_and_document_are_made_again_without_measuring(pluribus, work):
    assert pluribus(f"{SMALL} --part table --methods inner").code == 0
    json_before, page = (work / "runs/bench/bench.json").read_bytes(), (work / "runs/bench/bench.md").read_text()
    (work / "runs/bench/bench.md").unlink()
    answer = pluribus("bench --part none")
    assert answer.code == 0, answer
    assert (work / "runs/bench/bench.md").read_text() == page
    assert (work / "runs/bench/bench.json").read_bytes() == json_before
