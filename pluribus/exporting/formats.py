"""The formats of exported files: how each is written, and how it is run again to compare its answers."""

import contextlib
import io
import keyword
import logging
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.errors import PluribusError
from .program import Program

KEY = "pluribus"
"""Under this name the facts of `facts.py` stand in the metadata of an ONNX file."""
EXTRA_FILE = "pluribus.json"
"""Under this name they stand in a torch program."""
Run = Callable[[Sequence[Tensor]], list[Tensor]]
SUFFIXES = {".onnx": "onnx", ".pt2": "torch"}
MISSING = "the format onnx needs the packages onnx, onnxscript and onnxruntime: pip install 'pluribus[export]'"


class ExportError(PluribusError):
    """An ensemble could not be exported, or the exported file does not give its answers."""


def write_torch(program: Program, inputs: tuple[Tensor, ...], names: Sequence[str], file: Path, facts: str) -> None:
    """Write a program that `torch.export.load` reads, with its facts in an extra file."""
    for name, _ in program.named_modules():
        words = [word for word in name.split(".") if keyword.iskeyword(word)]
        if words:
            place = re.sub(r"^network\.(ensemble\.net\.|nets\.\d+\.)*", "", name)
            raise ExportError(f"torch writes programs in Python, where {words[0]!r} is no name: rename the module {place}")
    torch.export.save(trace(program, inputs), file, extra_files={EXTRA_FILE: facts})


def read_torch(file: Path, names: Sequence[str]) -> Run:
    """The program of a file, to be run."""
    module = torch.export.load(file).module()
    return lambda inputs: list(module(*inputs))


def write_onnx(program: Program, inputs: tuple[Tensor, ...], names: Sequence[str], file: Path, facts: str) -> None:
    """Write an ONNX file with its facts in the metadata."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ExportError(MISSING) from error
    traced = trace(program, inputs)
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it tells of torchvision, which is not needed
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            written = torch.onnx.export(
                traced, input_names=list(names), output_names=list(program.names), dynamo=True, verbose=False
            )
            assert written is not None
            written.model.metadata_props[KEY] = facts
            written.save(file, external_data=False)
    except torch.onnx.OnnxExporterError as error:
        missing = re.findall(r"OpOverload\(op='aten\.(\w+)'", str(error))
        what = f"ONNX lacks the operation {missing[0]}" if missing else "its exporter failed"
        raise ExportError(f"the network cannot be written as ONNX: {what}. Its program of torch (.pt2) may do") from error
    finally:
        logger.setLevel(level)


def read_onnx(file: Path, names: Sequence[str]) -> Run:
    """A session of ONNX Runtime on the CPU, to be run."""
    session = open_session(str(file))

    def run(inputs: Sequence[Tensor]) -> list[Tensor]:
        fed = {name: each.numpy() for name, each in zip(names, inputs, strict=True)}
        return [torch.from_numpy(found) for found in session.run(None, fed)]

    return run


def open_session(source: str | bytes, threads: int | None = None) -> Any:
    """A session of ONNX Runtime on the CPU for a path, or for the bytes of a file, which may then name no other file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # its errors are raised, too
    if threads is not None:
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads use no processor
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


WRITERS: dict[str, Any] = {"onnx": write_onnx, "torch": write_torch}
READERS: dict[str, Any] = {"onnx": read_onnx, "torch": read_torch}


def trace(program: Program, inputs: tuple[Tensor, ...]) -> torch.export.ExportedProgram:
    """The program as a graph that takes any number of rows. Raises ExportError if torch cannot trace the network."""
    shapes = (({0: torch.export.Dim.DYNAMIC},) * len(inputs),)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.export.export(program, inputs, dynamic_shapes=shapes, strict=False)
    except Exception as error:  # whatever the network's own code makes of a tensor without numbers
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ExportError(
            f"torch cannot trace the network for any number of rows: {first}. Its forward must not depend on the numbers in "
            "a tensor, nor turn the number of rows into a Python number"
        ) from error
