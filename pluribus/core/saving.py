"""Ensembles on disk: one safetensors file that holds weights and spec, and a JSON file beside it for people.

The safetensors file is complete in itself, so that a save is one atomic rename. `load` builds the ensemble from the network
and the spec, and then fills in the weights. Nothing is unpickled, and nothing named in a file is imported. The file carries a
digest of all it holds, which `load` verifies before it builds anything.
"""

import json
import os
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .ensemble import Ensemble
from .errors import FileError, NonFiniteWeights, PluribusError
from .files import write_file
from .members import MemberLayer
from .random_weights import find_random_layers
from .spec import Spec
from .surgery import Subject, describe_structure
from .taking_apart import convert_opened, take_apart
from .target_distribution import describe_head, restore_head
from .tensor_files import import_safetensors, read_described_tensors, serialize_tensors
from .texts import quote
from .weight_checks import check_count, check_description, check_size, check_tensors, count_draws, find_non_finite

FORMAT = "pluribus-2"
FORMAT_WITHOUT_DIGEST = "pluribus-1"


def save(ensemble: Ensemble, path: str | os.PathLike[str]) -> Path:
    """Write `path` (the suffix .safetensors is added if missing) and a readable .json beside it.

    Weights that are NaN or infinite are written with a warning: a diverged network may be worth a look, and its file is
    refused by `load` unless that is asked for. Raises FileError if a file cannot be written.
    """
    if not isinstance(ensemble, Ensemble):
        raise TypeError(f"save takes an ensemble, got {type(ensemble).__name__}: make one with pluribus.ensemble(net, spec)")
    import_safetensors()
    target = _add_suffix(path)
    tensors, aliases = _distinct(ensemble.state_dict())
    about: dict[str, Any] = {
        "format": FORMAT,
        "spec": ensemble.spec.to_json(),
        "task": ensemble.task,
        "output": ensemble.output,
        "class_axis": ensemble.class_axis,
        "batch_axis": ensemble.batch_axis,
        "order": ensemble.conversion.order,
        "apart": list(ensemble.spec.get_takes_apart()),
        "aliases": aliases,
        "settings": {
            name: {setting: getattr(part, setting) for setting in part.settings} for name, part in _ensembles(ensemble).items()
        },
        "frozen": [f"{name}.frozen" for name, layer in ensemble.named_modules() if _is_frozen_layer(layer)],
        "network": ensemble.conversion.structure,
    } | describe_head(ensemble.conversion.base)
    check_size(target, ensemble.spec)  # `load` would refuse the file
    for part in about["settings"].values():
        check_count(target, "samples", part.get("samples"))
    broken = find_non_finite(ensemble, tensors)
    if broken is not None:
        warnings.warn(
            f"{broken} holds NaN or infinite weights: the network has diverged, and pluribus.load will refuse {target} without "
            "allow_nonfinite=True",
            stacklevel=2,
        )
    write_file(target, serialize_tensors(tensors, about, "pluribus"))
    readable = {key: value for key, value in about.items() if key != "aliases"}
    shapes = {name: f"{str(t.dtype).removeprefix('torch.')} {list(t.shape)}" for name, t in tensors.items()}
    write_file(target.with_suffix(".json"), (json.dumps(readable | {"tensors": shapes}, indent=2) + "\n").encode())
    return target


def load(path: str | os.PathLike[str], net: nn.Module, *, allow_nonfinite: bool = False) -> Ensemble:
    """The ensemble in `path`, made from `net`: the same network as when it was saved, with any weights.

    Args:
        allow_nonfinite: load weights that are NaN or infinite, too, to look at a network that has diverged.

    Raises:
        FileError: the file is damaged, does not fit `net`, or holds weights that are NaN or infinite.
    """
    if not isinstance(net, nn.Module):
        raise TypeError(f"load takes a path and the network, got {type(net).__name__} for the network")
    target = _add_suffix(path)
    about, tensors = _read(target)
    try:
        net = restore_head(net, about)
    except FileError as error:
        raise FileError(f"{target} is damaged: {error}") from None
    net = take_apart(net, tuple(about.get("apart", ())))
    _check_network(target, about["network"], describe_structure(net))
    made = _build(target, about, net)
    _fix_draws(target, made, {name: tensors[name] for name in about["frozen"] if name in tensors})
    _make_still(made, tensors)
    tensors |= {alias: tensors[name] for alias, name in about["aliases"].items() if name in tensors}
    check_tensors(target, made.state_dict(), tensors)
    broken = None if allow_nonfinite else find_non_finite(made, tensors)
    if broken is not None:
        raise NonFiniteWeights(
            f"{target} holds a network that has diverged: {broken} has NaN or infinite numbers; train it again, with a lower "
            "learning rate, say (pluribus.load(…, allow_nonfinite=True) loads it nevertheless)"
        )
    for name, tensor in [*made.named_parameters(), *made.named_buffers()]:
        if name in tensors:
            tensor.data = tensor.data.to(tensors[name].dtype)
    made.load_state_dict(tensors)
    return made


def _build(target: Path, about: dict[str, Any], net: nn.Module) -> Ensemble:
    """The ensemble that the description tells of, before it has its weights."""
    spec = Spec.from_json(about["spec"])
    check_size(target, spec)
    names = {name for name, _ in net.named_modules()}
    unknown = [name for name in about["order"] or () if name not in names]
    if unknown:
        raise FileError(f"{target} is damaged: its order names {quote(unknown[0])}, and the network has no such module")
    devices = {parameter.device for parameter in net.parameters()}
    try:
        with torch.random.fork_rng(devices=[d for d in devices if d.type == "cuda"]):  # the draws are overwritten: use up none
            axes = about.get("class_axis", 1), about.get("batch_axis", 0)
            subject = Subject(net, None, about["task"], about["output"], about["order"], *axes)
            made = convert_opened(spec, subject)
        for name, part in _ensembles(made).items():
            for setting, value in about["settings"].get(name, {}).items():
                check_count(target, setting, value)
                if setting in part.settings:
                    setattr(part, setting, value)
    except FileError:
        raise
    except (PluribusError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise FileError(f"{target} does not fit this network: {' '.join(str(error).split())}") from error
    return made


def _fix_draws(target: Path, ensemble: Ensemble, draws: dict[str, Tensor]) -> None:
    """Make place for the draws of frozen layers. Raises FileError if those of one ensemble are not of one number of members."""
    modules = dict(ensemble.named_modules())
    for name, tensor in draws.items():
        layer = modules.get(name.removesuffix(".frozen"))
        if isinstance(layer, MemberLayer):
            device = next(ensemble.parameters()).device
            layer.frozen = torch.empty_like(tensor, device=device)
    for part in _ensembles(ensemble).values():
        frozen = [layer.frozen for layer in part.net.modules() if _is_frozen_layer(layer)]
        if part.sampled and frozen:
            part.sampled, part._count = False, count_draws(target, frozen)  # type: ignore[arg-type]


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


def _read(target: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    formats, hint = (FORMAT, FORMAT_WITHOUT_DIGEST), "not of an ensemble: pluribus.save writes those"
    about, tensors = read_described_tensors(target, "pluribus", formats, hint)
    if about["format"] == FORMAT and "digest" not in about:
        raise FileError(f"{target} is damaged: its description lacks digest")
    check_description(target, about)
    if "digest" not in about:
        warnings.warn(
            f"{target} was written by an older version, without a digest: damage to it would not be noticed. Save it again",
            stacklevel=3,
        )
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
