import itertools
import json
from pathlib import Path

import pytest
import torch
from torch import nn

import pluribus
from pluribus import MIMO, ConversionError, Views
from pluribus.core.passes import Pass, call_in_pass
from pluribus.methods.mimo import SMALLEST, Merge, draw_dealing
from pluribus.papers.mimo import capacity
from tests.networks import NETWORKS, Backwards, DenseCNN, NestedMLP, ResidualCNN, images, vectors, words

CAPACITY = Path(__file__).parents[2] / "papers" / "mimo" / "results" / "capacity.cpu.json"


@pytest.mark.parametrize("members", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("repetition", [1, 3])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_views_have_the_promised_marginals_and_the_promised_shared_share(members, repetition, share):
    size = 10
    spec = MIMO(members, input_repetition=share, batch_repetition=repetition, init="fresh")
    index = draw_dealing(size, spec)
    total = size * repetition
    assert index.shape == (members, total)
    for view in index:  # every member sees every row, `repetition` times
        assert view.bincount(minlength=size).tolist() == [repetition] * size
    own = int(total * (1 - share))
    assert (index[:, own:] == index[0, own:]).all()  # the shared share, for all members at once
    draws = 1000
    many = torch.stack([draw_dealing(size, spec) for _ in range(draws)])
    # at any one place, any row is as likely as any other
    counts = many[:, 1, 0].bincount(minlength=size).double() / draws
    assert (counts - 1 / size).abs().max() < 5 * (0.1 * 0.9 / draws) ** 0.5


def test_the_shared_share_is_shared_by_chance_beyond_the_fixed_count():
    """Two members agree on the last n − k places always, and on a shuffled place with probability 1/k."""
    many = torch.stack([draw_dealing(20, MIMO(2, input_repetition=0.5)) for _ in range(5000)])
    met = (many[:, 0] == many[:, 1]).double().mean(0)
    assert (met[10:] == 1).all()
    assert (met[:10] - 0.1).abs().max() < 5 * (0.09 / 5000) ** 0.5


def test_views_and_targets_are_dealt_together():
    ensemble = pluribus.ensemble(NestedMLP(), MIMO(3, batch_repetition=2))
    x, y = torch.arange(5.0).view(5, 1, 1, 1).expand(5, 3, 2, 2), torch.arange(5)
    views, targets = ensemble.deal(x, y)
    assert isinstance(views, Views)
    assert views.batch.shape == (3, 10, 3, 2, 2)
    assert torch.equal(views.batch[..., 0, 0, 0].long(), targets)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_summed_first_layer_equals_the_tiled_forward(name):
    network, data = NETWORKS[name]
    ensemble = pluribus.ensemble(network().double(), MIMO(3)).eval()
    x = data(4, torch.double)
    torch.testing.assert_close(ensemble(Views(x.expand(3, *x.shape))), ensemble(x), rtol=0, atol=1e-10)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("transposed", [False, True])
def test_the_first_layer_is_the_sum_of_the_members_layers(groups, transposed):
    kind = nn.ConvTranspose2d if transposed else nn.Conv2d
    net = nn.Sequential(kind(4, 6, 3, groups=groups), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 2)).double()
    ensemble = pluribus.ensemble(net, MIMO(3))
    merge = ensemble.net[0]
    x = torch.randn(3, 5, 4, 6, 6, dtype=torch.double)
    ensemble(Views(x))
    merged = call_in_pass(Pass(3, 5, dealt=True), merge, x.flatten(0, 1))
    parts = [merge.affine(x[m], merge.weights[m]) for m in range(3)]
    torch.testing.assert_close(merged, sum(parts) + merge.offset.view(-1, 1, 1), rtol=0, atol=1e-12)


def test_members_answer_for_their_own_inputs():
    """After training, swapping the other member's input moves a member's answer little, swapping its own moves it much."""
    net = nn.Sequential(nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
    ensemble = pluribus.ensemble(net, MIMO(2)).train()
    optimizer = torch.optim.Adam(ensemble.param_groups(), lr=3e-3)
    for _ in range(600):
        x = torch.randn(128, 2)
        optimizer.zero_grad()
        ensemble.loss(x, (x[:, 0] > 0).long()).backward()
        optimizer.step()
    a, b, c = torch.randn(3, 500, 2)
    answers = ensemble.eval()(Views(torch.stack([a, b])))
    for member, own in ((0, a), (1, b)):
        right = (answers[member].argmax(1) == (own[:, 0] > 0)).float().mean()
        assert right > 0.9, (member, right)
    assert not torch.allclose(answers, ensemble(Views(torch.stack([a, c]))))


def test_the_loss_sums_over_heads_and_averages_over_the_batch():
    ensemble = pluribus.ensemble(NestedMLP().double(), MIMO(3))
    x, y = vectors(6, torch.double), torch.arange(6) % 3
    torch.manual_seed(4)
    loss = ensemble.loss(x, y)
    torch.manual_seed(4)
    views, targets = ensemble.deal(x, y)
    out = ensemble(views)
    expected = -sum(out[m].log_softmax(1)[i, targets[m, i]] for m in range(3) for i in range(6)) / 6
    torch.testing.assert_close(loss, expected)


def test_it_folds_to_an_ordinary_network_with_m_heads():
    net = ResidualCNN()
    ensemble = pluribus.ensemble(net, MIMO(3)).eval()
    folded = ensemble.fold()
    plain = {nn.Conv2d, nn.BatchNorm2d, nn.Linear, nn.ReLU, nn.Sequential, nn.Identity}
    own = [type(module).__module__ for module in folded.modules() if type(module) not in plain]
    assert set(own) == {
        "tests.networks",
        "pluribus.core.heads",
        "pluribus.core.folding",
    }  # the network's own blocks, and the reshaping of the heads
    extra = sum(p.numel() for p in folded.parameters()) - sum(p.numel() for p in net.parameters())
    assert extra == 2 * (12 * 3 + 3)  # two more heads, and nothing else


def test_weights_start_at_the_scale_of_a_layer_with_m_times_the_inputs():
    net = nn.Sequential(nn.Linear(200, 300), nn.ReLU(), nn.Linear(300, 2))
    for init in ("keep", "fresh"):
        weight = pluribus.ensemble(net, MIMO(4, init=init)).net[0].weights
        assert weight.var().item() == pytest.approx(net[0].weight.var().item() / 4, rel=0.02)


def test_equal_heads_part_because_their_targets_differ():
    ensemble = pluribus.ensemble(NestedMLP(), MIMO(2)).train()
    head = ensemble.net.head.weights
    assert torch.equal(head[0], head[1])
    ensemble.loss(vectors(8), torch.arange(8) % 3).backward()
    assert not torch.allclose(head.grad[0], head.grad[1])


def test_equal_heads_on_equal_data_are_refused():
    with pytest.raises(ValueError, match="never part"):
        MIMO(input_repetition=1.0)


def test_padding_stays_what_it_is():
    net = nn.Sequential(nn.Embedding(7, 4, padding_idx=2), nn.Flatten(), nn.Linear(12, 2))
    for init in ("keep", "fresh"):
        assert pluribus.ensemble(net, MIMO(3, init=init)).net[0].weights[:, 2].abs().max() == 0


def test_an_example_finds_the_first_and_the_last_layer():
    ensemble = pluribus.ensemble(Backwards(), MIMO(2), example=torch.randn(2, 4))
    assert isinstance(ensemble.net.stem, Merge)
    assert ensemble(torch.randn(5, 4)).shape == (2, 5, 3)


def test_names_choose_the_first_and_the_last_layer():
    ensemble = pluribus.ensemble(Backwards(), MIMO(2, first="stem", last="head"))
    assert ensemble(torch.randn(5, 4)).shape == (2, 5, 3)


def test_a_wrong_guess_is_noticed_in_the_first_pass():
    ensemble = pluribus.ensemble(Backwards(), MIMO(2))
    with pytest.raises(ConversionError, match=r"stem runs first.*MIMO\(first='stem'\)"):
        ensemble(torch.randn(5, 4))


class Around(nn.Module):
    """The raw input goes around the first layer, or something around the last."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where
        self.stem, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        h = self.stem(x)
        h = h + x if self.where == "first" else h
        y = self.head(torch.relu(h))
        return y + h if self.where == "last" else y


@pytest.mark.parametrize("where", ["first", "last"])
def test_a_path_around_either_layer_is_refused_with_the_reason(where):
    ensemble = pluribus.ensemble(Around(where), MIMO(2))
    with pytest.raises(ConversionError, match=rf"goes around(.|\n)*MIMO\({where}=…\)"):
        ensemble(torch.randn(5, 4))


def test_what_comes_before_the_first_and_after_the_last_layer_sees_plain_rows():
    class Framed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1))
            self.body = DenseCNN()

        def forward(self, x):
            return self.body(x - self.mean).log_softmax(1)

    ensemble = pluribus.ensemble(Framed(), MIMO(3)).eval()
    answer = ensemble(images(4))
    torch.testing.assert_close(answer.exp().sum(2), torch.ones(3, 4))


class Tokens(nn.Module):
    """Asks for the size of its input after the first layer, as vision transformers do."""

    def __init__(self, linear: bool) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8) if linear else nn.Conv2d(3, 8, 2, 2)
        self.token, self.head = nn.Parameter(torch.randn(1, 1, 8)), nn.Linear(8, 3)

    def forward(self, x):
        h = self.first(x)
        h = h if h.dim() == 3 else h.flatten(2).transpose(1, 2)
        return self.head(torch.cat([self.token.expand(len(x), -1, -1), h], 1).mean(1).tanh())


@pytest.mark.parametrize("linear", [False, True])
def test_a_network_that_goes_on_using_the_size_of_its_input_gets_the_inputs_side_by_side(linear):
    ensemble = pluribus.ensemble(Tokens(linear).double(), MIMO(3)).eval()
    x = torch.randn(3, 4, 5, 6, dtype=torch.double) if linear else torch.randn(3, 4, 3, 6, 6, dtype=torch.double)
    torch.testing.assert_close(ensemble(Views(x[:1].expand_as(x))), ensemble(x[0]), rtol=0, atol=1e-10)
    assert ensemble.executor.plan.joins_channels
    merge = next(module for module in ensemble.modules() if isinstance(module, Merge))
    merged = sum(merge.affine(x[m], merge.weights[m]) for m in range(3))
    seen = []
    merge.register_forward_hook(lambda module, args, output: seen.append(output))
    ensemble(Views(x))
    torch.testing.assert_close(seen[0], merge.affine.add_to_channels(merged[None], merge.offset[None])[0])
    ensemble.train().loss(x[0], torch.arange(4) % 3).backward()


def test_one_layer_is_too_few():
    with pytest.raises(ConversionError, match="needs two layers"):
        pluribus.ensemble(nn.Linear(3, 2), MIMO(2))


def test_a_frozen_first_layer_is_told():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    assert "frozen" not in words(pluribus.ensemble(net, pluribus.MIMO(members=2)).describe())
    net[0].requires_grad_(False)
    assert "the first layer, 0, is frozen" in words(pluribus.ensemble(net, pluribus.MIMO(members=2)).describe())
    assert "is frozen" not in words(pluribus.ensemble(net, pluribus.MIMO(members=2, init="fresh")).describe())


def test_a_network_that_is_too_small_is_told():
    small = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))  # 67 weights
    told = words(pluribus.ensemble(small, MIMO(members=2)).describe())
    assert "too small for 2 members? It has 33 weights a member" in told
    assert "fewer than 3,000" in told
    assert "or input_repetition=0.6" not in told
    wide = nn.Sequential(nn.Linear(4, 1000), nn.ReLU(), nn.Linear(1000, 3))  # 8,003 weights
    assert "too small" not in words(pluribus.ensemble(wide, MIMO(members=2)).describe())
    told = words(pluribus.ensemble(wide, MIMO(members=2, input_repetition=0.3)).describe())
    assert "4,001 weights a member; with input_repetition=0.3, networks with fewer than 7,000" in told
    assert "or input_repetition=0.6" in told
    regression = pluribus.ensemble(small, MIMO(members=2), task="regression")
    assert "too small" not in words(regression.describe())


def test_the_smallest_networks_are_those_that_were_measured():
    """No network with fewer weights a member gained 2 %, and the next larger one of those measured did."""
    found = json.loads(CAPACITY.read_text())["cells"]
    gains: dict[float, dict[float, float]] = {}
    for name, width in itertools.product(("digits", "MNIST"), (0.125, 0.25, 0.5, 1, 2, 4)):
        for count, share, times in itertools.product(capacity.MEMBERS, capacity.SHARES, capacity.REPETITIONS):
            cells = {key: cell["found"] for key, cell in found.items()}
            ours = capacity.collect(cells, name, width, capacity.name_mimo(count, share, times))
            theirs = capacity.collect(cells, name, width, capacity.name_single(times))
            if ours:
                gain = 1 - capacity.average(ours, "calibrated_nll") / capacity.average(theirs, "calibrated_nll")
                each = capacity.average(theirs, "weights") / count
                gains.setdefault(share, {})[each] = max(gain, gains.get(share, {}).get(each, -1.0))
    for share, least in SMALLEST:
        assert max(gain for each, gain in gains[share].items() if each < least) < 0.02
        smallest = min(each for each, gain in gains[share].items() if gain >= 0.02)
        assert 0 <= smallest - least < 0.06 * least
