"""The files of a comparison, damaged: each is an error of one sentence when the comparison is resumed, or does not matter."""

import json
import shutil

import pytest

from pluribus.comparison.comparison_folder import ComparisonFolder
from pluribus.core.errors import FileError, PluribusError
from pluribus.file_formats.reading import write_json, write_yaml
from pluribus.runs.evaluation import build_evaluation_settings

OPTIONS = {"data": "digits", "model": "mlp:hidden=[8]", "rows": 100, "epochs": 1, "batch_size": 64}


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    path = tmp_path_factory.mktemp("comparison") / "c"
    made = ComparisonFolder.plan(path, OPTIONS, ["single", "inner:copies=2"], [0, 1], judging=build_evaluation_settings())
    made.run("1")
    return path


@pytest.fixture
def folder(comparison, tmp_path):
    return shutil.copytree(comparison, tmp_path / "c")


def write(folder, name, change):
    """Change a record, and write it with a new digest: what is left to notice is its content."""
    content = json.loads((folder / name).read_text())
    content.pop("digest")
    change(content)
    write_json(folder / name, content)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("single-seed0/judgement.json", "{}", r"judgement\.json is damaged, it lacks the key 'rows'"),
        ("single-seed0/judgement.json", '{"rows": ', r"judgement\.json is damaged, it is no JSON"),
        ("single-seed0/result.json", "{}", r"result\.json is damaged, it lacks the key 'title'"),
        ("single-seed0/about.json", '{"versions": 3}', r"about\.json is damaged, it must have a mapping for 'versions', got 3"),
        ("single-seed0/data.json", "[]", r"data\.json is damaged, it must hold an object"),
        ("single-seed0/config.yaml", "a: [", r"config\.yaml is damaged, it is no YAML"),
        ("compare.yaml", "{}", r"compare\.yaml is damaged, it lacks the key 'budget'"),
        ("compare.yaml", "budget: epo", r"compare\.yaml is damaged"),
        ("grid.yaml", "{}", r"grid\.yaml is damaged, it must hold at least 1 entries"),
        ("grid.yaml", "a: {}\n", r"grid\.yaml is damaged, it lacks the key 'a.data'"),
    ],
)
def test_a_damaged_record_is_named_with_the_cure(name, content, said, folder):
    (folder / name).write_text(content)
    with pytest.raises(PluribusError, match=said) as error:
        ComparisonFolder.open(folder).run("1")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["compare.yaml", "grid.yaml", "single-seed0/config.yaml", "inner-copies-2-seed1/judgement.json"]
)
def test_one_changed_digit_in_a_record_is_noticed(name, folder):
    text = (folder / name).read_text()
    place = next(place for place in range(len(text) - 1, 0, -1) if text[place] in "0123456789")
    (folder / name).write_text(text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :])
    with pytest.raises(FileError, match=r"was changed or damaged after it was written: take it from a copy"):
        ComparisonFolder.open(folder).run("1")


def test_a_grid_without_the_baseline_is_refused(folder):
    write_yaml(folder / "grid.yaml", {"inner-copies-2-seed0": OPTIONS | {"method": "inner:copies=2", "seed": 0}})
    with pytest.raises(FileError, match=r"grid\.yaml is damaged, no run is of single: take it from a copy"):
        ComparisonFolder.open(folder)


@pytest.mark.parametrize("seed", [0, 1])
def test_judgements_that_cannot_be_averaged_are_refused(seed, folder):
    write(folder, f"single-seed{seed}/judgement.json", lambda content: content["scores"].pop("ece"))
    with pytest.raises(FileError, match="does not have the scores of the other runs: delete it, and resume the comparison"):
        ComparisonFolder.open(folder).run("1")


def test_metrics_that_hold_no_numbers_are_refused_while_a_run_is_unfinished(folder):
    opened = ComparisonFolder.open(folder)
    (folder / "single-seed0/result.json").unlink()
    for content in ("epoch,loss\n1,abc\n", "loss\n1\n", "epoch,loss\n1,2,3\n"):
        (folder / "single-seed0/metrics.csv").write_text(content)
        with pytest.raises(
            FileError, match=r"metrics\.csv is damaged, it must hold a number in every cell: take it from a copy"
        ):
            opened.grid.read_states()


@pytest.mark.parametrize("content", ["", "epoch,step,loss,validation_nll\n", "epoch,step\n1,2\n2,4\n"])
def test_metrics_that_lack_an_epoch_are_refused(folder, content):
    """An emptied file took the learning curves from the results without a word: found by `make fuzz`."""
    (folder / "single-seed0/metrics.csv").write_text(content)
    with pytest.raises(FileError, match=r"metrics\.csv is damaged: it has [02] epochs, and the run had 1"):
        ComparisonFolder.open(folder).run("1")


def test_metrics_with_another_digit_are_refused(folder):
    """A flipped bit gave another learning curve without a word: found by `make fuzz`."""
    place = folder / "single-seed0/metrics.csv"
    text = place.read_text()
    last = max(place for place, letter in enumerate(text) if letter.isdigit())
    place.write_text(text[:last] + ("1" if text[last] != "1" else "2") + text[last + 1 :])
    with pytest.raises(FileError, match=r"single-seed0/metrics\.csv was changed since it was written: "):
        ComparisonFolder.open(folder).run("1")


def test_metrics_that_are_missing_are_named(folder):
    (folder / "single-seed0/metrics.csv").unlink()
    with pytest.raises(FileError, match=r"single-seed0/metrics\.csv is missing: "):
        ComparisonFolder.open(folder).run("1")


def test_records_of_an_older_version_without_digests_are_read(folder):
    before = ComparisonFolder.open(folder).run("1")
    for path in folder.rglob("*"):
        if path.suffix == ".json" and path.name != "weights.json":
            content = json.loads(path.read_text())
            path.write_text(json.dumps({name: value for name, value in content.items() if name not in ("digest", "metrics")}))
        elif path.suffix == ".yaml":
            path.write_text("\n".join(line for line in path.read_text().splitlines() if "sha256:" not in line))
    after = ComparisonFolder.open(folder).run("1")
    assert json.dumps(after) == json.dumps(before)
