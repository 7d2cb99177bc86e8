"""A user's own network is imported from the user's own path, and what can be no network is refused before it is called."""

import functools
import os
import sys
from pathlib import Path

import pytest
from torch import nn

from pluribus.models.factories import ModelError, import_factory, treat_as_data

NETS = """
import functools, os, runpy, torch
from os import system
from runpy import run_path
from torch import nn

class Net(nn.Linear): ...
class Other: ...
def build(inputs, outputs, width=8): return nn.Linear(inputs, outputs)
def annotated() -> nn.Linear: ...
def text() -> str: ...
def nothing() -> None: ...
cached = functools.lru_cache(build)
wide = functools.partial(build, width=64)
caller = functools.partial(os.system, "touch sprung")
class Callable:
    def __call__(self): ...
instance = Callable()
number = 3
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working folder, and no modules in memory that were imported from it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None) or getattr(sys.modules[name], "__path__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("name", ["Net", "build", "annotated", "cached", "wide"])
def test_classes_of_networks_and_functions_are_factories(name, place):
    (place / "own_nets.py").write_text(NETS)
    assert import_factory(f"own_nets:{name}") is getattr(sys.modules["own_nets"], name)


def test_a_class_of_torch_is_a_factory():
    assert import_factory("torch.nn:Linear") is nn.Linear


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_nets:Other", "is no subclass of nn.Module"),
        ("own_nets:system", "got builtin_function_or_method"),
        ("own_nets:run_path", "run_path is a function of runpy"),
        ("own_nets:caller", "got builtin_function_or_method"),
        ("own_nets:instance", "got Callable"),
        ("own_nets:torch", "must be something to call, got module"),
        ("own_nets:number", "must be something to call, got int"),
        ("own_nets:text", "says that it returns str"),
        ("own_nets:nothing", "says that it returns None"),
        ("own_nets:bild", "did you mean 'build'"),
        ("own_nets:torch.load", "is written package.module:factory"),
        ("own_nets:build:width", "is written package.module:factory"),
        ("own_nets:", "is written package.module:factory"),
        (":build", "is written package.module:factory"),
        ("own_nets:build\n", "is written package.module:factory"),
        ("../own_nets:build", "is written package.module:factory"),
        ("own_nets.py:build", "cannot import 'own_nets.py'"),
        ("os:system", "os is a module of Python"),
        ("os.path:join", "os is a module of Python"),
        ("subprocess:Popen", "subprocess is a module of Python"),
        ("runpy:run_path", "runpy is a module of Python"),
        ("builtins:exec", "builtins is a module of Python"),
        ("importlib:import_module", "importlib is a module of Python"),
        ("posix:system", "posix is a module of Python"),
        ("__main__:build", "__main__ is a script"),
        ("pluribus.__main__:main", "__main__ is a script"),
        ("torch:load", "load is a function of torch"),
        ("torch.hub:load", "load is a function of torch"),
        ("torch.os:system", "cannot import 'torch.os'"),
        ("joblib:load", "load is a function of joblib"),
        ("numpy:load", "name a class of networks, or write a function"),
        ("pandas:read_pickle", "read_pickle is a function of pandas"),
        ("yaml:unsafe_load", "unsafe_load is a function of yaml"),
        ("pluribus.models.registry:build", "build is a function of pluribus"),
        ("pluribus.models.factories:import_factory", "import_factory is a function of pluribus"),
        ("pluribus:load", "load is a function of pluribus"),
    ],
)
def test_what_can_be_no_network_is_refused_before_it_is_called(name, message, place):
    (place / "own_nets.py").write_text(NETS)
    with pytest.raises(ModelError, match=message):
        import_factory(name)
    assert not (place / "sprung").exists()


# --- folders that are read as data -------------------------------------------------------------------------------------

PAYLOAD = "open({sprung!r}, 'w').close()\nfrom torch import nn\ndef build(): return nn.Linear(2, 2)\n"


@pytest.fixture
def run(place):
    """A folder that is read, with modules that leave a file when they are imported."""
    folder = place / "run"
    (folder / "package").mkdir(parents=True)
    for name in ("payload.py", "package/__init__.py", "package/payload.py"):
        (folder / name).write_text(PAYLOAD.format(sprung=str(place / "sprung")))
    return folder


def refuse(name, run, place):
    with treat_as_data(run), pytest.raises(ModelError, match=r"lies in .*which is data and never code"):
        import_factory(name)
    assert not (place / "sprung").exists()


@pytest.mark.parametrize("name", ["payload:build", "package:build", "package.payload:build"])
@pytest.mark.parametrize("on_path", [False, True])
def test_no_module_of_a_folder_that_is_read_is_imported_in_it(name, on_path, run, place, monkeypatch):
    monkeypatch.chdir(run)
    if on_path:
        sys.path.insert(0, "")
    refuse(name, run, place)
    refuse(name, Path(), place)


@pytest.mark.parametrize("name", ["run.payload:build", "run.package.payload:build"])
def test_no_module_of_a_folder_that_is_read_is_imported_from_outside(name, run, place):
    refuse(name, run, place)


def test_the_working_folder_may_lie_in_the_folder_that_is_read(run, place, monkeypatch):
    monkeypatch.chdir(run / "package")
    refuse("payload:build", run, place)


def test_links_hide_no_module(run, place, monkeypatch):
    (place / "linked").symlink_to(run)
    (place / "alias.py").symlink_to(run / "payload.py")
    (place / "outside.py").write_text((run / "payload.py").read_text())
    (run / "inward.py").symlink_to(place / "outside.py")
    refuse("alias:build", run, place)
    refuse("linked.payload:build", run, place)
    monkeypatch.chdir(place / "linked")
    refuse("payload:build", run, place)
    refuse("payload:build", place / "linked", place)
    refuse("inward:build", run, place)


def test_the_users_own_module_is_found_past_the_one_in_the_folder(run, place, monkeypatch):
    """Also for what the module itself imports."""
    mine = place / "mine"
    mine.mkdir()
    (mine / "payload.py").write_text("import helper\nfrom torch import nn\ndef build(): return nn.Linear(3, 3)\n")
    (mine / "helper.py").write_text("")
    (run / "helper.py").write_text((run / "payload.py").read_text())
    monkeypatch.chdir(run)
    sys.path[:0] = [str(run), str(mine)]
    before = list(sys.path)
    with treat_as_data(run):
        assert import_factory("payload:build")().out_features == 3
    assert sys.path == before
    assert not (place / "sprung").exists()


def test_a_module_that_fails_in_its_own_import_is_not_called_data(run, place, monkeypatch):
    (place / "broken.py").write_text("import nowhere_to_be_found\n")
    with treat_as_data(run), pytest.raises(ModelError, match=r"cannot import 'broken'.*nowhere_to_be_found"):
        import_factory("broken:build")


def test_partial_and_wrapped_functions_are_looked_through(place):
    (place / "own_nets.py").write_text(NETS + "hidden = functools.wraps(run_path)(lambda *a, **k: run_path(*a, **k))\n")
    assert isinstance(import_factory("own_nets:wide"), functools.partial)
    with pytest.raises(ModelError, match="run_path is a function of runpy"):
        import_factory("own_nets:hidden")
    assert os.getcwd() == str(place)
