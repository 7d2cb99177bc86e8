import warnings

import lightning as L
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import pluribus
from pluribus import metrics
from pluribus.core.errors import FileError
from pluribus.data import Pixels, Preparation
from pluribus.data.dataset import Part
from pluribus.training.fit import fit
from pluribus.training.lightning_module import Diverged

QUIET = {"progress": False}


def blobs(rows=256, seed=0):
    """Three classes around three corners."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (rows,), generator=generator)
    corners = torch.tensor([[2.0, 0, 0, 0], [0, 2.0, 0, 0], [0, 0, 2.0, 0]])
    return corners[y] + 0.5 * torch.randn(rows, 4, generator=generator), y


def net(outputs=3):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, outputs))


@pytest.mark.parametrize("spec", [kind() for name, kind in pluribus.Spec.registry.items() if name != "mixture"], ids=str)
def test_every_method_learns(spec):
    x, y = blobs()
    ensemble = pluribus.ensemble(net(), spec)
    before = metrics.nll(ensemble.predict(x), y)
    history = fit(ensemble, (x, y), (x, y), epochs=8, lr=0.02, batch_size=32, **QUIET)
    assert len(history) == 8
    assert metrics.nll(ensemble.predict(x), y) < 0.8 * before


def test_the_loop_takes_the_steps_of_a_loop_by_hand():
    """The same batches, optimiser and learning rates, in double precision."""
    x, y = (part.double() if part.is_floating_point() else part for part in blobs(64))
    ours = pluribus.ensemble(net().double(), pluribus.DeepEnsemble(members=2))
    theirs = pluribus.ensemble(net().double(), pluribus.DeepEnsemble(members=2))
    theirs.load_state_dict(ours.state_dict())
    loader = DataLoader(TensorDataset(x, y), batch_size=16)
    fit(
        ours, loader, epochs=3, optimizer="sgd", lr=0.1, schedule="linear", weight_decay=0.01, precision="64", clip=0.5, **QUIET
    )
    optimizer = torch.optim.SGD(theirs.param_groups(), 0.1, 0.9, weight_decay=0.01, nesterov=True)
    step = 0
    for _ in range(3):
        for a, b in zip(x.split(16), y.split(16), strict=True):
            optimizer.param_groups[0]["lr"] = 0.1 * (1 - step / 12)
            optimizer.zero_grad()
            theirs.loss(a, b).backward()
            nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
            optimizer.step()
            step += 1
    for mine, yours in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, yours, rtol=1e-12, atol=1e-14)


def test_label_smoothing_spreads_the_target():
    x, y = blobs(32)
    losses = {}
    for share in (0.0, 0.3):
        ensemble = pluribus.ensemble(net(), pluribus.Single())
        expected = F.cross_entropy(ensemble(x)[0], y, label_smoothing=share).item()
        history = fit(ensemble, (x, y), epochs=1, batch_size=32, label_smoothing=share, **QUIET)
        losses[share] = history[0]["loss"]
        assert losses[share] == pytest.approx(expected, rel=1e-6)
    assert losses[0.0] != losses[0.3]


def test_the_penalty_is_warmed_up():
    """In the first of two steps half of the penalty counts, over the number of training rows."""
    x, y = blobs(64)
    seen = []

    class Ear(L.Callback):
        def on_train_batch_end(self, trainer, module, *_):
            seen.append(module.last_loss)

    def first_loss(**options):
        seen.clear()
        ensemble = pluribus.ensemble(net(), pluribus.VariationalDropout())
        fit(ensemble, (x, y), epochs=1, batch_size=32, callbacks=[Ear()], **QUIET, **options)
        return seen[0]

    penalty = pluribus.ensemble(net(), pluribus.VariationalDropout()).penalty().item() / 64
    assert first_loss() - first_loss(kl_warmup=1) == pytest.approx(penalty / 2, rel=1e-4)
    assert first_loss() - first_loss(kl_weight=0.25) == pytest.approx(0.75 * penalty, rel=1e-4)


def test_a_regression_is_judged_in_the_units_of_its_targets():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(256, 4, generator=generator)
    y = 500 + 100 * x[:, 0]
    ensemble = pluribus.ensemble(net(1), pluribus.DeepEnsemble(members=2), task="regression")
    scaled = Preparation(target=(y.mean().item(), y.std().item()))
    history = fit(ensemble, Part(x, y), Part(x, y), epochs=30, lr=0.02, batch_size=32, preparation=scaled, **QUIET)
    assert history[-1]["validation_rmse"] < 20
    assert history[0]["loss"] < 5, "targets are learnt centred and of unit spread"


def test_numpys_doubles_are_taken_in_the_precision_of_the_network():
    x, y = (part.numpy() for part in blobs(64))
    ensemble = pluribus.ensemble(net(), pluribus.MIMO(members=2))
    history = fit(ensemble, (x.astype("float64"), y), (x.astype("float64"), y), epochs=2, batch_size=32, **QUIET)
    assert len(history) == 2
    double = pluribus.ensemble(net().double(), pluribus.Single())
    tiny = torch.tensor([[1e-9, 0, 0, 0]], dtype=torch.double)  # lost beside 1 in single precision
    rows = torch.ones(64, 4, dtype=torch.double) + tiny
    seen = []
    double.net.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0].clone()))
    fit(double, (rows, torch.from_numpy(y)), epochs=1, batch_size=32, precision="64", **QUIET)
    assert torch.equal(seen[-1], rows[:32])


@pytest.mark.parametrize(("setting", "value"), [("seed", 1), ("batch_size", 16), ("optimizer", "sgd")])
def test_going_on_in_another_way_is_refused(setting, value, tmp_path):
    options = {"epochs": 2, "batch_size": 32, "folder": tmp_path, **QUIET}
    fit(pluribus.ensemble(net(), pluribus.Single()), blobs(64), **options)
    with pytest.raises(FileError, match=f"was made with {setting}"):
        fit(pluribus.ensemble(net(), pluribus.Single()), blobs(64), resume=True, **options | {setting: value})
    with pytest.raises(FileError, match="an epoch had 2 steps when the run was saved, and has 4 now"):
        fit(pluribus.ensemble(net(), pluribus.Single()), blobs(128), resume=True, **options)


@pytest.mark.parametrize("form", ["tensors", "dataset", "loader", "shuffled loader"])
def test_data_comes_in_any_form(form):
    x, y = blobs(64)
    data = {
        "tensors": (x, y),
        "dataset": TensorDataset(x, y),
        "loader": DataLoader(TensorDataset(x, y), 32),
        "shuffled loader": DataLoader(TensorDataset(x, y), 32, shuffle=True),
    }[form]
    weights = []
    for _ in range(2):
        ensemble = pluribus.ensemble(net(), pluribus.MIMO(members=2))
        fit(ensemble, data, data, epochs=2, batch_size=32, seed=3, **QUIET)
        weights.append(torch.cat([p.flatten() for p in ensemble.parameters()]))
    assert torch.equal(*weights), "the same seed, the same run"


def test_another_seed_is_another_run():
    x, y = blobs(64)
    weights = []
    for seed in (0, 1):
        ensemble = pluribus.ensemble(net(), pluribus.Variance())
        fit(ensemble, (x, y), epochs=1, batch_size=32, seed=seed, **QUIET)
        weights.append(torch.cat([p.flatten() for p in ensemble.parameters()]))
    assert not torch.equal(*weights)


def test_a_loss_that_is_no_number_stops_the_run_and_names_the_step_and_the_checkpoint(tmp_path):
    x, y = blobs(64)

    class Poison(L.Callback):
        def on_train_batch_start(self, trainer, module, *_):
            if trainer.global_step == 5:
                with torch.no_grad():
                    next(module.parameters()).fill_(float("nan"))

    ensemble = pluribus.ensemble(net(), pluribus.Single())
    with pytest.raises(Diverged, match=r"became nan at step 5 .*last good checkpoint is .*step-00000004"):
        fit(ensemble, (x, y), epochs=9, batch_size=32, folder=tmp_path, callbacks=[Poison()], **QUIET)


def test_a_checkpoint_with_weights_that_are_no_numbers_is_not_called_good(tmp_path):
    """The loss of a step was a number, but not the gradient: the checkpoint after it is worthless."""

    class Poison(L.Callback):
        def on_train_batch_end(self, trainer, module, *_):
            if trainer.global_step == 4:
                with torch.no_grad():
                    next(module.parameters()).fill_(float("nan"))

    ensemble = pluribus.ensemble(net(), pluribus.Single())
    with pytest.raises(Diverged, match=r"became nan at step 4 .*last good checkpoint is .*step-00000002"):
        fit(ensemble, blobs(64), epochs=9, batch_size=32, folder=tmp_path, callbacks=[Poison()], **QUIET)


def test_another_runs_checkpoints_are_neither_mixed_with_nor_gone_on_from(tmp_path):
    fit(pluribus.ensemble(net(), pluribus.Single()), blobs(64), epochs=2, folder=tmp_path, **QUIET)
    with pytest.raises(FileError, match="holds the checkpoints of a run: resume it with resume=True"):
        fit(pluribus.ensemble(net(), pluribus.Single()), blobs(64), epochs=2, folder=tmp_path, lr=0.1, **QUIET)


def test_what_is_frozen_in_a_training_network_stays_frozen():
    base = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    base[1].eval()
    ensemble = pluribus.ensemble(base, pluribus.Single())
    fit(ensemble, blobs(64), blobs(64), epochs=2, **QUIET)
    assert torch.equal(ensemble.net[1].running_mean, torch.zeros(8))
    assert [part.training for part in ensemble.net] == [True, False, True, True]
    fit(ensemble.eval(), blobs(64), epochs=1, **QUIET)
    assert not torch.equal(ensemble.net[1].running_mean, torch.zeros(8)), "a network in evaluation mode is trained as a whole"
    assert not any(part.training for part in ensemble.modules())


def test_a_dataset_that_augments_does_so_in_every_epoch():
    x, y = blobs(33)
    seen = []

    class Shaken(Dataset):
        def __len__(self):
            return 33

        def __getitem__(self, row):
            noise = torch.rand(()).item()
            seen.append(noise)
            return x[row] + noise, y[row]

    fit(pluribus.ensemble(net(), pluribus.Single()), Shaken(), epochs=3, batch_size=16, **QUIET)
    assert len(set(seen)) >= 3 * 32


@pytest.mark.parametrize("options", [{"augmentation": "flip"}, {"preparation": Preparation(target=(1.0, 2.0))}])
def test_a_loader_does_its_own_preparation(options):
    loader = DataLoader(TensorDataset(*blobs(64)), 32)
    with pytest.raises(ValueError, match="a loader does its own"):
        fit(pluribus.ensemble(net(), pluribus.Single()), loader, epochs=1, **options, **QUIET)


def test_early_stopping_keeps_the_best_epoch():
    x, y = blobs(64)
    other = (x, torch.randint(0, 3, (64,), generator=torch.Generator().manual_seed(5)))  # nothing to learn: it gets worse
    ensemble = pluribus.ensemble(net(), pluribus.Single())
    history = fit(ensemble, (x, y), other, epochs=50, batch_size=16, lr=0.02, patience=3, schedule="constant", **QUIET)
    scores = [row["validation_nll"] for row in history]
    assert len(history) < 50
    assert len(history) == scores.index(min(scores)) + 1 + 3
    assert metrics.nll(ensemble.predict(x), other[1]) == pytest.approx(min(scores), rel=1e-5)


def test_early_stopping_of_quantiles_keeps_the_epoch_of_the_least_pinball_loss():
    torch.manual_seed(0)
    x, other = torch.randn(32, 2), torch.randn(32, 2)
    made = pluribus.ensemble(nn.Linear(2, 1), pluribus.Single(), task="regression", quantiles=(0.1, 0.9))
    settings = {"epochs": 60, "batch_size": 32, "lr": 0.1, "patience": 2, "schedule": "constant", **QUIET}
    history = fit(made, (x, torch.randn(32)), (other, torch.randn(32)), **settings)
    losses = [row["validation_pinball"] for row in history]
    assert len(history) == losses.index(min(losses)) + 1 + 2 < 60


def test_early_stopping_without_validation_is_refused():
    with pytest.raises(ValueError, match="needs validation rows"):
        fit(pluribus.ensemble(net(), pluribus.Single()), blobs(), patience=2, **QUIET)


@pytest.mark.parametrize("precision", ["bf16-mixed", "64"])
def test_other_precisions_train(precision):
    x, y = blobs(128)
    dtype = torch.double if precision == "64" else torch.float
    ensemble = pluribus.ensemble(net().to(dtype), pluribus.BatchEnsemble(members=2))
    history = fit(ensemble, (x.to(dtype), y), (x.to(dtype), y), epochs=10, lr=0.02, precision=precision, batch_size=32, **QUIET)
    assert history[-1]["validation_accuracy"] > 0.9
    assert next(ensemble.parameters()).dtype == dtype


@pytest.mark.slow
@pytest.mark.parametrize("spec", [pluribus.Inner(), pluribus.MIMO(), pluribus.Variance(), pluribus.BatchEnsemble()], ids=str)
def test_a_compiled_run_is_the_plain_run(spec):
    x, y = blobs(128)
    losses = []
    for compiled in (False, True):
        torch.manual_seed(0)
        ensemble = pluribus.ensemble(net(), spec)
        losses.append([row["loss"] for row in fit(ensemble, (x, y), epochs=2, batch_size=32, compile=compiled, **QUIET)])
    tolerance = 0.3 if ensemble.sampled else 1e-4  # compiled noise is drawn by another generator
    assert losses[1] == pytest.approx(losses[0], rel=tolerance)


def test_augmented_images_train_and_repeat():
    x = torch.randint(0, 256, (64, 1, 8, 8), dtype=torch.uint8)
    y = torch.randint(0, 3, (64,))
    weights = []
    for kind in ("crop-flip", "crop-flip", "none"):
        torch.manual_seed(0)
        ensemble = pluribus.ensemble(nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 3)), pluribus.Single())
        fit(ensemble, Part(x, y), epochs=2, batch_size=16, preparation=Pixels.fit(x), augmentation=kind, **QUIET)
        weights.append(torch.cat([p.flatten() for p in ensemble.parameters()]))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_the_mode_is_as_before_and_lightning_keeps_quiet(capsys):
    ensemble = pluribus.ensemble(net(), pluribus.Single()).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(ensemble, blobs(64), epochs=1, **QUIET)
    assert not ensemble.training
    assert not any(capsys.readouterr())


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (3, "got int alone"),
        (torch.zeros(3, 4), "got Tensor alone"),
        ((torch.zeros(3, 4), torch.zeros(2).long()), "a target for each"),
        ([], "no batches"),
    ],
)
def test_what_is_no_data_is_refused(train, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fit(pluribus.ensemble(net(), pluribus.Single()), train, epochs=1, **QUIET)


def test_a_plain_network_is_told_what_to_do():
    with pytest.raises(TypeError, match=r"make one with pluribus.ensemble"):
        pluribus.fit(net(), blobs())
