"""Ensembles on disk: one safetensors file that holds weights and spec, and a JSON file beside it for people.

The safetensors file is complete in itself, so that a save is one atomic rename. `load` builds the ensemble from the network
and the spec, and then fills in the weights. Nothing is unpickled, and nothing named in a file is imported.
"""

import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .ensemble import Ensemble
from .errors import FileError
from .files import write_file
from .members import MemberLayer
from .random_weights import find_random_layers
from .spec import Spec
from .surgery import Subject, describe_structure

FORMAT = "pluribus-1"


def save(ensemble: Ensemble, path: str | os.PathLike[str]) -> Path:
    """Write `path` (the suffix .safetensors is added if missing) and a readable .json beside it."""
    if not isinstance(ensemble, Ensemble):
        raise TypeError(f"save takes an ensemble, got {type(ensemble).__name__}: make one with pluribus.ensemble(net, spec)")
    dump = _safetensors().torch.save
    target = _add_suffix(path)
    tensors, aliases = _distinct(ensemble.state_dict())
    about = {
        "format": FORMAT,
        "spec": ensemble.spec.to_json(),
        "task": ensemble.task,
        "output": ensemble.output,
        "order": ensemble.conversion.order,
        "aliases": aliases,
        "settings": {
            name: {setting: getattr(part, setting) for setting in part.settings} for name, part in _ensembles(ensemble).items()
        },
        "frozen": [f"{name}.frozen" for name, layer in ensemble.named_modules() if _is_frozen_layer(layer)],
        "network": ensemble.conversion.structure,
    }
    write_file(target, dump(tensors, metadata={"pluribus": json.dumps(about)}))
    readable = {key: value for key, value in about.items() if key != "aliases"}
    shapes = {name: f"{str(t.dtype).removeprefix('torch.')} {list(t.shape)}" for name, t in tensors.items()}
    write_file(target.with_suffix(".json"), (json.dumps(readable | {"tensors": shapes}, indent=2) + "\n").encode())
    return target


def load(path: str | os.PathLike[str], net: nn.Module) -> Ensemble:
    """The ensemble in `path`, made from `net`: the same network as when it was saved, with any weights."""
    if not isinstance(net, nn.Module):
        raise TypeError(f"load takes a path and the network, got {type(net).__name__} for the network")
    target = _add_suffix(path)
    about, tensors = _read(target)
    _check_network(target, about["network"], describe_structure(net))
    spec = Spec.from_json(about["spec"])
    devices = {parameter.device for parameter in net.parameters()}
    with torch.random.fork_rng(devices=[d for d in devices if d.type == "cuda"]):  # the draws are overwritten: use up none
        made = spec.convert(Subject(net, None, about["task"], about["output"], about["order"]))
    for name, part in _ensembles(made).items():
        for setting, value in about["settings"].get(name, {}).items():
            if setting in part.settings:
                setattr(part, setting, value)
    _fix_draws(made, {name: tensors[name] for name in about["frozen"] if name in tensors})
    _make_still(made, tensors)
    own = made.state_dict()
    tensors |= {alias: tensors[name] for alias, name in about["aliases"].items() if name in tensors}
    for name in sorted(set(own) ^ set(tensors)):
        where = "is missing from the file" if name in own else "has no place in the ensemble"
        raise FileError(f"{target} does not fit this network: {name} {where}")
    for name, tensor in own.items():
        if tensor.shape != tensors[name].shape:
            raise FileError(
                f"{target} does not fit this network: {name} is {list(tensors[name].shape)} in the file, "
                f"{list(tensor.shape)} here"
            )
    for name, tensor in [*made.named_parameters(), *made.named_buffers()]:
        if name in tensors:
            tensor.data = tensor.data.to(tensors[name].dtype)
    made.load_state_dict(tensors)
    return made


def _fix_draws(ensemble: Ensemble, draws: dict[str, Tensor]) -> None:
    """Make place for the draws of frozen layers."""
    modules = dict(ensemble.named_modules())
    for name, tensor in draws.items():
        layer = modules.get(name.removesuffix(".frozen"))
        if isinstance(layer, MemberLayer):
            device = next(ensemble.parameters()).device
            layer.frozen = torch.empty_like(tensor, device=device)
    for part in _ensembles(ensemble).values():
        frozen = [layer for layer in part.net.modules() if _is_frozen_layer(layer)]
        if part.sampled and frozen:
            part.sampled, part._count = False, len(frozen[0].frozen)  # type: ignore[arg-type]


def _make_still(ensemble: Ensemble, tensors: dict[str, Tensor]) -> None:
    """Make place for the mask of weights that were pruned to their mean."""
    for name, layer in find_random_layers(ensemble).items():
        if f"{name}.still" in tensors:
            layer.still = torch.zeros_like(layer.mu, dtype=torch.bool)


def _is_frozen_layer(layer: nn.Module) -> bool:
    return isinstance(layer, MemberLayer) and getattr(layer, "frozen", None) is not None


def _ensembles(ensemble: Ensemble) -> dict[str, Ensemble]:
    """The ensemble, and those that it is made of."""
    return {name: part for name, part in ensemble.named_modules() if isinstance(part, Ensemble)}


def read_tensors(target: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """What a safetensors file says of itself, and its tensors."""
    safetensors = _safetensors()
    if not target.exists():
        raise FileError(f"there is no file {target}")
    if not target.is_file():
        raise FileError(f"{target} is a folder: name the .safetensors file")
    try:
        with safetensors.safe_open(target, framework="pt") as opened:
            return opened.metadata() or {}, {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise FileError(f"{target} is damaged, or no safetensors file: {error}") from error


def _read(target: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    metadata, tensors = read_tensors(target)
    if "pluribus" not in metadata:
        raise FileError(f"{target} is a safetensors file, but not of an ensemble: pluribus.save writes those")
    try:
        about = json.loads(metadata["pluribus"])
        if about["format"] != FORMAT:
            raise FileError(f"{target} has the format {about['format']!r}; this version of pluribus reads {FORMAT!r}")
        missing = {"spec", "task", "output", "order", "aliases", "settings", "frozen", "network"} - set(about)
    except (json.JSONDecodeError, TypeError, KeyError) as error:
        raise FileError(f"{target} is damaged: its description cannot be read") from error
    if missing:
        raise FileError(f"{target} is damaged: its description lacks {', '.join(sorted(missing))}")
    return about, tensors


def _check_network(target: Path, saved: list[str], here: list[str]) -> None:
    for before, now in zip(saved, here, strict=False):
        if before != now:
            raise FileError(f"{target} was saved from another network: it had\n  {before}\nand this one has\n  {now}")
    if len(saved) != len(here):
        raise FileError(f"{target} was saved from another network: it had {len(saved)} modules, this one has {len(here)}")


def _distinct(state: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Every tensor once, and for tied ones under which name to find them."""
    first: dict[tuple[Any, ...], str] = {}
    tensors, aliases = {}, {}
    for name, tensor in state.items():
        key = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride())
        if tensor.numel() and key in first:
            aliases[name] = first[key]
        else:
            first[key] = name
            tensors[name] = tensor.detach().cpu().contiguous()
    return tensors, aliases


def _add_suffix(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix == ".json":  # the file beside it
        target = target.with_suffix(".safetensors")
    return target if target.suffix == ".safetensors" else target.with_name(target.name + ".safetensors")


def _safetensors() -> Any:
    """The library, or a sentence that says how to get it. `import pluribus` does without."""
    try:
        import safetensors
        import safetensors.torch
    except ImportError as error:
        raise ImportError("saving and loading need safetensors: pip install safetensors") from error
    return safetensors
