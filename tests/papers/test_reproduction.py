"""A recipe's cells: each is measured once, whatever happens, and what is left is made from the JSON alone."""

import contextlib
import json
import multiprocessing
import os
import subprocess
from pathlib import Path

import pytest

from pluribus import papers
from pluribus.cli.show_reproduce import print_recipes
from pluribus.core.errors import FileError, PluribusError
from pluribus.file_formats.reading import read_json, write_json
from pluribus.file_formats.schema import Count, Finite, Schema
from pluribus.papers import Recipe, Scale, results
from pluribus.papers.commits import read_commits
from pluribus.papers.page import describe_commits, format_page, format_table, format_value
from pluribus.papers.reproduction import Reproduction, reproduce
from pluribus.papers.verdicts import Verdict, judge_claim


class Measured(Schema):
    value: Finite
    seed: Count


def count_call(options, workspace):
    """Leaves a mark for every time that it is run."""
    with (workspace.shared / "marks.txt").open("a") as file:
        file.write(f"{options['value']}\n")
    if options["value"] < 0:
        raise ValueError("values must not be negative")
    return {"value": options["value"], "seed": options["seed"]}


def recipe(values=(1, 2, 3), **changes):
    cells = {f"cell {value}": {"seed": index, "value": value} for index, value in enumerate(values)}
    options = {
        "id": "variance/sample",
        "title": "A title",
        "question": "Why?",
        "source": "table 1",
        "scales": dict.fromkeys(("smoke", "cpu", "paper"), Scale("Small.", cells)),
        "measure": count_call,
        "measured": Measured,
        "tabulate": lambda found: [{"name": name, "value": cell["value"]} for name, cell in found.items()],
        "judge": lambda found: [judge_claim("All are there.", "three", f"{len(found)}", len(found) == 3)],
        "columns": {"name": "cell", "value": "value, units"},
        "published": [{"name": "cell 1", "value": 9.0}],
    }
    return Recipe(**(options | changes))


@pytest.fixture
def job(tmp_path, monkeypatch):
    def make(own=None, scale="cpu"):
        own = own or recipe()
        monkeypatch.setattr(papers, "load_recipes", lambda: {own.id: own})
        return Reproduction(own, scale, tmp_path / "out", tmp_path / "work")

    return make


def marks(job):
    file = job.shared / "marks.txt"
    return sorted(int(line) for line in file.read_text().split()) if file.exists() else []


def test_a_result_holds_rows_paper_seeds_versions_machine_duration_and_verdicts(job):
    result = reproduce(job())
    assert result["complete"]
    assert result["seeds"] == [0, 1, 2]
    assert [row["value"] for row in result["rows"]] == [1, 2, 3]
    assert result["paper"] == [{"name": "cell 1", "value": 9.0}]
    assert result["verdicts"][0]["outcome"] == "reproduced"
    for cell in result["cells"].values():
        assert cell["seconds"] >= 0
        assert cell["about"]["versions"]["torch"]
        assert cell["about"]["machine"]["cores"]
    assert results.read_result(job().out, job().recipe, "cpu") == json.loads(json.dumps(result))


def test_a_finished_cell_is_never_measured_again(job):
    reproduce(job())
    reproduce(job())
    assert marks(job()) == [1, 2, 3]


def test_recorded_cells_count_where_the_work_folder_is_gone(job, tmp_path):
    first = job()
    reproduce(first)
    elsewhere = Reproduction(first.recipe, "cpu", first.out, tmp_path / "elsewhere")
    reproduce(elsewhere)
    assert marks(elsewhere) == []


def test_while_it_runs_a_finished_cell_is_read_once(job, monkeypatch):
    reproduce(job())
    watched = job()
    reads = []
    monkeypatch.setattr(
        "pluribus.papers.reproduction.read_json", lambda path, schema: reads.append(path) or read_json(path, schema)
    )
    assert [watched.read_states() for _ in range(3)] == [(3, [])] * 3
    assert len(reads) == 3


def test_a_cell_with_other_options_is_measured_anew(job):
    reproduce(job())
    changed = recipe()
    changed.scales["cpu"].cells["cell 2"]["seed"] = 7
    reproduce(job(changed))
    assert marks(job(changed)) == [1, 2, 2, 3]


def test_one_cell_that_fails_does_not_stop_the_others_and_can_be_tried_again(job):
    with pytest.raises(PluribusError, match=r"1 of 3 cells did not finish; cell -1: ValueError: values must not be negative"):
        reproduce(job(recipe((1, -1, 3))))
    assert marks(job()) == [-1, 1, 3]
    found = results.read_result(job().out, job().recipe, "cpu")
    assert not found["complete"]
    assert found["verdicts"] == []
    assert [cell["found"]["value"] for cell in found["cells"].values()] == [1, 3]
    assert not found["rows"], "a table of some seeds would compare what is not alike"


def test_smoke_has_no_verdicts_but_says_what_it_saw(job):
    result = reproduce(job(scale="smoke"))
    assert result["verdicts"][0]["outcome"] == "not run at this scale"
    assert result["verdicts"][0]["evidence"] == "3"


@pytest.mark.parametrize("start", ["fork", pytest.param("exec", marks=pytest.mark.slow)])
def test_workers_measure_the_same(start, tmp_path, monkeypatch):
    """In processes of their own a recipe is found by its id, so a real one is run. Forked, they need not import torch again."""
    from pluribus.papers import load_recipes

    if start == "fork":
        name = "pluribus.experiments.workers.worker_backend"
        monkeypatch.setattr(name, lambda workers: contextlib.nullcontext(("multiprocessing", int(workers), 1)))
    own = load_recipes()["variance/figure-2"]
    one, two = (reproduce(Reproduction(own, "smoke", tmp_path / w / "out", tmp_path / w / "work"), w) for w in ("1", "2"))
    assert one["rows"] == two["rows"]


def test_after_a_kill_only_what_is_left_is_measured(job):
    def measure(options, workspace):
        if options["value"] == 2:
            os._exit(9)
        return count_call(options, workspace)

    dying = job(recipe(measure=measure))
    process = multiprocessing.get_context("fork").Process(target=reproduce, args=(dying,))
    process.start()
    process.join(60)
    assert process.exitcode == 9
    assert marks(dying) == [1]
    reproduce(job())
    assert marks(job()) == [1, 2, 3]


def test_a_damaged_result_is_not_overwritten(job):
    file = results.locate_result(job().out, job().recipe, "cpu")
    file.parent.mkdir(parents=True)
    file.write_text("no JSON")
    with pytest.raises(FileError, match="does not hold what `pluribus reproduce` leaves"):
        reproduce(job())
    assert file.read_text() == "no JSON"


@pytest.mark.parametrize("found", [{"value": "1", "seed": 0}, {"value": 1}, {"value": 1, "seed": 0, "more": 2}, [1, 0], None])
def test_what_a_cell_measured_is_refused_unless_it_is_what_its_recipe_measures(job, found):
    """The digest is right: somebody wrote the file anew."""
    cell = reproduce(job())["cells"]["cell 1"]
    file = job().folder / "cell 1" / "found.json"
    write_json(file, cell | {"found": found})
    with pytest.raises(FileError, match=r"found\.json is damaged, it .*found.*: delete it to measure the cell again"):
        reproduce(job())


def test_a_recorded_result_is_refused_if_a_cell_measured_something_else(job):
    result = reproduce(job())
    result["cells"]["cell 2"]["found"]["value"] = None
    file = results.locate_result(job().out, job().recipe, "cpu")
    write_json(file, result)
    before = file.read_bytes()
    with pytest.raises(FileError, match="does not hold what `pluribus reproduce` leaves"):
        reproduce(job())
    assert file.read_bytes() == before


def test_the_table_shows_ours_with_the_papers_in_brackets(job):
    text = format_table(reproduce(job()))
    assert "| cell 1 | 1 (9.00) |" in text
    assert "| cell 2 | 2 |" in text


def test_the_page_shows_every_recipe_and_its_verdicts(job):
    result = reproduce(job())
    text = format_page("variance", {"variance/sample": result})
    assert "## variance/sample: A title" in text
    assert "| ✓ | All are there. | reproduced | 3 | three |" in text
    assert (job().out / "variance" / "README.md").read_text() == text


def test_a_paper_row_that_we_do_not_have_is_shown_too():
    result = {"columns": {"name": "", "value": ""}, "rows": [{"name": "a", "value": 1}], "paper": [{"name": "b", "value": 2.0}]}
    assert "| b | (2.00) |" in format_table(result)


def test_numbers_are_shown_as_people_write_them():
    assert [format_value(value) for value in (12345, 0.0, 1e-9, True)] == ["12,345", "0.00", "1e-09", "yes"]


def test_the_list_names_every_recipe_and_its_verdicts(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    print_recipes(Path(__file__).parents[2] / "papers", ["ALL"])
    shown = capsys.readouterr().out
    assert all(f"{name} " in shown for name in papers.load_recipes())
    assert "✓" in shown or "reproduced" in shown


def test_a_result_of_earlier_options_keeps_its_setting_and_is_judged_by_the_present_rules(job):
    reproduce(job())
    recorded = results.read_result(job().out, job().recipe, "cpu")
    undecided = {"judge": lambda found: [Verdict("Other.", "not decided at this scale", "rule", str(len(found)))]}
    other = recipe((1, 2, 3, 4), **undecided, title="Another title")
    job(other)
    results.refresh_results(job(other).out, "variance")
    found = results.read_result(job(other).out, other, "cpu")
    assert found["earlier"]
    assert found["cells"] == recorded["cells"]
    assert found["about"] == recorded["about"]
    assert [(each["outcome"], each["evidence"]) for each in found["verdicts"]] == [("not decided at this scale", "3")]
    page = (job(other).out / "variance" / "README.md").read_text()
    assert "Another title" in page
    assert "before the present ones and their rules were written" in page
    reproduce(job(other))  # the fourth cell is measured, and what was measured before is kept
    assert marks(job(other)) == [1, 2, 3, 4]
    assert "earlier" not in results.read_result(job(other).out, other, "cpu")


def test_a_result_of_the_present_options_is_that_of_a_run(job):
    result = json.loads(json.dumps(reproduce(job())))
    assert json.loads(json.dumps(results.rebuild_result(job().recipe, result))) == result


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_measurement_names_the_commits_of_its_code_and_of_its_rules(tmp_path):
    git(tmp_path, "init")
    for name in ("paper", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rules.py").write_text("1\n")
        git(tmp_path, "add", name)
        git(tmp_path, "commit", "-m", name)
    rules, elsewhere = (tmp_path / name for name in ("paper", "elsewhere"))
    found = read_commits(rules)
    assert {len(text) for text in found.values()} == {12}
    assert found["commit"] != found["rules_commit"]
    assert read_commits(elsewhere) == {"commit": found["commit"], "rules_commit": found["commit"]}
    (rules / "rules.py").write_text("2\n")
    assert read_commits(rules) == {"commit": f"{found['commit']}-dirty", "rules_commit": found["rules_commit"]}


def test_without_a_checkout_no_commit_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert read_commits(tmp_path) == {}
    monkeypatch.setenv("PATH", "")
    assert read_commits(Path(__file__).parent) == {}


def test_the_page_names_the_commits_that_are_recorded():
    cells = {"a": {"about": {"commit": "abc", "rules_commit": "def"}}, "b": {"about": {"commit": "abd", "rules_commit": "def"}}}
    assert describe_commits({"cells": cells}) == "; measured with commit abc, abd, rules of commit def"
    assert describe_commits({"cells": {"a": {"about": {}}}}) == ""


def test_a_cell_of_a_checkout_names_its_commits(job, monkeypatch):
    asked = []
    monkeypatch.setattr("pluribus.papers.reproduction.read_commits", lambda folder: asked.append(folder) or {"commit": "abc"})
    result = reproduce(job())
    assert {cell["about"]["commit"] for cell in result["cells"].values()} == {"abc"}
    assert {folder.relative_to(Path(papers.__file__).parent).as_posix() for folder in asked} == {"variance"}
    assert all(folder.is_dir() for folder in asked)
