"""Importing a user's own network, `package.module:factory`: from the user's own path, and only what can build a network.

What a name may import is checked before the code runs, as far as it can be known: a module of the standard library, a module
that lies in a folder which is being read as data, and a function that builds no network are refused.
"""

import contextlib
import difflib
import functools
import importlib
import importlib.util
import inspect
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from ..core.errors import PluribusError

NAME = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<factory>[^\W\d]\w*)")
REQUIRED = frozenset(
    {
        *("pluribus", "torch", "numpy", "safetensors", "lightning", "pydantic", "yaml", "typer", "click", "rich", "joblib"),
        *("cloudpickle", "filelock", "sklearn", "scipy", "pandas", "pyarrow", "PIL", "pooch", "plotly", "jinja2", "matplotlib"),
        *("dask", "distributed", "ray", "tensorboard", "fsspec", "pip", "setuptools", "pkg_resources", "pytest"),
    }
)
"""Packages whose functions are no factories: some unpickle, download or run what they are given."""

_data_folders: ContextVar[tuple[Path, ...]] = ContextVar("data_folders", default=())


class ModelError(PluribusError, ValueError):
    """There is no such network, or it does not fit the data."""


@contextlib.contextmanager
def treat_as_data(folder: Path) -> Iterator[None]:
    """Meanwhile, import no factory from this folder: it is being read, and holds data."""
    token = _data_folders.set((*_data_folders.get(), folder))
    try:
        yield
    finally:
        _data_folders.reset(token)


def import_factory(name: str) -> Callable[..., nn.Module]:
    """Import the factory `package.module:factory`; modules in the working folder are found too, unless that is read as data.

    Returns: a subclass of nn.Module, or a Python function that may return a network. It has not been called.
    Raises: ModelError if there is no such factory, or if it must not be imported.
    """
    module, attribute = split_factory_name(name)
    content = _import_module(name, module)
    if not hasattr(content, attribute):
        near = difflib.get_close_matches(attribute, dir(content), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "name a function or class in it that returns the network"
        raise ModelError(f"the module {module} has no {attribute!r}: {hint}")
    found = getattr(content, attribute)
    _check_factory(name, found)
    return found


def split_factory_name(name: str) -> tuple[str, str]:
    """The module and the factory of a name. Raises ModelError if no factory can have this name.

    >>> split_factory_name("package.module:factory")
    ('package.module', 'factory')
    """
    parts = NAME.fullmatch(name)
    if parts is None:
        raise ModelError(f"a network of your own is written package.module:factory, got {name!r}")
    steps = parts["module"].split(".")
    if steps[0] in sys.stdlib_module_names:
        raise ModelError(f"{name} must be a network of your own, and {steps[0]} is a module of Python: name another module")
    if "__main__" in steps:
        raise ModelError(f"{name} must be in a module that can be imported, and __main__ is a script: name another module")
    return parts["module"], parts["factory"]


def _import_module(name: str, module: str) -> ModuleType:
    """Import a module and the packages around it, one after another: each is located before its code runs."""
    top = module.partition(".")[0]
    folders = _data_folders.get()
    if "" not in sys.path and not _find_folder(Path.cwd()):
        sys.path.insert(0, "")
    content = None
    try:
        with _search_outside(folders):
            for step in itertools.accumulate(module.split("."), "{}.{}".format):
                folder = _find_folder(_locate(step))
                if folder is not None:
                    raise _describe_data(name, step, folder)
                content = importlib.import_module(step)
    except ModelError:
        raise
    except (Exception, SystemExit) as error:  # a script may end itself when it is imported
        folder = _find_folder_of_hidden(top) if isinstance(error, ModuleNotFoundError) and error.name == top else None
        if folder is not None:
            raise _describe_data(name, top, folder) from None
        raise ModelError(f"cannot import {module!r} for the network {name}: {type(error).__name__}: {error}") from error
    assert content is not None
    return content


def _find_folder_of_hidden(top: str) -> Path | None:
    """The folder of data that holds a module which is on the path or in the working folder, and was not looked for there."""
    for entry in ["", *sys.path]:
        folder = _find_folder(Path(entry))
        if folder is not None and ((Path(entry) / top).is_dir() or (Path(entry) / f"{top}.py").is_file()):
            return folder
    return None


def _describe_data(name: str, module: str, folder: Path) -> ModelError:
    return ModelError(
        f"{name} must be on your own path, and {module} lies in {folder}, which is data and never code: "
        "if it is yours, move it out of there, into the folder that you work in"
    )


def _locate(module: str) -> Path | None:
    """The file of a module whose parent is imported already; None if it has none. Raises ImportError if it is not found."""
    if module in sys.modules:
        file = getattr(sys.modules[module], "__file__", None)
        return Path(file) if file else None
    spec = importlib.util.find_spec(module)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    return Path(spec.origin) if spec.origin and spec.has_location else None


def _find_folder(path: Path | None) -> Path | None:
    """The folder of data that a path lies in, by its name or where its links lead; None if it lies in none."""
    if path is None:
        return None
    places = {Path(os.path.abspath(path)), path.resolve()}
    for folder in _data_folders.get():
        roots = {Path(os.path.abspath(folder)), folder.resolve()}
        if any(place.is_relative_to(root) for place in places for root in roots):
            return folder
    return None


@contextlib.contextmanager
def _search_outside(folders: tuple[Path, ...]) -> Iterator[None]:
    """Meanwhile, look for modules outside these folders alone, also for those that the imported code imports."""
    removed = [entry for entry in sys.path if folders and _find_folder(Path(entry or "."))]
    before = list(sys.path)
    if removed:
        sys.path[:] = [entry for entry in before if entry not in removed]
    try:
        yield
    finally:
        if removed:  # what the imported code added stays
            sys.path[:] = [*before, *(entry for entry in sys.path if entry not in before)]


def _check_factory(name: str, found: Any) -> None:
    """Raise ModelError unless this is a class of networks or a Python function that may return one."""
    if not callable(found):
        raise ModelError(f"{name} must be something to call, got {type(found).__name__}")
    kind = inspect.unwrap(found.func if isinstance(found, functools.partial) else found)
    if inspect.isclass(kind):
        if not issubclass(kind, nn.Module):
            raise ModelError(f"{name} must be a class of networks, and {kind.__name__} is no subclass of nn.Module")
        return
    if not inspect.isfunction(kind):
        raise ModelError(f"{name} must be a Python function or class that returns an nn.Module, got {type(kind).__name__}")
    home = str(kind.__module__).partition(".")[0]
    if home in REQUIRED or home in sys.stdlib_module_names:
        raise ModelError(
            f"{name} must be a factory of your own, and {kind.__name__} is a function of {home}: name a class of networks, or "
            "write a function that returns the network"
        )
    result = kind.__annotations__.get("return", nn.Module)
    if result is None or (inspect.isclass(result) and not issubclass(result, nn.Module) and not issubclass(nn.Module, result)):
        raise ModelError(f"{name} must return an nn.Module, and says that it returns {getattr(result, '__name__', result)}")
