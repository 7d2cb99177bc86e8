"""What must hold for a checkpoint before a run goes on from it.

A digest says that a file is as it was written, not who wrote it. So the parts that this library reads are checked by type here,
and an error that Lightning or an optimiser raises because of the other parts is explained.
"""

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from ..core.ensemble import Ensemble
from ..core.errors import FileError, PluribusError
from ..core.spec import Spec
from ..core.texts import quote, shorten
from .checkpoint_files import read_checkpoint
from .lightning_module import BINDING, TrainingModule
from .settings import Settings

CURE = "remove it, and resume from the one before"


def check_checkpoint(checkpoint: Path, ensemble: Ensemble, settings: Settings, teacher: str | None = None) -> None:
    """Raise FileError if the checkpoint is of another method, network or way of training, before anything is changed.

    `teacher` is the digest of the teacher, if there is one.
    """
    state = read_checkpoint(checkpoint)
    check_types(checkpoint, state)
    was, now = Spec.from_json(state["pluribus"]["spec"]), ensemble.spec  # an older version had fewer options
    if was != now:
        raise FileError(
            f"the checkpoint {checkpoint} is of {was}, not of {now}: resume with the same method, or begin in another folder"
        )
    kept = state["pluribus"]["settings"]
    strange = next((name for name in kept if name not in BINDING), None)
    if strange is not None:
        raise FileError(f"{checkpoint} is no checkpoint of a run, it keeps a setting {quote(strange)}: {CURE}")
    for name, was in kept.items():
        if was != getattr(settings, name):
            raise FileError(
                f"the checkpoint {checkpoint} was made with {name} {quote(was)}, not {getattr(settings, name)!r}: resume with "
                "the same settings, or begin in another folder"
            )
    check_teacher(checkpoint, state["pluribus"].get("teacher"), teacher)
    own = {f"ensemble.{name}": (value.shape, value.is_floating_point()) for name, value in ensemble.state_dict().items()}
    if own != {name: (value.shape, value.is_floating_point()) for name, value in state["state_dict"].items()}:
        raise FileError(f"the checkpoint {checkpoint} is of another network: resume with that one, or begin in another folder")


def check_teacher(checkpoint: Path, was: Any, now: str | None) -> None:
    """Raise FileError unless the digest of the teacher is the one in the checkpoint; None stands for no teacher."""
    if was == now:
        return
    if was is None:
        raise FileError(
            f"the checkpoint {checkpoint} is of a run without a teacher: resume without one, or begin in another folder"
        )
    if now is None:
        raise FileError(f"the checkpoint {checkpoint} is of a run with a teacher: pass the same teacher again")
    raise FileError(f"the checkpoint {checkpoint} is of a run with another teacher: pass the same one, with the same weights")


def check_types(checkpoint: Path, state: dict[str, Any]) -> None:
    """Raise FileError unless every part of the state that this library reads is of its type."""
    about = state.get("pluribus")
    about = about if isinstance(about, dict) else {}
    loss, history = about.get("epoch_loss"), about.get("history")
    fits = {
        "state_dict": _maps(state.get("state_dict"), Tensor),
        "global_step": _is_count(state.get("global_step")),
        "loops": _holds_counts(state.get("loops")),
        "optimizer_states": isinstance(state.get("optimizer_states"), list),
        "lr_schedulers": isinstance(state.get("lr_schedulers"), list),
        "epoch_loss": isinstance(loss, list) and len(loss) == 2 and all(map(_is_number, loss)),
        "history": isinstance(history, list) and all(_maps(row, int | float) and "step" in row for row in history),
        "scores": _maps(about.get("scores"), int | float),
        "spec": isinstance(about.get("spec"), dict),
        "settings": _maps(about.get("settings"), object),
        "steps": _is_count(about.get("steps")),
    }
    wrong = next((name for name, fit in fits.items() if not fit), None)
    if wrong is not None:
        raise FileError(f"{checkpoint} is no checkpoint of a run, its {wrong} is not what a run writes: {CURE}")


@contextlib.contextmanager
def explain_restoring(checkpoint: Path | None, module: TrainingModule) -> Iterator[None]:
    """Raise FileError in place of an error that comes before the first step is done, unless the network itself raised it."""
    try:
        yield
    except PluribusError:
        raise
    except Exception as error:
        if checkpoint is None or module.has_stepped or module.is_computing:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileError(f"the run cannot go on from {checkpoint} ({shorten(reason, 200)}): {CURE}") from error


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _maps(value: Any, kind: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) and isinstance(entry, kind) for key, entry in value.items())


def _holds_counts(value: Any) -> bool:
    """Whether nested mappings of texts hold whole numbers and truth values alone, as the progress of Lightning's loops is."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _holds_counts(entry) for key, entry in value.items())
    return isinstance(value, bool) or _is_count(value)
