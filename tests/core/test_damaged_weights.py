"""Files of weights are not trusted: one flipped bit, a wrong type, a number that is none, and `load` refuses in a sentence."""

import contextlib
import json
import struct

import pytest
import torch
from safetensors import safe_open
from torch import nn

import pluribus
from pluribus import DeepEnsemble, FileError, MCDropout, Spec, Variance, VariationalDropout
from pluribus.core.tensor_files import serialize_tensors

from ..networks import Masked


def small_net():
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Dropout(0.5), nn.Linear(5, 3))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    torch.manual_seed(0)
    return pluribus.save(pluribus.ensemble(small_net(), Variance(samples=3)), tmp_path_factory.mktemp("weights") / "saved")


def read(path):
    with safe_open(path, "pt") as opened:
        about = json.loads(opened.metadata()["pluribus"])
        return about, {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118


@pytest.fixture
def change(saved, tmp_path):
    """Writes the file anew with other entries or tensors and a digest that fits, as somebody would who means harm."""

    def write(about=(), tensors=(), without=()):
        old, weights = read(saved)
        new = {key: value for key, value in (old | dict(about)).items() if key not in ("digest", *without)}
        path = tmp_path / "changed.safetensors"
        path.write_bytes(serialize_tensors(weights | dict(tensors), new, "pluribus"))
        return path

    return write


# --- one flipped bit --------------------------------------------------------------------------------------------------


def list_regions(data):
    """The bytes of the header's length, of the header, and of each tensor, as ranges."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    tensors = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
    return {"length": range(8), "header": range(8, 8 + length)} | {
        name: range(8 + length + start, 8 + length + end) for name, (start, end) in tensors.items()
    }


def test_one_flipped_bit_anywhere_is_refused_or_changes_nothing(saved, tmp_path):
    data = saved.read_bytes()
    expected = pluribus.load(saved, small_net()).state_dict()
    regions = list_regions(data)
    assert len(regions) == 2 + 9
    path, refused = tmp_path / "flipped.safetensors", dict.fromkeys(regions, 0)
    for name, places in regions.items():
        for number, place in enumerate(places if name == "length" else places[:: 5 if name == "header" else 3]):
            flipped = bytearray(data)
            flipped[place] ^= 1 << (number % 8)
            path.write_bytes(flipped)
            try:
                found = pluribus.load(path, small_net())
            except FileError:
                refused[name] += 1
            else:  # a space became another space, say
                assert name == "header"
                assert all(torch.equal(found.state_dict()[key], value) for key, value in expected.items())
    assert all(refused.values()), refused


def test_a_tensor_with_a_flipped_bit_is_called_damaged(saved, tmp_path):
    data = bytearray(saved.read_bytes())
    data[-2] ^= 64  # of the exponent of a weight
    path = tmp_path / "flipped.safetensors"
    path.write_bytes(data)
    with pytest.raises(FileError, match="is damaged: its content is not what was written"):
        pluribus.load(path, small_net())


def test_equal_ensembles_give_equal_files(saved, tmp_path):
    again = pluribus.save(pluribus.load(saved, small_net()), tmp_path / "again")
    assert again.read_bytes() == saved.read_bytes()


def test_a_file_of_the_first_format_loads_with_a_warning(change, saved):
    path = change({"format": "pluribus-1"})
    about, weights = read(path)
    assert about.pop("digest")
    from safetensors.torch import save_file

    save_file(weights, path, metadata={"pluribus": json.dumps(about)})
    with pytest.warns(UserWarning, match="without a digest"):
        found = pluribus.load(path, small_net())
    assert torch.equal(found.net[0].sigma, pluribus.load(saved, small_net()).net[0].sigma)


# --- descriptions that make no sense ----------------------------------------------------------------------------------

NESTED: dict = {"method": "single"}
for _ in range(3000):
    NESTED = {"method": "deep-ensemble", "of": NESTED}


@pytest.mark.parametrize(
    ("about", "said"),
    [
        *(({"spec": value}, "spec must be a mapping") for value in ([], 3, "inner", None)),
        *(({"task": value}, "task must be") for value in ("sorcery", 3, None, ["classification"], {})),
        *(({"output": value}, "output must be") for value in ([], {}, 1.5, True)),
        *(({"order": value}, "order must be") for value in ("0", {}, [1], [["0"]])),
        ({"order": ["0", "nowhere"]}, "order names 'nowhere'"),
        *(({"aliases": value}, "aliases must be") for value in ([], "a", None, {"a": 3}, {"a": ["b"]})),
        *(({"settings": value}, "settings must be") for value in ([], "a", None, {"": 3}, {"": ["samples"]})),
        *(({"frozen": value}, "frozen must be") for value in ({}, "a", None, [3], [None])),
        *(({"network": value}, "network must be") for value in ({}, "a", None, [3], [{}])),
        *(({"format": value}, "has the format") for value in (None, 2, [], {}, "pluribus-9")),
        *(({"settings": {"": {"samples": value}}}, "samples must be") for value in ("3", 1.5, None, [], 0, -1, True)),
        ({"settings": {"": {"samples": 10**9}}}, "asks for 1000000000 samples, and a file may ask for at most 100,000"),
        ({"settings": {"": {"samples": 10**300}}}, "and a file may ask for at most 100,000"),
        ({"spec": {"method": "variance", "samples": 10**9}}, "asks for 1000000000 samples"),
        ({"spec": {"method": "deep-ensemble", "members": 10**9}}, "asks for 1000000000 members"),
        ({"spec": {"method": "deep-ensemble", "members": 2, "of": {"method": "inner", "copies": 10**9}}}, "1000000000 copies"),
        ({"spec": {"method": ["variance"]}}, "unknown method"),
        ({"spec": {"method": {}}}, "unknown method"),
        ({"spec": {"method": "variance", "samples": [3]}}, "no options of variance"),
        ({"spec": {"method": "treenet", "split": "nowhere"}}, "nowhere"),
    ],
    ids=str,
)
def test_a_description_of_a_wrong_type_is_refused_in_one_sentence(about, said, change):
    with pytest.raises(FileError) as caught:
        pluribus.load(change(about), small_net())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", ["spec", "task", "output", "order", "aliases", "settings", "frozen", "network", "format"])
def test_a_description_that_lacks_an_entry_is_refused(name, change):
    with pytest.raises(FileError, match=name):
        pluribus.load(change(without=(name,)), small_net())


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "NaN", "null", '"' + "a" * 100], ids=lambda text: text[:6])
def test_a_description_that_is_no_mapping_is_refused(text, saved, tmp_path):
    from safetensors.torch import save_file

    path = tmp_path / "changed.safetensors"
    save_file(read(saved)[1], path, metadata={"pluribus": text})
    with pytest.raises(FileError, match="damaged: its description"):
        pluribus.load(path, small_net())


@pytest.mark.parametrize(
    "data",
    [None, 3, "inner", [], {}, {"method": None}, {"method": []}, {"method": {}}, {"method": "inner", "copies": {}}, NESTED],
    ids=lambda data: repr(data)[:30] if data is not NESTED else "nested",
)
def test_a_spec_from_garbage_is_a_file_error(data):
    with pytest.raises(FileError):
        Spec.from_json(data)


GARBAGE = (None, True, -1, 0, 10**400, 1.5, float("nan"), float("inf"), "", "a", [], [[]], [None], {}, {"a": 1})


@pytest.mark.parametrize("method", sorted(Spec.registry))
def test_every_option_of_every_method_takes_garbage_or_refuses_it_in_a_sentence(method):
    for option in Spec.registry[method].__dataclass_fields__:
        for value in GARBAGE:
            with contextlib.suppress(FileError):
                assert Spec.from_json({"method": method, option: value}).name == method


# --- tensors that do not fit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "make", "said"),
    [
        ("net.0.sigma", lambda t: t.to(torch.int32), "must hold floating-point numbers, got int32"),
        ("net.0.sigma", lambda t: t.to(torch.complex64), "must hold floating-point numbers, got complex64"),
        ("net.0.sigma", lambda t: t.to(torch.bool), "must hold floating-point numbers, got bool"),
        ("net.0.sigma", lambda t: t.to(torch.float8_e4m3fn), "must hold floating-point numbers, got float8"),
        ("net.0.sigma", lambda t: t.mean(), r"is \[\] in the file"),
        ("net.0.sigma", lambda t: t[:0], r"is \[0, 4\] in the file"),
        ("net.1.running_mean", lambda t: t.long(), "must hold floating-point numbers, got int64"),
        ("net.1.num_batches_tracked", lambda t: t.double(), "must hold int64, got float64"),
        ("net.9.weight", lambda t: torch.zeros(2), "net.9.weight has no place in the ensemble"),
    ],
)
def test_a_tensor_of_another_kind_or_shape_is_refused(name, make, said, change, saved):
    old = read(saved)[1].get(name)
    with pytest.raises(FileError, match=said):
        pluribus.load(change(tensors={name: make(old)}), small_net())


@pytest.mark.parametrize("draws", [torch.tensor(1.0), torch.zeros(0, 5), torch.zeros(2, 5)], ids=["no axis", "none", "two"])
def test_fixed_draws_of_different_numbers_are_refused(draws, tmp_path):
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(small_net(), Variance(samples=3, include=nn.Linear))
    ensemble.predict(torch.randn(2, 4))
    path = pluribus.save(ensemble.freeze(), tmp_path / "frozen")
    about, weights = read(path)
    del about["digest"]
    path.write_bytes(serialize_tensors(weights | {"net.0.frozen": draws}, about, "pluribus"))
    with pytest.raises(FileError, match="fixed draws must be of one number of members"):
        pluribus.load(path, small_net())


# --- numbers that are none --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["net.0.sigma", "net.3.bias", "net.1.running_var"])
def test_weights_and_statistics_that_are_not_finite_are_refused_by_name(name, value, change, saved):
    tensor = read(saved)[1][name].clone()
    tensor.view(-1)[0] = value
    path = change(tensors={name: tensor})
    with pytest.raises(FileError, match=f"diverged: {name} has NaN or infinite numbers"):
        pluribus.load(path, small_net())
    found = pluribus.load(path, small_net(), allow_nonfinite=True).state_dict()[name]
    assert torch.equal(found.isfinite(), tensor.isfinite())


def test_weights_that_are_not_finite_are_saved_with_a_warning(tmp_path):
    ensemble = pluribus.ensemble(small_net(), DeepEnsemble(members=2, of=MCDropout()))
    next(ensemble.parameters()).data.view(-1)[1] = float("nan")
    with pytest.warns(UserWarning, match="holds NaN or infinite weights.*allow_nonfinite"):
        path = pluribus.save(ensemble, tmp_path / "diverged")
    with pytest.raises(FileError, match="diverged"):
        pluribus.load(path, small_net())


def test_a_mask_of_minus_infinity_in_the_network_is_no_damage(tmp_path, recwarn):
    ensemble = pluribus.ensemble(Masked(), VariationalDropout(samples=2))
    path = pluribus.save(ensemble, tmp_path / "masked")
    assert not recwarn.list
    again = pluribus.load(path, Masked())
    assert torch.equal(again.net.mask, ensemble.net.mask)
    about, weights = read(path)
    del about["digest"]
    path.write_bytes(serialize_tensors(weights | {"net.mask": torch.tensor([0.0, torch.inf, -torch.inf])}, about, "pluribus"))
    with pytest.raises(FileError, match=r"net\.mask has NaN or infinite"):
        pluribus.load(path, Masked())
