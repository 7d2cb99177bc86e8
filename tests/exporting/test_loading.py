"""An exported file says what it is, is read again by its ending, and brings nothing else along."""

import json

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

import pluribus
from pluribus.core.errors import FileError
from pluribus.data import Columns, Pixels
from pluribus.exporting import load_file
from pluribus.exporting.formats import KEY


def export(path):
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(nn.Sequential(nn.Flatten(), nn.Linear(16, 3)), pluribus.DeepEnsemble(members=2)).eval()
    x = torch.randint(0, 256, (6, 1, 4, 4), dtype=torch.uint8)
    preparation = Pixels((0.5,), (0.2,))
    pluribus.export(ensemble, path, example=x, preparation=preparation, classes=["ant", "bee", "cat"], title="insects")
    return x, ensemble.predict(preparation(x))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    file = tmp_path_factory.mktemp("written") / "model.onnx"
    return file, *export(file)


def change_facts(file, to, **changes):
    """The same ONNX file with other facts; without facts where `changes` say None."""
    model = onnx.load(file)
    (entry,) = [each for each in model.metadata_props if each.key == KEY]
    if changes.get("facts", True) is None:
        model.metadata_props.remove(entry)
    else:
        entry.value = json.dumps(json.loads(entry.value) | changes)
    onnx.save(model, to)
    return to


@pytest.mark.parametrize("ending", ["onnx", "pt2"])
def test_the_file_says_what_it_takes_and_answers(ending, tmp_path):
    x, p = export(tmp_path / f"model.{ending}")
    loaded = load_file(tmp_path / f"model.{ending}", trust=True, threads=1)
    facts = loaded.facts
    assert facts["title"] == "insects"
    assert facts["classes"] == ["ant", "bee", "cat"]
    assert facts["inputs"] == [{"name": "input", "type": "uint8", "shape": [1, 4, 4]}]
    assert list(facts["outputs"]) == ["probs", "label", "members", "entropy", "mutual_information"]
    assert facts["members"] == 2
    assert facts["preparation"]["kind"] == "pixels"
    found = loaded.run([x], ["label", "probs"])
    assert list(found) == ["label", "probs"]
    torch.testing.assert_close(found["probs"], p.probs, rtol=0, atol=1e-5)


def test_a_program_of_torch_is_not_opened_without_consent(tmp_path):
    (tmp_path / "model.pt2").write_bytes(b"no archive")
    with pytest.raises(FileError, match=r"may hold pickles.*--trust"):
        load_file(tmp_path / "model.pt2")
    with pytest.raises(FileError, match="torch cannot read"):
        load_file(tmp_path / "model.pt2", trust=True)


@pytest.mark.parametrize("place", ["weights.bin", "../weights.bin", "/etc/hostname"])
def test_an_onnx_file_reads_no_other_file(place, tmp_path, monkeypatch):
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    for folder in (tmp_path, tmp_path / "inside"):
        (folder / "weights.bin").write_bytes(bytes(8))
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", place), ("length", "8")):
        entry = weights.external_data.add()
        entry.key, entry.value = key, value
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    file = tmp_path / "inside" / "model.onnx"
    file.write_bytes(model.SerializeToString())
    with pytest.raises(FileError, match="ONNX Runtime cannot read"):
        load_file(file)


def test_a_file_without_facts_or_with_wrong_ones_is_refused(written, tmp_path):
    file = written[0]
    for changes, message in (
        ({"facts": None}, "does not say what it takes and answers"),
        ({"members": 0}, "members"),
        ({"task": "poetry"}, "task"),
        ({"surprise": 1}, "surprise"),
        ({"classes": ["ant", "ant", "cat"]}, "names a class twice"),
        ({"inputs": [{"name": "x", "type": "uint8", "shape": [1, 4, 4]}]}, "its inputs are x, and they are input"),
        ({"outputs": {"probs": ""}}, "its outputs are probs, and they are probs, label"),
    ):
        with pytest.raises(FileError, match=message):
            load_file(change_facts(file, tmp_path / "changed.onnx", **changes))


def test_the_columns_of_a_table_must_fit_the_input(written, tmp_path):
    columns = Columns(columns=(("age", "number", 30.0, 10.0, (), False),), classes=("ant", "bee", "cat")).to_json()
    with pytest.raises(FileError, match="columns of 1 numbers do not fit"):
        load_file(change_facts(written[0], tmp_path / "changed.onnx", preparation=columns))


def test_what_is_no_exported_file_is_named(tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"\x00\x01 no model")
    for name, message in (("nothing.onnx", "there is no file"), ("broken.onnx", "cannot read"), (".", "is a folder")):
        with pytest.raises(FileError, match=message):
            load_file(tmp_path / name)
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(FileError, match=r"must end in .onnx or .pt2"):
        load_file(tmp_path / "model.bin")
