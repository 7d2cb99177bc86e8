"""The commands as they should go: every help, a run from training to predicting, and what a terminal shows."""

import csv
import dataclasses
import json
import re

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from safetensors.torch import load_file

from pluribus.core.saving import load as load_ensemble
from pluribus.core.spec import Spec
from pluribus.data import load
from pluribus.data.catalog import SETS
from pluribus.models.registry import MODELS, build

from .cases import TRAIN
from .files import file, nets, npz, photos, rows

COMMANDS = [
    *("compare", "report", "train", "evaluate", "predict", "bench", "bench tables", "reproduce"),
    *("models", "methods", "data list", "data check", "data get"),
]


def scores(run):
    return json.loads((run / "result.json").read_text())["scores"]


def lines(answer):
    assert answer.code == 0, answer
    return [json.loads(line) for line in answer.out.splitlines()]


# --- help and catalogue ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_shows_examples(command, flag, pluribus):
    answer = pluribus(f"{command} {flag}")
    assert answer.code == 0
    assert re.search(r"Examples?\b", answer.out)
    assert f"pluribus {command}" in answer.out.split("Example")[-1]


def test_the_help_of_all_names_every_command_and_where_to_begin(pluribus):
    answer = pluribus("--help")
    assert answer.code == 0
    assert all(
        word in answer.out for word in ("compare", "train", "evaluate", "predict", "data", "models", "methods", "Begin with")
    )


def test_help_shows_every_setting_with_its_default(pluribus):
    from pluribus.runs.config import Config

    answer = pluribus("train --help")
    assert all("--" + name.replace("_", "-") in answer.out for name in Config.model_fields)
    assert "[128]" in answer.out


def test_models_and_methods_list_every_name(pluribus):
    models, methods = pluribus("models").out, pluribus("methods").out
    assert all(f" {name} " in models for name in MODELS)
    assert all(f" {name} " in methods for name in Spec.registry)


@pytest.mark.parametrize("name", Spec.registry)
def test_a_method_shows_its_options_and_cost(name, pluribus):
    answer = pluribus(f"methods {name}")
    assert answer.code == 0
    assert all(option.name in answer.out for option in dataclasses.fields(Spec.registry[name]))
    assert "× the parameters" in answer.out


def test_a_model_is_shown_alone(pluribus):
    answer = pluribus("models mlp")
    assert "hidden" in answer.out
    assert "lenet5" not in answer.out


def test_data_list_names_every_set_and_says_what_is_here(pluribus):
    answer = pluribus("data list")
    assert all(f" {name} " in answer.out for name in SETS)
    assert "embedded" in answer.out
    assert "missing (data get)" in answer.out


def test_data_check_reads_a_table(pluribus, work):
    file("flowers.csv", rows())(work)
    answer = pluribus("data check flowers.csv")
    assert answer.code == 0
    assert "flowers: 48 training and 12 test rows of 4, 2 classes" in answer.out


# --- from training to predicting ---------------------------------------------------------------------------------------


@pytest.fixture
def digit(work):
    """A test digit as a PNG in the working folder, and its label."""
    part = load("digits").test
    Image.fromarray(part.x[0, 0].numpy()).save(work / "digit.png")
    return "digit.png", str(int(part.y[0]))


def test_digits_are_learnt_judged_and_told(pluribus, work, digit):
    assert (
        pluribus("train --data digits --model mlp --method batch-ensemble --members 2 --epochs 12 --quiet --out run").code == 0
    )
    assert {"config.yaml", "about.json", "data.json", "metrics.csv", "weights.safetensors", "result.json"} <= {
        path.name for path in (work / "run").iterdir()
    }
    assert scores(work / "run")["accuracy"] > 0.85
    assert "members: 2" in (work / "run/config.yaml").read_text()
    with (work / "run/metrics.csv").open() as table:
        assert [row["epoch"] for row in csv.DictReader(table)] == [str(epoch) for epoch in range(1, 13)]
    name, label = digit
    (answer,) = lines(pluribus(f"predict run {name} --json"))
    folder = work / "photos/deeper"
    folder.mkdir(parents=True)
    (folder / "one.png").write_bytes((work / name).read_bytes())
    (folder / "readme.txt").write_text("no image")
    (inside,) = lines(pluribus("predict run photos --json"))
    assert (inside.pop("file"), inside) == ("photos/deeper/one.png", {key: answer[key] for key in inside})
    assert answer["file"] == name
    assert answer["label"] == label
    assert answer["confidence"] == max(answer["probabilities"].values())
    assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    assert 0 <= answer["mutual_information"] <= answer["uncertainty"]
    shown = pluribus(f"predict run {name}").out
    assert "confidence" in shown
    assert "probabilities" not in shown


def test_a_run_folder_holds_no_pickle_and_python_loads_its_weights(a_copy):
    """Beside texts there are safetensors alone: no pickle can be read as one, for its first byte is no length of a header."""
    run = a_copy("digits")
    files = [path for path in run.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".yaml", ".json", ".csv", ".safetensors", ".lock", ".log", ""}
    assert {"pluribus", "torch"} <= set(json.loads((run / "about.json").read_text())["versions"])
    for path in files:
        if path.suffix == ".safetensors":
            assert load_file(path)
        else:
            assert path.read_text().isprintable() or "\n" in path.read_text(), path
    ensemble = load_ensemble(run / "weights", build("mlp", shape=(1, 8, 8), outputs=10, hidden=[16]))
    assert ensemble.predict(torch.zeros(2, 1, 8, 8)).probs.shape == (2, 10)


@pytest.mark.parametrize("data", ["digits", "flowers", "houses"])
def test_evaluating_repeats_what_training_reported(data, pluribus, a_copy):
    run = a_copy(data)
    (judged,) = lines(pluribus("evaluate run --json"))
    assert {name: judged["scores"][name] for name in scores(run)} == pytest.approx(scores(run), rel=1e-5)
    assert judged["split"] == "test"
    kept = json.loads((run / "evaluation.json").read_text())
    assert kept.pop("digest")
    assert kept == judged
    assert pluribus("evaluate run").code == 0


def test_evaluating_other_splits_takes_their_rows(pluribus, a_copy):
    a_copy("digits")
    counts = {split: lines(pluribus(f"evaluate run --json --split {split}"))[0]["rows"] for split in ("train", "validation")}
    assert counts == {"train": 58, "validation": 6}  # of --rows 64


def test_an_evaluation_with_other_options_leaves_the_first_one_alone(pluribus, a_copy):
    run = a_copy("digits")
    assert pluribus("evaluate run --no-cost").code == 0
    first = (run / "evaluation.json").read_bytes()
    shown = pluribus("evaluate run --no-cost --split validation").out
    assert "evaluation-validation.json" in "".join(shown.split())
    assert json.loads((run / "evaluation-validation.json").read_text())["rows"] == 6
    assert (run / "evaluation.json").read_bytes() == first


def test_a_classification_table_is_told_row_by_row(pluribus, a_copy, work):
    a_copy("flowers")
    file("new.csv", "colour,width,length,note\nred,0.5,1.5,a\nblue,-0.9,3.2,b\n")(work)
    answers = lines(pluribus("predict run new.csv --json"))
    assert [answer["row"] for answer in answers] == [0, 1]
    assert all(set(answer["probabilities"]) == {"small", "tall"} for answer in answers)


def test_a_regression_is_told_with_its_spread_in_its_own_units(pluribus, work):
    file("houses.csv", rows(200, "price"))(work)
    line = "train --data houses.csv --method deep-ensemble --members 2 --epochs 30 --batch-size 16 --lr 0.01 --quiet --out run"
    assert pluribus(line).code == 0
    assert scores(work / "run")["rmse"] < 2
    file("new.csv", "length,width,colour\n2.0,-0.416,blue\n6.0,0.96,red\n")(work)
    low, high = lines(pluribus("predict run new.csv --json"))
    assert abs(low["value"] - 5.6) < 3 < 13 < high["value"] < 23
    assert low["spread"] >= 0


def test_another_table_is_encoded_as_the_one_of_training(pluribus, a_copy, runs, work):
    """Its own mean and spread are others, and it may lack a class."""
    a_copy("flowers")
    text = (runs / "flowers.csv").read_text().splitlines()
    file("tall.csv", "\n".join([text[0], *(row for row in text if row.endswith("tall"))]))(work)
    (judged,) = lines(pluribus("evaluate run --data tall.csv --json"))
    told = lines(pluribus("predict run tall.csv --json"))
    assert judged["split"] == "all"
    assert judged["rows"] == len(told)
    assert judged["scores"]["accuracy"] == pytest.approx(sum(a["label"] == "tall" for a in told) / len(told))


def test_other_images_keep_the_names_of_their_classes(pluribus, work):
    """A folder that lacks the first class is not judged as if its first class were that."""
    photos(classes=("cat", "dog", "fox"), each=6)(work)
    for number, kind in enumerate(("cat", "dog", "fox")):
        for path in (work / "photos" / kind).iterdir():
            Image.fromarray(np.full((8, 8), 100 * number, np.uint8)).save(path)
    line = "train --data photos --model mlp --epochs 60 --lr 0.01 --validation 0 --quiet --out run"
    assert pluribus(line).code == 0
    assert scores(work / "run")["accuracy"] == 1
    (work / "photos").rename(work / "others")
    for path in (work / "others/cat").iterdir():
        path.unlink()
    (work / "others/cat").rmdir()
    (work / "photos").mkdir()
    assert lines(pluribus("evaluate run --data others --json"))[0]["scores"]["accuracy"] == 1


def test_a_table_that_has_changed_is_not_divided_anew(pluribus, work):
    """With other rows, others would be set aside for the test: among them some that the run learnt from."""
    file("flowers.csv", rows(60))(work)
    assert pluribus(f"{TRAIN.replace('--data digits', '--data flowers.csv')} --out run").code == 0
    file("flowers.csv", rows(70))(work)
    answer = pluribus("evaluate run")
    assert answer.code == 2
    assert "flowers.csv has changed since the run began (train: 48 then, 56 now)" in answer.err
    (work / "run/result.json").unlink()
    answer = pluribus("train --resume run --quiet")
    assert answer.code == 2
    assert "has changed since the run began" in answer.err


def test_a_table_without_names_is_told_without_names(pluribus, work):
    file("bare.csv", rows().partition("\n")[2])(work)
    assert pluribus("train --data bare.csv:header=false --model mlp --epochs 1 --quiet --out run").code == 0
    assert len(lines(pluribus("predict run bare.csv --json"))) == 60
    assert lines(pluribus("evaluate run --data bare.csv --json"))[0]["rows"] == 60


def test_an_image_is_read_as_those_of_training_were(work):
    """Made smaller in the same way, and turned upright."""
    from pluribus.data import image_folder
    from pluribus.runs.prediction import read_rows

    photos(classes=("cat", "dog"), each=2)(work)
    path = work / "photos/cat/turned.jpg"
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 20), np.uint8)).save(path, exif=turned)
    data = image_folder.read(work / "photos", size=5, test=0)
    names = sorted((work / "photos/cat").iterdir())
    for row, name in enumerate(names):
        assert torch.equal(read_rows(name, data.preparation, data.shape)[0], data.train.x[row])


def test_images_may_come_as_arrays(pluribus, a_copy, work):
    a_copy("digits")
    x = load("digits").test.x[:3].numpy()
    npz("three.npz", x=x)(work)
    npz("last.npz", x=x.transpose(0, 2, 3, 1))(work)
    told = lines(pluribus("predict run three.npz last.npz --json"))
    assert [(answer["file"], answer["row"]) for answer in told[2:4]] == [("three.npz", 2), ("last.npz", 0)]
    assert [answer["confidence"] for answer in told[:3]] == [answer["confidence"] for answer in told[3:]]


def test_samples_may_be_chosen_for_a_stochastic_method(pluribus, work, digit):
    assert pluribus(f"{TRAIN} --method mc-dropout --out run").code == 0
    assert pluribus("evaluate run --samples 3 --json").code == 0
    assert pluribus(f"predict run {digit[0]} --samples 3 --json").code == 0


# --- configurations ----------------------------------------------------------------------------------------------------


def test_a_flag_overrides_the_file(pluribus, work):
    file("a.yaml", "data: digits\nmodel: {name: mlp, hidden: [8]}\nepochs: 3\nrows: 64\nmethod: inner:copies=2\n")(work)
    assert pluribus("train --config a.yaml --epochs 1 --quiet --out run").code == 0
    made = yaml.safe_load((work / "run/config.yaml").read_text())
    assert made["epochs"] == 1
    assert made["model"] == {"name": "mlp", "hidden": [8]}
    assert made["method"] == {"name": "inner", "copies": 2}


@pytest.mark.parametrize("method", ["single", "mimo:members=2", "variance"])
def test_a_runs_configuration_gives_the_same_weights_again(method, pluribus, work):
    assert pluribus(f"{TRAIN} --method {method} --seed 3 --out one").code == 0
    torch.rand(3)  # what went before does not matter
    assert pluribus("train --config one/config.yaml --quiet --out two").code == 0
    one, two = (load_file(work / name / "weights.safetensors") for name in ("one", "two"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert scores(work / "one") == scores(work / "two")
    assert pluribus("train --config one/config.yaml --seed 4 --quiet --out three").code == 0
    assert any(not torch.equal(one[name], value) for name, value in load_file(work / "three/weights.safetensors").items())


def test_any_whole_number_is_a_seed(pluribus):
    assert pluribus(f"{TRAIN} --seed 99999999999999999999").code == 0


def test_a_network_of_ones_own_is_found_in_the_working_folder(pluribus, work, digit):
    nets(work)
    line = "train --data digits --rows 64 --epochs 1 --model nets:build:hidden=5 --method inner --quiet --out run"
    assert pluribus(line).code == 0
    assert load_file(work / "run/weights.safetensors")
    assert pluribus("evaluate run --model nets:build").code == 0
    assert pluribus(f"predict run {digit[0]} --model nets:build").code == 0


def test_runs_get_names_of_their_own(pluribus, work):
    assert pluribus(TRAIN).code == 0
    assert pluribus(TRAIN).code == 0
    names = sorted(path.name for path in (work / "runs").iterdir())
    assert len(names) == 2
    assert all(name.startswith("digits-mlp-single-") for name in names)


def test_resuming_what_is_finished_repeats_its_result(pluribus, a_copy):
    run = a_copy("digits")
    before = (run / "weights.safetensors").read_bytes()
    answer = pluribus("train --resume run")
    assert answer.code == 0
    assert f"{100 * scores(run)['accuracy']:.2f} %" in answer.out
    assert (run / "weights.safetensors").read_bytes() == before


def test_a_run_without_rows_to_judge_by_has_no_scores(pluribus, work):
    file("flowers.csv", rows())(work)
    answer = pluribus("train --data flowers.csv:test=0 --validation 0 --model mlp:hidden=[4] --epochs 1 --quiet --out run")
    assert answer.code == 0, answer
    assert scores(work / "run") == {}
    assert len(lines(pluribus("predict run flowers.csv --json"))) == 60
