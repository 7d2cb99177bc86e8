"""Judging and comparing from the command line."""

import json

from pluribus.runs.config import ConfigError


def test_a_run_is_judged_from_every_side_that_is_asked_for(pluribus, a_copy):
    a_copy("digits")
    line = "evaluate run --corruptions standard --shift-rows 5 --ood noise --attack fgsm --attack-rows 5 --base run"
    (judged,) = [json.loads(pluribus(f"{line} --json").out)]
    assert judged["shift"]["mce"] == 1  # relative to itself
    assert judged["shift"]["rows"] == judged["attack"]["rows"] == 5
    assert set(judged["ood"]) == {"noise"}
    assert judged["cost"]["parameters"] == 1
    assert set(judged["intervals"]) <= set(judged["scores"])
    shown = pluribus(f"{line} --no-cost").out
    for piece in (
        "95 % interval",
        "cAcc",
        "mCE",
        "AUROC, noise, by entropy",
        "fast sign",
        "evaluation-corruptions-standard-ood-noise",
    ):
        assert piece in shown
    assert "latency" not in shown


def test_a_comparison_ends_with_its_table_its_verdict_and_its_page(pluribus, work):
    line = (
        "compare --data digits --model mlp --rows 64 --epochs 1 --methods single,deep-ensemble:members=2 --seeds 1 --workers 1"
    )
    answer = pluribus(f"{line} --out c")
    assert answer.code == 0, answer
    assert "1/2  single, seed 0" in answer.err
    for piece in ("latency", "worth", "One seed", "The page: c/report.html"):
        assert piece in answer.out
    (work / "c/report.html").unlink()
    assert pluribus("compare --resume c --workers 1").code == 0
    assert (work / "c/report.html").is_file()
    made = pluribus("report c --out elsewhere")
    assert made.out == "The page: elsewhere/report.html\n"
    assert (work / "elsewhere/results.csv").read_text() == (work / "c/results.csv").read_text()
    assert json.loads((work / "c/results.json").read_text())["command"] == f"pluribus {line} --out c"


def test_the_command_line_calls_the_function_of_python_with_every_setting(pluribus, monkeypatch):
    """`pluribus compare --lr 0.5` is `pluribus.compare(lr=0.5)`."""
    asked = {}

    def record(network, data, **options):
        asked.update(options, network=network, data=data)
        raise ConfigError("that will do")

    monkeypatch.setattr("pluribus.comparison.api.compare", record)
    named = {"epochs": "3", "batch_size": "16", "lr": "0.5", "optimizer": "sgd", "validation": "0.2", "precision": "64"}
    words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in named.items())
    answer = pluribus(f"compare --data digits --model mlp --methods inner --seeds 2 --budget parameters {words}")
    assert (answer.code, answer.err) == (2, "pluribus: that will do\n")
    assert {name: asked[name] for name in named} == named
    assert (asked["network"], asked["data"], asked["methods"]) == ("mlp", "digits", "inner")
    assert (asked["seeds"], asked["budget"]) == ("2", "parameters")
