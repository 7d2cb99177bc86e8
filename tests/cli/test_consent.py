"""A run folder is data, never code: what its files name is run only if the user says so, and never from the folder itself."""

import os
import pickle
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from pluribus.runs.consent import ConsentError, get_consent
from pluribus.runs.evaluation import build_evaluation_settings, evaluate_run
from pluribus.runs.prediction import predict_files

from ..processes import fork_pluribus
from .conftest import call_pluribus
from .files import nets
from .test_wrong_input import check, digest

ATTACKS = {  # tests/models/test_factories.py has more names
    "a command": {"name": "os:system", "command": "touch sprung"},
    "a process": {"name": "subprocess:Popen", "args": ["touch", "sprung"]},
    "a script": {"name": "runpy:run_path", "path_name": "payload.py"},
    "a pickle": {"name": "torch:load", "f": "payload.pkl", "weights_only": False},
    "a pickle of joblib": {"name": "joblib:load", "filename": "payload.pkl"},
    "pluribus itself": {"name": "pluribus.models.registry:build", "model": "payload:build"},
    "a module in the folder": {"name": "payload:build"},
    "a package in the folder": {"name": "package.payload:build"},
    "a text with control characters": {"name": "payload:\x1b[31mbuild\n"},
}
OF_ALL_KINDS = ("os:system", "torch:load", "payload:build")
"""A module of Python, a function of a library, and a module in the folder."""
PAYLOAD = "open('sprung', 'w').close()\nfrom torch import nn\ndef build(inputs, outputs): return nn.Linear(inputs, outputs)\n"


class Payload:
    """Its pickle makes a file when it is loaded."""

    def __reduce__(self):
        return os.system, ("touch sprung",)


def rewrite(path, **settings):
    """Change settings in a YAML file, as somebody would who sends it to us: without the digest."""
    content = yaml.safe_load(path.read_text()) | settings
    content.pop("digest", None)
    path.write_text(yaml.safe_dump(content))
    return content


def unfinish(run):
    for name in ("result.json", "weights.safetensors", "weights.json"):
        (run / name).unlink(missing_ok=True)


def plan(folder, cells, comparison=True):
    """A grid, or a comparison, of which nothing has run."""
    folder.mkdir(exist_ok=True)
    (folder / "grid.yaml").write_text(yaml.safe_dump(cells))
    if comparison:
        judging = build_evaluation_settings().model_dump(mode="json")
        about = {"budget": "epochs", "judging": judging, "command": "", "notes": []}
        (folder / "compare.yaml").write_text(yaml.safe_dump(about))


def lay_out(command, run, model):
    """The folder that a command reads, with this model in its files. `run` is a finished one."""
    config = rewrite(run / "config.yaml", model=model)
    if command in ("train --resume . --quiet", "train --resume . --devices 1"):
        unfinish(run)
    if command not in GRIDS:
        return run
    folder = run.parent / "grid"
    if GRIDS[command] == "finished":
        shutil.copytree(run, folder / "single-seed0")
        (folder / "single-seed0/judgement.json").write_text("{}")
        plan(folder, {"single-seed0": config | {"model": "mlp"}})
    else:
        plan(folder, {"single-seed0": config}, comparison=GRIDS[command] == "comparison")
    return folder


GRIDS = {
    "train --resume . --workers 1": "grid",
    "compare --resume . --workers 1": "comparison",
    "compare --resume . --workers 1 ": "finished",
}
COMMANDS = [
    "predict . ../digit.npz",
    "evaluate .",
    "train --resume . --quiet",
    "train --config config.yaml --quiet --out ../new",
    "train --config config.yaml --seeds 2 --out ../new",
    "compare --config config.yaml --methods single --seeds 1 --workers 1 --out ../new",
    *GRIDS,
]


REPRESENTATIVES = [COMMANDS[0], COMMANDS[3], *list(GRIDS)[:2]]
"""Commands that read a run, a configuration, a grid and a comparison: they are tried with every attack."""
ATTACKED = [
    (command, attack)
    for command in COMMANDS
    for attack, model in ATTACKS.items()
    if command in REPRESENTATIVES or model["name"] in OF_ALL_KINDS
]


@pytest.mark.parametrize(("command", "attack"), ATTACKED)
def test_nothing_in_a_file_runs(command, attack, pluribus, a_copy, work, monkeypatch):
    """Neither without consent nor with it, and also in the folder itself with that on the path, as `python -m` puts it."""
    model = ATTACKS[attack]
    folder = lay_out(command, a_copy("digits"), model)
    (folder / "package").mkdir()
    for place in (folder / "payload.py", folder / "package/payload.py"):
        place.write_text(PAYLOAD)
    (folder / "payload.pkl").write_bytes(pickle.dumps(Payload()))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    before = digest(work)
    typed = [f" --model '{model['name']}'"] if model["name"] in OF_ALL_KINDS else []
    for consent in ("", " --trust", *typed):
        answer = pluribus(command + consent)
        assert answer.code == 2, answer
        assert answer.err.splitlines()[-1].startswith("pluribus: ")
        assert "Traceback" not in answer.err
        assert "\x1b" not in answer.err
        after = digest(work)
        assert not any("sprung" in name for name in after), consent
        if GRIDS.get(command) != "finished":  # there, a finished run is evaluated, and the refusal is recorded
            assert after == before
    assert not {"payload", "package", "package.payload"} & set(sys.modules)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_refusal_says_how_to_consent(command, pluribus, a_copy, work, monkeypatch):
    monkeypatch.chdir(lay_out(command, a_copy("digits"), {"name": "nets:build", "hidden": 5}))
    name = "grid.yaml" if GRIDS.get(command) in ("grid", "comparison") else "config.yaml"
    sentence = f"{name} names the network nets:build, which would run code|repeat it with --model nets:build, or pass --trust"
    answer = pluribus(command)
    assert answer.code == 2, answer
    for piece in sentence.split("|"):
        assert piece in answer.err.splitlines()[-1]
    if "--config" not in command:  # there, --model chooses another network
        assert pluribus(f"{command} --model nets:other").err == answer.err


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A finished run of the user's own network, and the folder that holds its module."""
    folder = tmp_path_factory.mktemp("own")
    nets(folder)
    line = "train --data digits --rows 64 --epochs 1 --batch-size 32 --model nets:build:hidden=5 --quiet --out"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert call_pluribus(*line.split(), "run") == 0
    return folder


@pytest.fixture
def mine(own, work):
    shutil.copytree(own, work, dirs_exist_ok=True)
    return work / "run"


@pytest.mark.parametrize("consent", ["--model nets:build", "--model nets:build:hidden=3", "--trust"])
def test_with_consent_ones_own_network_is_found(consent, mine, pluribus, work):
    np.savez(work / "digit.npz", x=np.zeros((1, 1, 8, 8), np.uint8))
    assert pluribus(f"predict run digit.npz {consent}").code == 0
    assert pluribus(f"evaluate run --no-cost {consent}").code == 0
    unfinish(mine)
    answer = pluribus(f"train --resume run --quiet {consent}")
    assert answer.code == 0, answer
    assert f"pluribus evaluate run {consent.removesuffix(':hidden=3')}  " in answer.out, "the next command consents, too"
    assert (mine / "result.json").is_file()


def test_a_finished_run_is_shown_without_consent(mine, pluribus):
    """Nothing is built to show a result."""
    assert pluribus("train --resume run").code == 0


def test_both_runs_of_an_evaluation_need_consent(mine, pluribus, a_copy, work):
    (work / "others.py").write_text((work / "nets.py").read_text())
    shutil.copytree(mine, work / "base")
    rewrite(work / "base/config.yaml", model={"name": "others:build", "hidden": 5})
    line = "evaluate run --base base --corruptions standard --shift-rows 5 --no-cost --model nets:build"
    check(pluribus(line), "base/config.yaml names the network others:build")
    answer = pluribus(f"{line} --model others:build")
    sys.modules.pop("others", None)
    assert answer.code == 0, answer


def test_repeating_a_factory_keeps_its_options_in_the_file(mine, pluribus, work):
    assert pluribus("train --config run/config.yaml --model nets:build --quiet --out again").code == 0
    assert yaml.safe_load((work / "again/config.yaml").read_text())["model"] == {"name": "nets:build", "hidden": 5}
    assert pluribus("train --config run/config.yaml --model nets:build:hidden=3 --quiet --out other").code == 0
    assert yaml.safe_load((work / "other/config.yaml").read_text())["model"] == {"name": "nets:build", "hidden": 3}


@pytest.mark.parametrize("trust", ["nets:build", ["other:net", "nets:build"], True])
def test_functions_that_read_a_run_take_trust_in_python(trust, mine, work, monkeypatch):
    monkeypatch.chdir(work)
    np.savez("digit.npz", x=np.zeros((1, 1, 8, 8), np.uint8))
    calls = [lambda **how: list(predict_files(mine, [Path("digit.npz")], **how)), lambda **how: evaluate_run(mine, **how)]
    for call in calls:
        for refused in ({}, {"trust": "nets:other"}):
            with pytest.raises(ConsentError, match=r'names the network nets:build.*trust="nets:build"'):
                call(**refused)
        assert call(trust=trust)
    assert not get_consent().names, "consent ends with the call"


@pytest.mark.parametrize(
    "command", ["train --config run/config.yaml --seeds 2 --out new --trust", "train --resume grid --trust"]
)
def test_a_grid_with_a_factory_that_cannot_be_imported_does_not_begin(command, mine, pluribus, work):
    config = rewrite(mine / "config.yaml", model={"name": "nets:missing"})
    plan(work / "grid", {"single-seed0": config}, comparison=False)
    before = digest(work)
    check(pluribus(command), "the module nets has no 'missing'")
    assert digest(work) == before


@pytest.mark.parametrize(
    "line", ["predict run x.npz --model mlp", "evaluate run --model mlp", "train --resume run --model mlp"]
)
def test_consent_is_to_a_factory_and_to_no_other_model(line, pluribus, a_copy):
    a_copy("digits")
    check(pluribus(line), "--model repeats the network package.module:factory of what is read, got 'mlp'")


def test_consent_reaches_the_workers_which_take_nothing_from_the_folder(mine, work, tmp_path):
    """A worker, a new process, imports the user's module from the user's path. The working folder is the comparison, which
    holds a module of the same name, and others with the names of libraries, such as the one that starts workers. The process
    that starts the worker is forked: test_wrong_input.py has a new one in a folder with such modules."""
    config = rewrite(mine / "config.yaml")
    folder = work / "comparison"
    plan(folder, {"single-seed0": config})
    for name in ("nets", "joblib", "tensorboard", "typer", "yaml", "lightning", "pandas"):
        (folder / f"{name}.py").write_text(f"open({str(work / 'sprung')!r}, 'w').close()\nraise SystemExit('sprung')")
    path = os.pathsep.join([str(work), *filter(None, [os.environ.get("PYTHONPATH")])])
    words = ["compare", "--resume", ".", "--workers", "2", "--model", "nets:build"]
    printed = tmp_path / "printed"
    with printed.open("w") as file:
        child = fork_pluribus(
            *(words, folder),
            output=file.fileno(),
            environment={"PYTHONPATH": path},
            prepare=lambda: sys.path.insert(0, str(work)),  # as PYTHONPATH does in a new process
        )
        child.join(300)
    assert child.exitcode == 0, printed.read_text()
    assert not (work / "sprung").exists()
    assert (folder / "report.html").is_file()
    assert (folder / "single-seed0/judgement.json").is_file()


# --- names that files give ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["train --resume grid", "compare --resume grid --workers 1"])
@pytest.mark.parametrize(
    "name", ["../../elsewhere", "{work}/elsewhere", "..", ".", "", ".hidden", "a/b", "a\nb", "a\0b", 300 * "a"]
)
def test_a_cell_never_leaves_its_grid(command, name, pluribus, a_copy, work, tmp_path):
    config = rewrite(a_copy("digits") / "config.yaml")
    plan(work / "grid", {name.format(work=work): config})
    before = digest(tmp_path)
    check(pluribus(command), "a name in grid.yaml must have at most 200 letters")
    assert digest(tmp_path) == before


@pytest.mark.parametrize("link", ["grid/single-seed0", "grid/single-seed0/checkpoints", "grid/single-seed0/.lock"])
def test_a_link_in_a_folder_leads_no_writing_elsewhere(link, pluribus, a_copy, work):
    config = rewrite(a_copy("digits") / "config.yaml")
    plan(work / "grid", {"single-seed0": config}, comparison=False)
    target = work / "mine"
    target.touch() if link.endswith(".lock") else target.mkdir()
    (work / link).parent.mkdir(exist_ok=True)
    (work / link).symlink_to(target)
    answer = pluribus("train --resume grid")
    assert answer.code == 2, answer
    assert "a link leads to" in answer.err
    assert not target.is_dir() or not list(target.iterdir())


def test_a_file_makes_nothing_download_or_write_elsewhere(pluribus, a_copy, work, monkeypatch):
    """`data_dir` and `data` of a file are read alone."""
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("it connected"))
    monkeypatch.setattr("subprocess.Popen.__init__", lambda *_, **__: pytest.fail("it started a program"))
    run = a_copy("digits")
    rewrite(run / "config.yaml", data={"name": "mnist"}, data_dir=str(work / "elsewhere"))
    before = digest(work)
    check(pluribus("evaluate run"), "mnist is not complete in")
    unfinish(run)
    check(pluribus("train --resume run"), "mnist is not complete in")
    assert not (work / "elsewhere").exists()
    assert set(before) - set(digest(work)) <= {"run/result.json", "run/weights.safetensors", "run/weights.json"}


def test_a_picture_starts_no_program(pluribus, a_copy, work, monkeypatch):
    """Pillow hands PostScript to Ghostscript, whatever the file is called."""
    from PIL import EpsImagePlugin

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: pytest.fail("it started Ghostscript"))
    a_copy("digits")
    Path(work / "digit.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n%%EOF\n")
    check(pluribus("predict run digit.png"), "digit.png cannot be read as an image")


@pytest.mark.slow  # test_wrong_input.py and the workers' test above have such modules, too
def test_the_module_takes_nothing_from_the_working_folder_once_it_runs(process, a_copy):
    run = a_copy("digits")
    for name in ("typer", "yaml", "lightning", "pandas"):
        (run / f"{name}.py").write_text("open('sprung', 'w').close()\nraise SystemExit('sprung')")
    answer = process("evaluate . --no-cost", cwd=run)
    assert answer.code == 0, answer
    assert not (run / "sprung").exists()


def test_a_run_folder_contains_what_the_page_lists(pluribus, a_copy, work):
    page = (Path(__file__).parents[2] / "SECURITY.md").read_text().partition("## What a run folder may contain")[2]
    listed = re.findall(r"`([^`\s]+)`", page)
    run = a_copy("digits")
    config = rewrite(run / "config.yaml")
    assert pluribus("evaluate run --no-cost").code == 0
    plan(work / "grid", {"single-seed0": config})
    assert pluribus("compare --resume grid --workers 1").code == 0
    for folder in (run, work / "grid/single-seed0"):
        for file in folder.rglob("*"):
            assert any(file.match(name) for name in listed) or f"{file.name}/" in listed or "tensorboard" in file.parts, file
    for file in (work / "grid").iterdir():
        named = file.name in listed or file.name.startswith(("results.", "picture.", "report."))
        assert named or file.is_dir(), file
