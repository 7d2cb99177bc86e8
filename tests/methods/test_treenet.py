import warnings

import pytest
import torch
from torch import nn

import pluribus
from pluribus import ConversionError, MCDropout, TreeNet
from pluribus.core.members import PerMember
from tests.networks import Backwards, NestedMLP, ResidualCNN, Transformer, images, vectors


def own(ensemble) -> list[str]:
    return [name for name, module in ensemble.net.named_modules() if isinstance(module, PerMember)]


def test_everything_from_the_split_on_is_the_members_own():
    assert own(pluribus.ensemble(ResidualCNN(), TreeNet(split="blocks.1"))) == ["blocks.1", "blocks.2", "head"]
    assert own(pluribus.ensemble(ResidualCNN(), TreeNet(split="blocks.1.conv2"))) == [
        "blocks.1.conv2",
        "blocks.1.bn2",
        "blocks.1.shortcut",
        "blocks.2",
        "head",
    ]
    assert own(pluribus.ensemble(ResidualCNN(), TreeNet(split="head"))) == ["head"]


def test_the_trunk_runs_once():
    ensemble = pluribus.ensemble(ResidualCNN(), TreeNet(members=3, split="blocks.1")).eval()
    ensemble(images(4))
    rows = {}
    for name, module in ensemble.net.named_modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(lambda m, args, out, name=name: rows.setdefault(name, []).append(len(out)))
    ensemble(images(4))
    assert rows["stem.0"] == rows["blocks.0.conv2"] == [4]
    assert rows["blocks.1.copies.2.conv1"] == [4]


def test_without_a_split_it_is_about_halfway_between_two_blocks():
    assert own(pluribus.ensemble(ResidualCNN(), TreeNet())) == ["blocks.1", "blocks.2", "head"]
    assert own(pluribus.ensemble(NestedMLP(), TreeNet())) == ["body.1", "body.2", "head"]
    assert own(pluribus.ensemble(Transformer(), TreeNet()))[0] == "encoder.layers.1"


def test_branches_differ_and_the_first_keeps_the_network():
    net = ResidualCNN()
    branches = pluribus.ensemble(net, TreeNet(members=3)).net.head.copies
    assert torch.equal(branches[0].weight, net.head.weight)
    assert not torch.equal(branches[1].weight, branches[2].weight)
    assert branches[1].weight.std().item() == pytest.approx(net.head.weight.std().item(), rel=0.5)


def test_lists_of_modules_are_stepped_into():
    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.blocks = nn.Linear(4, 8), nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
            self.heads = nn.ModuleDict({"a": nn.Linear(8, 3)})

        def forward(self, x):
            x = self.stem(x)
            for block in self.blocks:
                x = torch.relu(block(x))
            return self.heads["a"](x)

    ensemble = pluribus.ensemble(Listed(), TreeNet(members=2, split="blocks.0"))
    assert own(ensemble) == ["blocks.0", "blocks.1", "heads.a"]
    assert ensemble(torch.randn(5, 4)).shape == (2, 5, 3)


def test_an_unknown_split_lists_what_could_be():
    with pytest.raises(ConversionError, match=r"names no module that runs(.|\n)*blocks\.1\.conv1"):
        pluribus.ensemble(ResidualCNN(), TreeNet(split="layer3"))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(torch.relu(self.body(self.embed(tokens).mean(1))))


def test_a_split_between_tied_weights_is_refused():
    with pytest.raises(ConversionError, match=r"head\.weight is tied to embed"):
        pluribus.ensemble(Tied(), TreeNet(split="head"))


def test_tied_weights_on_one_side_stay_tied_in_every_branch():
    net = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6))
    net[3].weight = net[1].weight
    ensemble = pluribus.ensemble(net, TreeNet(members=2, split="1"))
    for index in range(2):
        assert ensemble.net[1].copies[index].weight is ensemble.net[3].copies[index].weight


def test_a_layer_that_runs_later_than_it_was_registered_is_pointed_out():
    ensemble = pluribus.ensemble(Backwards(), TreeNet(split="body"))
    with pytest.warns(UserWarning, match="head runs after the split.*example="):
        ensemble(torch.randn(2, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ensemble = pluribus.ensemble(Backwards(), TreeNet(split="body"), example=torch.randn(2, 4))
    assert own(ensemble) == ["head", "body"]


# --- of MC dropout ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [ResidualCNN, NestedMLP])
def test_draws_of_a_branch_follow_one_another(make):
    """With a rate that drops nothing, members i·K to i·K + K − 1 answer as branch i of the tree without dropout."""
    x = (images if make is ResidualCNN else vectors)(5, torch.double)
    net = make().double()
    torch.manual_seed(0)
    tree = pluribus.ensemble(net, TreeNet(members=3), example=x).eval()
    torch.manual_seed(0)
    drawn = pluribus.ensemble(net, TreeNet(members=3, of=MCDropout(rate=1e-9, samples=2)), example=x).eval()
    assert drawn.members == 6
    torch.testing.assert_close(drawn(x), tree(x).repeat_interleave(2, 0), rtol=0, atol=1e-6)
    assert drawn.train().members == 3


def test_every_draw_of_every_branch_has_a_mask_of_its_own():
    """A branch of weights one answers the mean of what is kept, divided by 1 − rate: its mean and variance are known."""
    rate, units, rows = 0.25, 40, 4000
    net = nn.Sequential(nn.Linear(1, units), nn.Linear(units, 1)).double()
    drawn = pluribus.ensemble(net, TreeNet(members=2, split="1", of=MCDropout(rate=rate, samples=2)), task="regression").eval()
    with torch.no_grad():
        for parameter in drawn.parameters():
            parameter.zero_()
        drawn.net[0].bias.fill_(1.0)
        for branch, copy in enumerate(drawn.net[1].layer.copies):
            copy.weight.fill_((branch + 1) / units)
    torch.manual_seed(0)
    answers = drawn.predict(torch.zeros(rows, 1, dtype=torch.double)).outputs[..., 0]
    for member, scale in enumerate((1, 1, 2, 2)):
        # The variance of a mean of `units` numbers that are 1/(1 − rate) or 0 is rate / (1 − rate) / units.
        expected = scale * (rate / (1 - rate) / units) ** 0.5
        assert answers[member].mean() == pytest.approx(scale, abs=5 * expected / rows**0.5)
        assert answers[member].std() == pytest.approx(expected, rel=0.05)
    together = torch.corrcoef(answers)
    assert (together - torch.eye(4)).abs().max() < 0.08, "masks are independent: five standard errors of a correlation"


def test_all_before_the_first_dropout_runs_once():
    net = ResidualCNN()
    drawn = pluribus.ensemble(net, TreeNet(members=2, of=MCDropout(samples=5)), example=images(2)).eval()
    plain = pluribus.ensemble(net, TreeNet(members=2), example=images(2)).eval()
    trunk = [name for name, module in plain.net.named_modules() if isinstance(module, nn.Conv2d) and "copies" not in name]
    rows = []
    drawn.net.get_submodule(trunk[0]).register_forward_hook(lambda module, x, y: rows.append(len(y)))
    drawn(images(4))
    assert rows[-1] == 4


def test_dropout_of_the_network_stays_on_in_every_branch():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    drawn = pluribus.ensemble(net, TreeNet(members=2, split="2", of=MCDropout(samples=3)), example=torch.randn(2, 4)).eval()
    answers = drawn(torch.randn(6, 4))
    assert answers.shape == (6, 6, 3)
    assert len({tuple(row.flatten().tolist()) for row in answers}) == 6


def test_only_mc_dropout_may_be_in_the_branches():
    with pytest.raises(TypeError, match="of must be MCDropout"):
        TreeNet(of=pluribus.MIMO())
