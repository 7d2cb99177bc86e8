"""Students in a comparison: a second stage, taught by the deep ensemble of the same seed."""

import pytest

from pluribus.comparison.comparison_folder import ComparisonFolder
from pluribus.comparison.extension import extend_comparison
from pluribus.comparison.roles import find_baseline, find_reference
from pluribus.comparison.students import describe_students, expand_students
from pluribus.comparison.tuning import Tuning
from pluribus.core.errors import FileError
from pluribus.file_formats.comparison_files import GridFile, Results
from pluribus.file_formats.reading import read_json, read_yaml, write_yaml
from pluribus.runs import grid as grids
from pluribus.runs.choices import ChoiceError
from pluribus.runs.config import ConfigError, read_config
from pluribus.runs.grid import Grid

OPTIONS = {"data": "digits", "model": "mlp:hidden=[8]", "rows": 96, "epochs": 1, "batch_size": 32}
STUDENTS = expand_students("single,multihead:members=2")


def plan(path, methods=("single", "deep-ensemble:members=2"), seeds=(0,), students=STUDENTS, **options):
    own = {name: options.pop(name) for name in ("student", "tune", "budget") if name in options}
    return ComparisonFolder.plan(path, OPTIONS | options, list(methods), list(seeds), students=students, **own)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A comparison that was killed between its stages, and then resumed."""
    made = plan(tmp_path_factory.mktemp("students") / "c")
    ran = []
    with pytest.MonkeyPatch.context() as patch:

        def run_one_stage(jobs, *arguments, **options):
            ran.append([job.name for job in jobs])
            if len(ran) > 1:
                raise KeyboardInterrupt
            return grids_run_jobs(jobs, *arguments, **options)

        grids_run_jobs = grids.run_jobs
        patch.setattr(grids, "run_jobs", run_one_stage)
        with pytest.raises(KeyboardInterrupt):
            made.run("1")
    return ComparisonFolder.open(made.path), ComparisonFolder.open(made.path).run("1"), ran


def test_students_run_after_their_teachers(finished):
    _, _, ran = finished
    assert ran == [
        ["single-seed0", "deep-ensemble-members-2-seed0"],
        ["single-from-deep-ensemble-members-2-seed0", "multihead-members-2-from-deep-ensemble-members-2-seed0"],
    ]


def test_results_name_the_teacher_and_judge_students_like_the_others(finished):
    made, results, _ = finished
    assert read_json(made.path / "results.json", Results)["methods"][2]["teacher"] == "deep-ensemble:members=2"
    names = [method["name"] for method in results["methods"]]
    assert names == [
        *("single", "deep-ensemble:members=2"),
        *("single ← deep-ensemble:members=2", "multihead:members=2 ← deep-ensemble:members=2"),
    ]
    for method in results["methods"]:
        assert method["cost"]["latency"]["value"] > 0
        assert (method["gain"] is None) == (method["name"] == "single")
    assert [method["teacher"] for method in results["methods"][:2]] == [None, None]
    assert any("(←) are students of deep-ensemble:members=2" in note for note in results["notes"])
    assert "teacher" not in results["settings"]
    assert "single ← deep-ensemble:members=2" in (made.path / "report.html").read_text()


def test_each_student_has_the_teacher_of_its_seed(finished, tmp_path):
    made, _, _ = finished
    config = read_config(made.path / "single-from-deep-ensemble-members-2-seed0/config.yaml")
    assert config.teacher["run"] == "../deep-ensemble-members-2-seed0"
    assert len(config.teacher["digest"]) == 64
    both = plan(tmp_path / "c", methods=("deep-ensemble:members=2", "deep-ensemble:members=3"), seeds=(4, 7))
    taught = {cell.seed: cell.teacher for cell in both.grid.cells if cell.is_student}
    assert taught == {seed: f"deep-ensemble-members-3-seed{seed}" for seed in (4, 7)}, "the largest one teaches"
    assert [len(stage) for stage in both.grid.list_stages()] == [6, 4]


def test_a_teacher_is_added_where_there_is_none(tmp_path):
    made = plan(tmp_path / "c", methods=("single",))
    assert "deep-ensemble was added: it teaches the students." in made.about["notes"]
    assert {cell.teacher for cell in made.grid.cells if cell.is_student} == {"deep-ensemble-seed0"}


def test_a_student_is_neither_baseline_nor_reference(tmp_path):
    made = plan(tmp_path / "c", students=expand_students("single,deep-ensemble:members=5"))
    assert (find_baseline(made.grid), find_reference(made.grid)) == ("single", "deep-ensemble:members=2")


def test_runs_that_teach_one_another_are_refused(tmp_path):
    made = plan(tmp_path / "c")
    cells = read_yaml(made.path / "grid.yaml", GridFile)
    cells["deep-ensemble-members-2-seed0"]["teacher"] = {"run": "../single-from-deep-ensemble-members-2-seed0"}
    write_yaml(made.path / "grid.yaml", cells)
    with pytest.raises(FileError, match="waits for itself as a teacher"):
        Grid.open(made.path).list_stages()


def test_wrong_students_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ConfigError, match="no method 'mino'"):
        plan(tmp_path / "c", students=expand_students("mino"))
    assert not (tmp_path / "c").exists()
    with pytest.raises(ConfigError, match="must name its students"):
        expand_students("all")
    with pytest.raises(ConfigError, match="must be names of methods"):
        expand_students([])
    assert expand_students(None) == []


def test_students_may_have_settings_of_their_own(tmp_path):
    made = plan(tmp_path / "c", student="epochs=5,mixup=1")
    lengths = {cell.is_student: (cell.options["epochs"], cell.options["mixup"]) for cell in made.grid.cells}
    assert lengths == {False: (OPTIONS["epochs"], 0.0), True: (5, 1.0)}
    assert "Students were trained with epochs 5, mixup 1, unlike the others." in made.about["notes"]
    more = extend_comparison(made, [], expand_students("mimo:members=2"), {"epochs": 7})
    assert next(cell for cell in more.grid.cells if "mimo" in cell.name).options["epochs"] == 7
    assert "Students were trained with epochs 7, unlike the others." in more.about["notes"]


def test_what_a_student_was_given_stays_when_its_method_is_tuned(tmp_path):
    made = plan(tmp_path / "c", student="mixup=1", tune=3)
    tuning = Tuning.open(made.grid, 3, "calibrated_nll")
    tuning.trials["single"][2].options.update(mixup=0.2, label_smoothing=0.05)
    cells = {cell.is_student: cell for cell in made.grid.cells if cell.options["method"] == {"name": "single"}}
    found = {taught: tuning.choose_options(cell, {"single": 2}) for taught, cell in cells.items()}
    assert {taught: (options["mixup"], options["label_smoothing"]) for taught, options in found.items()} == {
        False: (0.2, 0.05),
        True: (1.0, 0.05),
    }


@pytest.mark.parametrize(
    ("student", "options", "said"),
    [
        ("epochs=5", {"students": []}, "there are none"),
        ("epocs=5", {}, "did you mean 'epochs'"),
        ("seed=5", {}, "no setting of a student 'seed'"),
        ("epochs", {}, "setting=value"),
        ("epochs=5", {"budget": "training-flops"}, "the budget training-flops does"),
        ("epochs=0", {}, "epochs"),
    ],
)
def test_wrong_settings_of_students_are_refused(tmp_path, student, options, said):
    with pytest.raises((ConfigError, ChoiceError), match=said):
        plan(tmp_path / "c", student=student, **options)
    assert not (tmp_path / "c").exists()


def test_the_note_says_what_the_budget_does_not_count():
    methods = [{"teacher": None}, {"teacher": "deep-ensemble"}]
    assert "training FLOPs and the budget do not count" in describe_students(methods, "training-flops")[0]
    assert describe_students(methods[:1], "epochs") == []
