"""Late branching: where it happens, that it never changes a number, and what happens where it cannot."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import BatchEnsemble, MCDropout, Mixture, Multihead, TreeNet, Variance
from tests.networks import DenseCNN, NestedMLP, ResidualCNN, Transformer, images, tokens, vectors, words


def branch(net, spec, x) -> tuple[str, str]:
    return tuple(pluribus.ensemble(net, spec, example=x).executor.plan.branch)


def test_the_batch_is_expanded_at_the_deepest_consistent_point():
    assert branch(NestedMLP(), Variance(), vectors()) == ("layer", "body.2.0")
    assert branch(ResidualCNN(), Variance(include="blocks.2.conv2"), images()) == ("module", "blocks.2")  # the skip crosses
    assert branch(ResidualCNN(), TreeNet(split="blocks.1"), images()) == ("layer", "blocks.1")
    assert branch(DenseCNN(), Variance(include="layers.1.5"), images()) == ("input", "")  # every layer sees every other
    assert branch(Transformer(), Multihead(), tokens()) == ("layer", "head")
    assert branch(Transformer(), Variance(include="encoder.layers.1.linear1"), tokens()) == ("module", "encoder.layers.1")


class BatchSecond(nn.Module):
    """Keeps the batch on the second axis inside, as torch's recurrent and attention modules do by default."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=False, dropout=0.0)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x).transpose(0, 1)).mean(0))


@pytest.mark.parametrize("length", [2, 3, 4, 6])  # some of them multiples of M, some equal to the batch
def test_a_batch_on_another_axis_runs_the_members_one_after_the_other(length):
    ensemble = pluribus.ensemble(BatchSecond().double(), BatchEnsemble(members=2)).eval()
    x = torch.randn(3, length, 4, dtype=torch.double)
    answers = ensemble(x)
    assert ensemble.executor.plan.branch.kind == "loop"
    assert "one after the other" in words(ensemble.describe())
    mixture = pluribus.ensemble(BatchSecond().double(), Mixture(members=2, parameters=2.0)).eval()
    torch.testing.assert_close(mixture(x)[0], mixture.member(0)(x), rtol=0, atol=1e-10)
    for index in range(2):
        torch.testing.assert_close(ensemble.member(index)(x), answers[index], rtol=0, atol=1e-10)
    ensemble.train().loss(x, torch.arange(3)).backward()


class Folding(nn.Module):
    """Time folded into the batch; row-major keeps members apart, time-major does not."""

    def __init__(self, time_major: bool) -> None:
        super().__init__()
        self.time_major = time_major
        self.frame, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        size, time = x.shape[:2]
        if self.time_major:
            frames = self.frame(x.transpose(0, 1).reshape(time * size, 4)).view(time, size, 8).mean(0)
        else:
            frames = self.frame(x.reshape(size * time, 4)).view(size, time, 8).mean(1)
        return self.head(torch.relu(frames))


@pytest.mark.parametrize("time_major", [False, True])
def test_time_folded_into_the_batch_is_never_taken_for_members(time_major):
    ensemble = pluribus.ensemble(Folding(time_major).double(), BatchEnsemble(members=3)).eval()
    x = torch.randn(4, 6, 4, dtype=torch.double)
    answers = ensemble(x)
    for index in range(3):
        torch.testing.assert_close(ensemble.member(index)(x), answers[index], rtol=0, atol=1e-10)
    assert ensemble.executor.plan.branch.kind == ("loop" if time_major else "input")


class Masked(nn.Module):
    """A block that also takes a table as long as the sequence: not a batch, though it may have the batch's length."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.3)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype)
        return self.head(self.block(self.stem(x), mask).mean(1))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 10])
def test_what_is_no_batch_is_not_expanded_whatever_its_length(size):
    x = torch.randn(size, 5, 4, dtype=torch.double)
    assert pluribus.ensemble(Masked().double(), MCDropout(samples=3)).eval()(x).shape == (3, size, 3)
    tree = pluribus.ensemble(Masked().double(), TreeNet(members=2, split="block")).eval()
    answers = tree(x)
    for index in range(2):
        torch.testing.assert_close(tree.member(index)(x), answers[index], rtol=0, atol=1e-10)


class Centred(nn.Module):
    """Looks at the whole batch: no branched batch gives the members' own answers. Starts with a layer of zeros."""

    def __init__(self, zeros: bool) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(4, 8), nn.Linear(8, 3)
        if zeros:
            nn.init.zeros_(self.head.weight), nn.init.zeros_(self.head.bias)

    def forward(self, x):
        h = self.stem(x)
        return self.head(h - h.mean(0))


@pytest.mark.parametrize("zeros", [False, True])
def test_a_network_that_mixes_its_rows_is_noticed_even_behind_a_layer_of_zeros(zeros):
    ensemble = pluribus.ensemble(Centred(zeros), BatchEnsemble(members=2, include="stem"))
    before = [p.clone() for p in ensemble.parameters()]
    ensemble(torch.randn(5, 4))
    assert ensemble.executor.plan.branch.kind == "loop"
    assert all(torch.equal(a, b) for a, b in zip(before, ensemble.parameters(), strict=True))


def test_members_that_are_still_alike_do_not_hide_a_mistake():
    ensemble = pluribus.ensemble(Folding(time_major=True).double(), BatchEnsemble(members=3, init="ones", batches="split"))
    ensemble(torch.randn(4, 6, 4, dtype=torch.double))
    assert ensemble.executor.plan.branch.kind == "loop"


def test_the_first_pass_may_be_in_training_and_leaves_statistics_alone():
    net = ResidualCNN().train()
    ensemble = pluribus.ensemble(net, BatchEnsemble(members=2))
    ensemble.executor.prepare(ensemble, images(4))
    assert ensemble.training
    assert torch.equal(ensemble.net.stem[1].running_mean, net.stem[1].running_mean)
    assert ensemble.net.stem[1].num_batches_tracked == 0


def test_converted_layers_that_never_run_are_an_error():
    class Idle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.idle = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x):
            return self.used(x)

    with pytest.warns(UserWarning, match="did not run"), pytest.raises(pluribus.ConversionError, match="never runs"):
        pluribus.ensemble(Idle(), BatchEnsemble(include="idle"))(torch.randn(2, 4))
    with pytest.raises(pluribus.ConversionError, match="it did not run on the example"):
        pluribus.ensemble(Idle(), Variance(include="idle"), example=torch.randn(2, 4))


def test_a_first_pass_that_hides_the_axis_is_looked_through():
    """Zeros through layers without bias, or a layer scale of nearly nothing: no member would differ in the end."""

    class Scaled(Folding):
        def __init__(self) -> None:
            super().__init__(time_major=True)
            self.frame = nn.Linear(4, 8, bias=False)
            self.scale = nn.Parameter(torch.tensor(1e-6))

        def forward(self, x):
            return x.mean((1, 2)).unsqueeze(1) + self.scale * super().forward(x)

    ensemble = pluribus.ensemble(Scaled(), BatchEnsemble(members=2), example=torch.zeros(2, 4, 4))
    assert ensemble.executor.plan.branch.kind == "loop"


class Experts(nn.Module):
    """Sends each row to one of two experts, by its content."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.experts, self.head = (
            nn.Linear(4, 8),
            nn.ModuleList([nn.Linear(8, 8) for _ in range(2)]),
            nn.Linear(8, 3),
        )

    def forward(self, x):
        h = self.stem(x)
        chosen, out = h[:, 0] > 0, torch.zeros_like(h)
        out[chosen], out[~chosen] = self.experts[0](h[chosen]), self.experts[1](h[~chosen])
        return self.head(torch.relu(out))


def test_rows_that_are_picked_by_their_content_are_never_taken_for_members():
    ensemble = pluribus.ensemble(Experts().double(), BatchEnsemble(members=2)).eval()
    for size in (2, 16, 7, 16, 1, 16):
        x = torch.randn(size, 4, dtype=torch.double)
        answers = ensemble(x)
        for index in range(2):
            torch.testing.assert_close(ensemble.member(index)(x), answers[index], rtol=0, atol=1e-10)


def test_a_layer_that_gets_no_rows_in_the_first_pass_is_no_obstacle():
    net = Experts().double()
    with torch.no_grad():
        net.stem.bias[0] = 100.0  # whatever the rows are, the first expert gets them
    ensemble = pluribus.ensemble(net, BatchEnsemble(members=2)).eval()
    x = torch.randn(6, 4, dtype=torch.double)
    for index in range(2):
        torch.testing.assert_close(ensemble.member(index)(x), ensemble(x)[index], rtol=0, atol=1e-10)


def test_inputs_of_another_length_are_looked_at_anew():
    ensemble = pluribus.ensemble(Folding(time_major=True).double(), BatchEnsemble(members=2)).eval()
    ensemble(torch.randn(4, 1, 4, dtype=torch.double))  # one time step: nothing to mistake
    assert ensemble.executor.plan.branch.kind != "loop"
    x = torch.randn(4, 4, 4, dtype=torch.double)
    answers = ensemble(x)
    assert ensemble.executor.plan.branch.kind == "loop"
    torch.testing.assert_close(ensemble.member(1)(x), answers[1], rtol=0, atol=1e-10)

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x):
            h = x[:, 0]
            for step in range(x.shape[1]):
                h = torch.tanh(self.cell(h + x[:, step]))
            return self.head(h)

    ensemble = pluribus.ensemble(Recurrent().double(), BatchEnsemble(members=2)).eval()
    for length in (1, 3, 2):
        x = torch.randn(4, length, 4, dtype=torch.double)
        torch.testing.assert_close(ensemble(x)[1], ensemble.member(1)(x), rtol=0, atol=1e-10)


def test_layers_that_do_not_influence_the_output_are_refused():
    class TwoHeads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.label, self.box = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 4)

        def forward(self, x):
            h = self.body(x)
            return self.label(h), self.box(h)

    x = torch.randn(3, 4)
    with pytest.raises(pluribus.ConversionError, match=r"box\) does not influence the output"):
        pluribus.ensemble(TwoHeads(), Multihead(), output=0)(x)
    assert pluribus.ensemble(TwoHeads(), Multihead(last="label"), output=0)(x).shape == (3, 3, 3)


@pytest.mark.parametrize("batches", ["tile", "split"])
def test_gradient_checkpointing_recomputes_the_same(batches):
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(NestedMLP):
        def forward(self, x):
            x = self.stem(x)
            for block in self.body:
                x = checkpoint(block, x, use_reentrant=False)
            return self.head(x)

    gradients = []
    x, y = vectors(6, torch.double), torch.arange(6) % 3
    for network in (NestedMLP, Checkpointed):
        torch.manual_seed(0)
        ensemble = pluribus.ensemble(network().double(), BatchEnsemble(members=2, batches=batches))
        ensemble.loss(x, y).backward()
        gradients.append([p.grad for p in ensemble.parameters()])
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b)


def test_several_inputs_come_as_a_tuple_or_a_dictionary():
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.head = nn.Linear(4, 8), nn.Linear(3, 8), nn.Linear(8, 2)

        def forward(self, a, b):
            return self.head(torch.relu(self.a(a) + self.b(b)))

    a, b = torch.randn(5, 4, dtype=torch.double), torch.randn(5, 3, dtype=torch.double)
    for spec in (BatchEnsemble(members=3), BatchEnsemble(members=3, batches="split"), Multihead()):
        ensemble = pluribus.ensemble(Two().double(), spec)
        answers = ensemble.eval()((a, b))
        torch.testing.assert_close(ensemble({"a": a, "b": b}), answers)
        assert ensemble.executor.plan.branch.kind in ("layer", "input")
        torch.testing.assert_close(ensemble.member(1)(a, b), answers[1], rtol=0, atol=1e-10)
        torch.testing.assert_close(ensemble.predict((a, b), batch_size=2).outputs, answers)
        ensemble.loss((a, b), torch.arange(5) % 2).backward()
    with pytest.raises(ValueError, match="got sizes"):
        pluribus.ensemble(Two().double(), Multihead())((a, b[:3]))


@pytest.mark.parametrize("members", [2, 5, 20])
def test_the_search_runs_two_or_three_rows_in_evaluation_mode_about_once_for_each_member(members):
    rows, net = [], NestedMLP().train()
    ensemble = pluribus.ensemble(net, BatchEnsemble(members=members))
    hook = lambda module, args: rows.append((len(args[0]), module.training))  # noqa: E731
    ensemble.net.register_forward_pre_hook(hook)
    ensemble(vectors(50))
    assert rows[-1] == (50, True)
    assert len(rows) - 1 <= members + 12
    assert all(count <= 3 * members and not training for count, training in rows[:-1])
