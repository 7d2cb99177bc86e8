"""Reading an exported file again: what it says about itself, and its answers by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.errors import FileError
from .facts import read_facts
from .formats import EXTRA_FILE, KEY, SUFFIXES, ExportError, open_session

TRUST = (
    "a .pt2 file may hold pickles, which torch.export.load runs as code: pass --trust (in Python, trust=True) if you know who "
    "wrote {file}, or export the run as .onnx, which holds no code"
)


@dataclass(frozen=True)
class LoadedFile:
    """An exported file. `facts` are those of `facts.py`; `run` takes the tensors of B rows, in the order of the inputs, and the
    names of the answers that are wanted, and returns these."""

    facts: dict[str, Any]
    run: Callable[[Sequence[Tensor], Sequence[str]], dict[str, Tensor]]


def load_file(file: Path, trust: bool = False, threads: int | None = None) -> LoadedFile:
    """Read an .onnx or .pt2 file that `pluribus export` wrote; `threads` of the processor compute its answers.

    Raises: FileError if it is no such file, or is a .pt2 file and `trust` is not given: reading that could run code.

    >>> import pluribus, tempfile
    >>> ensemble = pluribus.ensemble(torch.nn.Linear(4, 3), pluribus.DeepEnsemble(members=2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = pluribus.export(ensemble, Path(folder) / "model.pt2", example=torch.randn(8, 4), classes="abc")
    ...     loaded = load_file(written.path, trust=True)
    >>> loaded.facts["classes"], list(loaded.run([torch.zeros(5, 4)], ["probs"])["probs"].shape)
    (['a', 'b', 'c'], [5, 3])
    """
    if not file.is_file():
        raise FileError(f"{file} is a folder: name a file" if file.is_dir() else f"there is no file {file}")
    kind = SUFFIXES.get(file.suffix.lower())
    if kind is None:
        raise FileError(f"the file must end in .onnx or .pt2, as `pluribus export` writes it, got {file.name}")
    if kind == "torch" and not trust:
        raise FileError(TRUST.format(file=file.name))
    return load_torch(file, threads) if kind == "torch" else load_onnx(file, threads)


def load_onnx(file: Path, threads: int | None) -> LoadedFile:
    """Read an ONNX file. It is passed on as bytes: ONNX Runtime then refuses weights that lie in other files."""
    try:
        session = open_session(file.read_bytes(), threads)
    except ImportError as error:
        raise ExportError("reading .onnx files needs the package onnxruntime: pip install 'pluribus[serve]'") from error
    except Exception as error:  # ONNX Runtime has a class for each way in which a file can be wrong
        reason = str(error).strip().splitlines()[0]
        raise FileError(f"ONNX Runtime cannot read {file}: {reason}") from error
    facts = read_facts(session.get_modelmeta().custom_metadata_map.get(KEY), file)
    inputs = [each["name"] for each in facts["inputs"]]
    check_names(file, "inputs", inputs, [each.name for each in session.get_inputs()])
    check_names(file, "outputs", list(facts["outputs"]), [each.name for each in session.get_outputs()])

    def run(tensors: Sequence[Tensor], wanted: Sequence[str]) -> dict[str, Tensor]:
        fed = {name: each.numpy() for name, each in zip(inputs, tensors, strict=True)}
        found = session.run(list(wanted), fed)
        return {name: torch.from_numpy(each) for name, each in zip(wanted, found, strict=True)}

    return LoadedFile(facts, run)


def load_torch(file: Path, threads: int | None) -> LoadedFile:
    """Read a torch program, which the user trusts."""
    extra = {EXTRA_FILE: ""}
    try:
        program = torch.export.load(file, extra_files=extra).module()
    except Exception as error:  # whatever a damaged archive leads to
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise FileError(f"torch cannot read {file}: {reason}") from error
    facts = read_facts(extra[EXTRA_FILE], file)
    names = list(facts["outputs"])
    if threads is not None:
        torch.set_num_threads(threads)

    def run(tensors: Sequence[Tensor], wanted: Sequence[str]) -> dict[str, Tensor]:
        with torch.inference_mode():
            found = dict(zip(names, program(*tensors), strict=True))
        return {name: found[name] for name in wanted}

    return LoadedFile(facts, run)


def check_names(file: Path, what: str, said: list[str], found: list[str]) -> None:
    """Raise FileError if the file says that it has other inputs or outputs than it has."""
    if said != found:
        raise FileError(
            f"{file} is damaged: it says that its {what} are {', '.join(said)}, and they are {', '.join(found)}: write it "
            "again with `pluribus export`"
        )
