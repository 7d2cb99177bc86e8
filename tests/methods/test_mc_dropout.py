import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pluribus
from pluribus import MCDropout
from pluribus.core.dropout import Dropping
from tests.networks import NestedMLP, ResidualCNN, Transformer, images, tokens, vectors, words


def dropouts(ensemble) -> list[Dropping]:
    return [module for module in ensemble.modules() if isinstance(module, Dropping)]


def test_the_networks_own_dropout_stays_on_at_its_own_rate():
    net = nn.Sequential(nn.Linear(4, 50), nn.Dropout(0.3), nn.Linear(50, 3), nn.Dropout(0.0))
    ensemble = pluribus.ensemble(net, MCDropout(rate=0.1, samples=5)).eval()
    assert [layer.rate for layer in dropouts(ensemble)] == [0.3, 0.0]
    answers = ensemble(torch.randn(2, 4))
    assert not torch.allclose(answers[0], answers[1])
    assert "own dropout stays on" in words(ensemble.describe())


def test_idle_dropout_gets_the_rate():
    net = nn.Sequential(nn.Linear(4, 50), nn.Dropout(0.0), nn.Linear(50, 3))
    ensemble = pluribus.ensemble(net, MCDropout(rate=0.2))
    assert [layer.rate for layer in dropouts(ensemble)] == [0.2]
    assert "its rate 0 became 0.2" in words(ensemble.describe())


def test_a_network_without_dropout_gets_it_before_every_layer_but_the_first():
    ensemble = pluribus.ensemble(NestedMLP(), MCDropout(rate=0.2))
    assert [change.name for change in ensemble.conversion.changes] == ["body.0.0", "body.1.0", "body.2.0", "head"]
    assert "had no dropout layer: dropout of 0.2 was put before body.0.0, body.1.0, body.2.0, head" in words(
        ensemble.describe()
    )


@pytest.mark.parametrize(
    ("kind", "shape", "channels"),
    [
        (nn.Dropout, (50, 40), False),
        (nn.Dropout, (20, 10, 5, 5), False),
        (nn.Dropout1d, (50, 40, 6), True),
        (nn.Dropout2d, (50, 40, 3, 3), True),
        (nn.Dropout3d, (50, 40, 2, 2, 2), True),
    ],
)
def test_masks_keep_the_mean_and_the_stated_share(kind, shape, channels):
    ensemble = pluribus.ensemble(nn.Sequential(kind(0.3)), MCDropout(samples=8)).eval()
    x = torch.ones(*shape, dtype=torch.double)
    y = ensemble(x)
    rate = 77 / 256  # 0.3, rounded
    assert sorted(y.unique().tolist()) == pytest.approx([0, 1 / (1 - rate)])
    units = 8 * shape[0] * shape[1] if channels else y.numel()
    assert (y == 0).double().mean().item() == pytest.approx(rate, abs=6 * (0.21 / units) ** 0.5)
    if channels:
        assert (y.flatten(3).amax(3) == y.flatten(3).amin(3)).all()
    assert not torch.equal(y[0], y[1])


@pytest.mark.parametrize("kind", [nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_alpha_dropout_has_torchs_values_and_keeps_mean_and_variance(kind):
    ensemble = pluribus.ensemble(nn.Sequential(kind(0.25)), MCDropout(samples=1)).eval()
    ones = torch.ones(3000, 40, 2, dtype=torch.double)
    ours, theirs = ensemble(ones)[0].unique(), kind(0.25)(ones).unique()
    torch.testing.assert_close(ours, theirs)
    x = torch.randn(6000, 40, 2, dtype=torch.double)
    assert ensemble(x).mean().item() == pytest.approx(0, abs=0.02)
    assert ensemble(x).var().item() == pytest.approx(1, abs=0.02)


def test_bfloat16_masks_are_not_rounded():
    """A uniform number of eight bits would turn a rate of 0.001 into 0 or 1/256."""
    ensemble = pluribus.ensemble(nn.Sequential(nn.Dropout(0.001)), MCDropout(samples=1)).eval()
    share = (ensemble(torch.ones(2000, 2000, dtype=torch.bfloat16)) == 0).double().mean().item()
    assert share == pytest.approx(0.001, rel=0.1)


def test_dropout_as_a_function_is_pointed_out():
    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 3)

        def forward(self, x):
            return self.last(F.dropout(self.first(x), 0.5, self.training))

    ensemble = pluribus.ensemble(Functional(), MCDropout())
    with pytest.warns(UserWarning, match="calls dropout as a function, which cannot be reached"):
        ensemble(torch.randn(2, 4))
    assert "as a function" in words(ensemble.describe())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pluribus.ensemble(ResidualCNN(), MCDropout(), example=images(2))


def test_dropout_in_an_attention_function_is_pointed_out():
    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x):
            h = self.a(x).unsqueeze(1)
            return self.b(F.scaled_dot_product_attention(h, h, h, dropout_p=0.2).squeeze(1))

    with pytest.warns(UserWarning, match="scaled_dot_product_attention with dropout as a function"):
        pluribus.ensemble(Attending(), MCDropout(), example=torch.randn(2, 4))


def test_dropout1d_takes_a_matrix_for_channels_and_length_as_torch_does():
    ensemble = pluribus.ensemble(nn.Sequential(nn.Dropout1d(0.5)), MCDropout(samples=2)).eval()
    answers = ensemble(torch.ones(200, 7))
    assert (answers.amax(2) == answers.amin(2)).all()
    assert 0.3 < (answers == 0).double().mean() < 0.7


@pytest.mark.parametrize("kind", [nn.Dropout, nn.AlphaDropout])
def test_a_rate_of_one_leaves_nothing(kind):
    assert pluribus.ensemble(nn.Sequential(kind(1.0)), MCDropout(samples=2)).eval()(torch.ones(3, 4)).abs().max() == 0


def test_dropout_inside_attention_is_pointed_out():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ensemble = pluribus.ensemble(Transformer(), MCDropout(), example=tokens(2))
    assert "inside encoder.layers.0.self_attn (nn.MultiheadAttention) cannot be reached" in words(ensemble.describe())
    assert len(dropouts(ensemble)) == 6
    answers = ensemble.eval()(tokens(3))
    assert not torch.allclose(answers[0], answers[1])  # torch's fused encoder kernel would leave dropout out


def test_everything_before_the_first_dropout_runs_once():
    net = nn.Sequential(nn.Linear(4, 50), nn.ReLU(), nn.Linear(50, 50), nn.Dropout(0.3), nn.Linear(50, 3))
    ensemble = pluribus.ensemble(net, MCDropout(samples=7)).eval()
    ensemble(torch.randn(2, 4))
    rows = []
    ensemble.net[2].register_forward_hook(lambda module, args, output: rows.append(len(output)))
    ensemble.net[4].register_forward_hook(lambda module, args, output: rows.append(len(output)))
    ensemble(torch.randn(5, 4))
    assert rows == [5, 35]


def test_one_draw_in_training_and_as_many_as_asked_in_evaluation():
    ensemble = pluribus.ensemble(NestedMLP(), MCDropout(samples=9))
    assert ensemble.train()(vectors(2)).shape[0] == 1
    assert ensemble.eval()(vectors(2)).shape[0] == 9
    ensemble.samples = 30
    assert ensemble(vectors(2)).shape[0] == 30
