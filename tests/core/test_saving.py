"""Files: written whole or not at all, readable, and refused when they are not what they should be."""

import json
import os
import pickle

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import pluribus
from pluribus import BatchEnsemble, DeepEnsemble, FileError, Inner, MCDropout, Mixture, TreeNet, VariationalDropout
from pluribus.core.tensor_files import serialize_tensors
from tests.networks import Backwards, DenseCNN, NestedMLP, ResidualCNN, images, vectors


@pytest.fixture
def saved(tmp_path):
    return pluribus.save(pluribus.ensemble(ResidualCNN(), Inner(copies=3)), tmp_path / "inner")


def test_the_spec_is_readable(saved):
    text = json.loads(saved.with_suffix(".json").read_text())
    assert text["spec"]["method"] == "inner"
    assert text["spec"]["copies"] == 3
    assert text["tensors"]["net.stem.0.weights"] == "float32 [3, 8, 3, 3, 3]"
    assert saved.name == "inner.safetensors"


def test_the_weights_file_is_complete_in_itself(saved):
    saved.with_suffix(".json").unlink()
    assert pluribus.load(saved, ResidualCNN()).spec == Inner(copies=3)
    assert pluribus.load(saved.with_suffix(""), ResidualCNN()).spec == Inner(copies=3)


@pytest.mark.parametrize(
    "spec",
    [
        DeepEnsemble(2, of=Mixture(members=2, parameters=2.5)),
        Inner(include=(nn.Linear, "stem")),
        BatchEnsemble(exclude=nn.Linear),
    ],
    ids=str,
)
def test_any_spec_comes_back(spec, tmp_path):
    ensemble = pluribus.ensemble(ResidualCNN(), spec).eval()
    again = pluribus.load(pluribus.save(ensemble, tmp_path / "x"), ResidualCNN()).eval()
    assert again.spec == spec
    x = images(3)
    assert torch.equal(again(x), ensemble(x))


def test_dtype_task_output_and_settings_come_back(tmp_path):
    ensemble = pluribus.ensemble(NestedMLP(), VariationalDropout(samples=4), task="regression").bfloat16()
    ensemble.samples, ensemble.answer = 9, "zero-mean"
    again = pluribus.load(pluribus.save(ensemble, tmp_path / "x"), NestedMLP())
    assert {p.dtype for p in again.parameters()} == {torch.bfloat16}
    assert (again.task, again.samples, again.answer) == ("regression", 9, "zero-mean")


def test_mixed_dtypes_come_back(tmp_path):
    ensemble = pluribus.ensemble(NestedMLP(), BatchEnsemble(members=2))
    ensemble.net.head.double()
    again = pluribus.load(pluribus.save(ensemble, tmp_path / "x"), NestedMLP())
    assert again.net.head.shared.dtype == torch.double
    assert again.net.stem[1].shared.dtype == torch.float


def test_a_network_with_an_attribute_called_frozen_is_not_taken_for_frozen(tmp_path):
    class Odd(NestedMLP):
        frozen = True

    ensemble = pluribus.ensemble(Odd(), MCDropout(samples=7)).eval()
    again = pluribus.load(pluribus.save(ensemble, tmp_path / "x"), Odd()).eval()
    assert again(vectors(3)).shape[0] == 7


def test_the_readable_file_may_be_named_and_arguments_are_checked(saved):
    assert pluribus.load(saved.with_suffix(".json"), ResidualCNN()).spec == Inner(copies=3)
    with pytest.raises(TypeError, match="a path and the network"):
        pluribus.load(saved, None)


def test_a_derived_spec_does_not_take_its_parents_name():
    class Mine(Inner):
        pass

    assert pluribus.Spec.registry["inner"] is Inner


def test_the_order_of_an_example_comes_back(tmp_path):
    x = torch.randn(3, 4)
    ensemble = pluribus.ensemble(Backwards(), TreeNet(split="body"), example=x).eval()
    again = pluribus.load(pluribus.save(ensemble, tmp_path / "x"), Backwards()).eval()
    assert torch.equal(again(x), ensemble(x))


def test_loading_uses_up_no_random_number(saved):
    net = ResidualCNN()
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    pluribus.load(saved, net)
    assert torch.equal(torch.rand(1), expected)


def test_another_network_is_refused_by_its_first_difference(saved):
    with pytest.raises(
        FileError, match=r"another network: it had\n  \.: ResidualCNN\(\)\nand this one has\n  \.: DenseCNN\(\)"
    ):
        pluribus.load(saved, DenseCNN())
    other = ResidualCNN()
    other.head = nn.Linear(12, 5)
    with pytest.raises(FileError, match=r"out_features=3(.|\n)*out_features=5"):
        pluribus.load(saved, other)
    longer = ResidualCNN()
    longer.extra = nn.ReLU()
    with pytest.raises(FileError, match="modules"):
        pluribus.load(saved, longer)


@pytest.mark.parametrize("keep", [0, 5, 100, 0.5, 0.999])
def test_a_truncated_file_is_refused(saved, keep):
    data = saved.read_bytes()
    saved.write_bytes(data[: keep if isinstance(keep, int) else int(keep * len(data))])
    with pytest.raises(FileError, match="damaged, or no safetensors file"):
        pluribus.load(saved, ResidualCNN())


class Payload:
    ran = False

    def __reduce__(self):
        return (setattr, (Payload, "ran", True))


def test_a_pickle_is_refused_and_does_not_run(tmp_path):
    path = tmp_path / "evil.safetensors"
    path.write_bytes(pickle.dumps(Payload()))
    with pytest.raises(FileError, match="no safetensors file"):
        pluribus.load(path, ResidualCNN())
    assert not Payload.ran


def test_foreign_missing_and_odd_paths_are_refused(saved, tmp_path):
    foreign = tmp_path / "foreign.safetensors"
    save_file({"a": torch.zeros(2)}, foreign)
    with pytest.raises(FileError, match="not of an ensemble"):
        pluribus.load(foreign, ResidualCNN())
    with pytest.raises(FileError, match="there is no file"):
        pluribus.load(tmp_path / "nothing", ResidualCNN())
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        pluribus.load(tmp_path / "folder", ResidualCNN())
    with pytest.raises(FileError, match="cannot write"):
        pluribus.save(pluribus.ensemble(NestedMLP(), Inner()), tmp_path / "no" / "such" / "folder")
    with pytest.raises(TypeError, match="save takes an ensemble"):
        pluribus.save(ResidualCNN(), tmp_path / "plain")


def rewritten(path, about) -> None:
    """With a digest that fits, as somebody who changes a file on purpose would write it."""
    tensors = {"a": torch.zeros(2)}
    if isinstance(about, str):
        save_file(tensors, path, metadata={"pluribus": about})
    else:
        rest = {key: value for key, value in about.items() if key != "digest"}
        path.write_bytes(serialize_tensors(tensors, rest, "pluribus"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "pluribus-9"}, "format 'pluribus-9'"),
        ({"spec": {"method": "magic"}}, "unknown method 'magic'"),
        ({"spec": {"method": "inner", "copies": 1}}, "no options of inner: copies must be at least 2"),
        ({"spec": {"method": "inner", "wings": 2}}, "no option wings"),
        ({}, "has no place in the ensemble|is missing"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(saved, tmp_path, change, said):
    from safetensors import safe_open

    with safe_open(saved, "pt") as opened:
        about = json.loads(opened.metadata()["pluribus"])
    path = tmp_path / "changed.safetensors"
    rewritten(path, about | change)
    with pytest.raises(FileError, match=said):
        pluribus.load(path, ResidualCNN())


@pytest.mark.parametrize("about", ["{", "[]", "3", '{"format": "pluribus-1"}', '{"format": "pluribus-2"}'])
def test_a_broken_description_is_refused(tmp_path, about):
    path = tmp_path / "broken.safetensors"
    rewritten(path, about)
    with pytest.raises(FileError, match="damaged"):
        pluribus.load(path, ResidualCNN())


def test_a_save_that_fails_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left on device"):
        pluribus.save(pluribus.ensemble(ResidualCNN(), Inner(copies=2)), saved)
    assert saved.read_bytes() == before
    assert sorted(path.name for path in saved.parent.iterdir()) == ["inner.json", "inner.safetensors"]


def test_a_plain_state_dict_works_too():
    one, other = (pluribus.ensemble(NestedMLP(), BatchEnsemble(members=2)).eval() for _ in range(2))
    other.load_state_dict(one.state_dict())
    x = vectors(3)
    assert torch.equal(one(x), other(x))
