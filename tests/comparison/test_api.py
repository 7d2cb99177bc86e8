"""The Python face: what may be passed to `compare` and `evaluate`, and what comes back."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pluribus
from pluribus.core.errors import DataError, FileError
from pluribus.core.spec import Spec, list_methods
from pluribus.file_formats.comparison_files import Results
from pluribus.file_formats.reading import read_json
from pluribus.models.registry import ModelError
from pluribus.runs.config import ConfigError, build_config
from pluribus.runs.consent import ConsentError
from pluribus.runs.evaluation import evaluate_run
from pluribus.runs.loading import load_run
from pluribus.runs.run_folder import Run
from pluribus.runs.training import train_run

SHORT = {"epochs": 1, "batch_size": 32, "progress": False}


def rows(count=120, seed=0):
    x = torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))
    return x, (x[:, 0] + x[:, 1] > 0).long()


def small_net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("face") / "kept"
    methods = ["mimo:members=2", pluribus.DeepEnsemble(members=2)]
    return pluribus.compare(small_net(), rows(), test=rows(seed=1), methods=methods, seeds=[0, 5], folder=folder, **SHORT)


def test_a_comparison_is_results_recommendation_frame_and_text(found):
    assert found.results["seeds"] == [0, 5]
    assert list(found.methods) == ["single", "mimo:members=2", "deep-ensemble:members=2"]
    assert found.recommendation == found.results["recommendation"]
    frame = found.to_frame()
    assert list(frame.index) == list(found.methods)
    assert frame.loc["single", "nll"] == pytest.approx(found.methods["single"]["scores"]["nll"]["mean"])
    text = repr(found)
    for piece in ("data · Sequential", "mimo:members=2", "latency", "report.html"):
        assert piece in text


def test_what_is_saved_is_what_the_folder_has(found, tmp_path):
    page = found.save(tmp_path / "saved")
    assert page.read_text() == found.page() == (found.folder / "report.html").read_text()
    again = pluribus.Comparison.load(tmp_path / "saved")
    assert repr(again.results) == repr(read_json(found.folder / "results.json", Results))
    with pytest.raises(FileError, match="there is no file"):
        pluribus.Comparison.load(tmp_path)


@pytest.mark.parametrize("name", ["mnist-lenet5", "cifar10-small-cnn"])
def test_recorded_comparisons_are_loaded_and_shown(name):
    recorded = pluribus.Comparison.load(Path(__file__).parents[2] / "results" / name)
    assert "deep-ensemble" in repr(recorded)
    assert set(recorded.to_frame().index) == set(recorded.methods)
    assert "<svg" in recorded._repr_html_()


def test_without_a_folder_nothing_is_left(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = pluribus.compare(small_net, rows(), test=rows(seed=1), methods="deep-ensemble:members=2", seeds=1, **SHORT)
    assert found.folder is None
    assert list(tmp_path.iterdir()) == []
    assert "report.html" not in repr(found)


def test_every_seed_draws_new_weights_at_the_scale_of_the_network_that_was_passed(tmp_path):
    net = small_net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    # With a learning rate this small, the trained weights are those that were drawn.
    pluribus.compare(net, rows(), test=rows(seed=1), methods=["single"], seeds=2, lr=1e-12, folder=tmp_path / "c", **SHORT)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items()), "the network itself is only read"
    saved = [tmp_path / "c" / f"single-seed{seed}" / "weights.safetensors" for seed in (0, 1)]
    first, second = (pluribus.load(file, small_net()).net[0].weight for file in saved)
    assert not torch.allclose(first, net[0].weight, atol=1e-3)
    assert not torch.allclose(first, second, atol=1e-3)
    assert first.std().item() == pytest.approx(net[0].weight.std().item(), rel=0.5)


def test_the_weights_of_a_factory_are_used_as_they_are(tmp_path):
    def build(inputs, outputs):
        net = nn.Linear(inputs, outputs)
        nn.init.constant_(net.weight, 0.5)
        return net

    pluribus.compare(build, rows(), test=rows(seed=1), methods=["single"], seeds=1, lr=1e-12, folder=tmp_path / "c", **SHORT)
    made = pluribus.load(tmp_path / "c" / "single-seed0" / "weights.safetensors", nn.Linear(4, 2))
    assert torch.allclose(made.net.weight, torch.tensor(0.5), atol=1e-6)


def test_tensors_arrays_datasets_and_loaders_are_the_same_data():
    x, y = rows()
    kinds = [(x, y), (x.numpy(), y.numpy()), TensorDataset(x, y), DataLoader(TensorDataset(x, y), 50)]
    frames = [
        pluribus.compare(small_net, kind, test=kind, methods=["single"], seeds=1, **SHORT).to_frame()["nll"] for kind in kinds
    ]
    assert all(frame.equals(frames[0]) for frame in frames)


def test_a_regression_and_data_objects_are_compared():
    data = pluribus.data.load("blundell")
    found = pluribus.compare("mlp:hidden=[8]", data, methods="deep-ensemble:members=2", seeds=1, **SHORT)
    assert "rmse" in found.to_frame()
    x = torch.randn(60, 3)
    found = pluribus.compare("mlp", (x, x.sum(1)), test=(x, x.sum(1)), methods=["single"], seeds=1, **SHORT)
    assert found.results["data"]["task"] == "regression"


def test_a_factory_that_a_file_names_is_imported_only_if_it_is_trusted(tmp_path, monkeypatch):
    (tmp_path / "flat_nets.py").write_text(
        "from torch import nn\ndef build(): return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder, again = tmp_path / "kept", {"folder": tmp_path / "kept", "resume": True, "progress": False}
    options = {"methods": "single", "seeds": 1, "rows": 64, "folder": folder, **SHORT}
    pluribus.compare("flat_nets:build", "digits", **options)  # a name that is passed is consent
    for name in ("costs.json", "single-seed0/judgement.json"):
        (folder / name).unlink()
    for trust in (False, "flat_nets:other", ["other_nets:build"]):
        with pytest.raises(ConsentError, match="names the network flat_nets:build, which would run code"):
            pluribus.compare(**again, trust=trust)
    for trust in (True, "flat_nets:build", {"flat_nets:build"}):
        assert pluribus.compare(**again, trust=trust).results["methods"]
        (folder / "costs.json").unlink()
    assert pluribus.compare("flat_nets:build", **again).results["methods"]


def test_a_comparison_is_resumed_with_the_same_objects(found):
    (found.folder / "single-seed0" / "judgement.json").unlink()
    with pytest.raises(pluribus.PluribusError, match="<Sequential> was passed"):
        load_run(Run(found.folder / "single-seed0"))
    again = pluribus.compare(small_net(), rows(), test=rows(seed=1), folder=found.folder, resume=True, progress=False)
    assert again.results["methods"] == found.results["methods"]


@pytest.mark.slow
def test_other_processes_train_a_network_that_cannot_be_imported(tmp_path):
    options = {"methods": "deep-ensemble:members=2", "seeds": 1, "folder": tmp_path / "c", "workers": 2}
    found = pluribus.compare(lambda: small_net(), rows(), test=rows(seed=1), **options, **SHORT)
    assert len(found.methods) == 2
    assert not any("failed" in note for note in found.results["notes"])


class Unpicklable(nn.Linear):
    def __reduce__(self):
        raise TypeError("it holds a socket")


@pytest.mark.parametrize(
    ("network", "data", "options", "error", "message"),
    [
        (Unpicklable(4, 2), rows(), {"workers": 2}, ConfigError, r"<Unpicklable> cannot be sent.*a socket.*workers=1"),
        (3, rows(), {}, ConfigError, "network must be a network"),
        (small_net, "digits", {"test": rows()}, ConfigError, "named data has its own"),
        (small_net, 3, {}, DataError, "training rows must be a pair"),
        (small_net, rows(), {"test": (torch.zeros(3, 5), torch.zeros(3).long())}, DataError, "must be alike"),
        (nn.Linear(3, 2), rows(), {}, ModelError, "<Linear> cannot take inputs of 4"),
        (small_net, rows(), {"methods": ["mino"]}, ConfigError, "did you mean 'mimo'"),
        (small_net, rows(), {"methods": []}, ConfigError, "methods must be"),
        (small_net, rows(), {"seeds": [-1]}, ConfigError, "seeds must be"),
        (small_net, rows(), {"epoch": 3}, ConfigError, "epoch"),
        (small_net, rows(), {"resume": True}, ConfigError, "folder"),
    ],
)
def test_what_does_not_fit_is_refused_before_training(network, data, options, error, message):
    with pytest.raises(error, match=message):
        pluribus.compare(network, data, progress=False, **options)


def test_evaluate_gives_the_scores_of_the_command_line(tmp_path):
    config = build_config({"data": "digits", "model": "mlp:hidden=[8]", "method": "mimo:members=2", "epochs": 1, "rows": 200})
    train_run(config, tmp_path / "run", progress=False)
    theirs = evaluate_run(tmp_path / "run")
    ensemble, *_ = load_run(Run(tmp_path / "run"))
    data = pluribus.data.load("digits")
    ours = pluribus.evaluate(ensemble, data, progress=False)
    assert ours.scores == theirs["scores"]
    assert ours.results["tempered"] is None
    prepared = (data.preparation(data.test.x), data.test.y)
    rows_alone = pluribus.evaluate(ensemble, prepared, validation=prepared, progress=False)
    assert rows_alone.scores == pytest.approx(ours.scores)
    assert {"tempered", "low", "high", "member"} <= set(rows_alone.to_frame())
    assert "95 % interval" in repr(rows_alone)


def test_evaluate_leaves_mode_and_samples_as_they_are():
    ensemble = pluribus.ensemble(small_net(), pluribus.MCDropout(samples=3)).train()
    found = pluribus.evaluate(ensemble, rows(), samples=5, network=small_net(), progress=False)
    assert found.results["members"] == 5
    assert found.results["cost"]["parameters"] == 1
    assert ensemble.training
    assert ensemble.samples == 3


def test_evaluate_refuses_what_does_not_fit_the_ensemble():
    ensemble = pluribus.ensemble(small_net(), pluribus.Inner())
    with pytest.raises(ConfigError, match="real numbers"):
        pluribus.evaluate(ensemble, (torch.zeros(3, 4), torch.zeros(3)))
    with pytest.raises(ConfigError, match="regression"):
        pluribus.evaluate(ensemble, "blundell")
    with pytest.raises(TypeError, match=r"pluribus\.ensemble"):
        pluribus.evaluate(small_net(), rows())


def test_a_new_method_is_compared_and_recommended_with_no_other_file_touched(monkeypatch):
    monkeypatch.setattr(Spec, "registry", dict(Spec.registry))

    @dataclass(frozen=True)
    class Invented(pluribus.DeepEnsemble):
        """Invent an ensemble for a test."""

        name: ClassVar[str] = "invented"
        role: ClassVar = ""

        members: int = 8

    options = {"methods": ["single", "invented"], "seeds": 1, "epochs": 15, "lr": 0.01, "progress": False}
    found = pluribus.compare("mlp:hidden=[16]", "digits", rows=200, **options)
    assert found.methods["invented"]["about"] == "Invent an ensemble for a test."
    assert found.recommendation[-1]["method"] == "invented"
    assert "invented" in list_methods()
