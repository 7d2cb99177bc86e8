"""Attention and recurrent modules as linear layers: the same answers, and the same modules again afterwards."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import pluribus
from pluribus import (
    MIMO,
    BatchEnsemble,
    DeepEnsemble,
    Inner,
    MCDropout,
    Mixture,
    Multihead,
    TreeNet,
    VariationalDropout,
)
from pluribus.core.taking_apart import KINDS, OPENED, put_together, take_apart
from tests.networks import Transformer, tokens, words

RECURRENT = [
    (nn.LSTM, {}),
    (nn.LSTM, {"batch_first": True, "num_layers": 2, "bidirectional": True}),
    (nn.LSTM, {"proj_size": 3, "num_layers": 2}),
    (nn.GRU, {"batch_first": True, "bias": False}),
    (nn.GRU, {"num_layers": 2, "bidirectional": True}),
    (nn.RNN, {}),
    (nn.RNN, {"nonlinearity": "relu", "batch_first": True}),
]


def open_one(module: nn.Module) -> nn.Module:
    opened = take_apart(nn.Sequential(module), KINDS)[0]
    assert isinstance(opened, OPENED)
    return opened


def check_same_module(opened: nn.Module, module: nn.Module) -> None:
    """Put together, it is of the same kind, with the same numbers under the same names."""
    put_together(opened)
    assert type(opened) is type(module)
    assert repr(opened) == repr(module)
    state = module.state_dict()
    assert list(opened.state_dict()) == list(state)
    assert all(torch.equal(tensor, state[name]) for name, tensor in opened.state_dict().items())


@pytest.mark.parametrize(("kind", "options"), RECURRENT, ids=str)
def test_an_opened_recurrent_module_answers_as_torchs_does(kind, options):
    module = kind(5, 7, **options).double().eval()
    opened, x = open_one(module), torch.randn(4, 6, 5, dtype=torch.double)
    answer, state = module(x)
    torch.testing.assert_close(opened(x), (answer, state))
    torch.testing.assert_close(opened(x, state), module(x, state))
    torch.testing.assert_close(opened(x[0]), module(x[0]))
    check_same_module(opened, module)
    torch.testing.assert_close(opened(x), (answer, state))


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize(("kind", "options"), RECURRENT[:5], ids=str)
def test_an_opened_recurrent_module_takes_packed_sequences(kind, options, is_sorted):
    module = kind(5, 7, **options).double().eval()
    lengths = torch.tensor([6, 4, 2, 1] if is_sorted else [2, 6, 1, 4])
    packed = pack_padded_sequence(torch.randn(4, 6, 5, dtype=torch.double), lengths, True, is_sorted)
    (mine, my_state), (theirs, state) = open_one(module)(packed), module(packed)
    torch.testing.assert_close(my_state, state)
    assert torch.equal(mine.batch_sizes, theirs.batch_sizes)
    torch.testing.assert_close(pad_packed_sequence(mine)[0], pad_packed_sequence(theirs)[0])


@pytest.mark.parametrize(
    "options",
    [{}, {"batch_first": True}, {"batch_first": True, "bias": False}, {"batch_first": True, "kdim": 5, "vdim": 6}],
    ids=str,
)
def test_opened_attention_answers_as_torchs_does(options):
    module = nn.MultiheadAttention(8, 2, **options).double().eval()
    opened = open_one(module)
    q, k, v = (torch.randn(3, 4, options.get(name, 8), dtype=torch.double) for name in ("", "kdim", "vdim"))
    rows, length = (3, 4) if options.get("batch_first") else (4, 3)
    causal = nn.Transformer.generate_square_subsequent_mask(length, dtype=torch.double)
    padding = torch.zeros(rows, length, dtype=torch.double)
    padding[0, -1] = -torch.inf
    calls = [
        {},
        {"need_weights": False},
        {"average_attn_weights": False},
        {"attn_mask": causal},
        {"attn_mask": causal, "is_causal": True, "need_weights": False},
        {"attn_mask": causal.isinf()},
        {"attn_mask": causal.expand(rows * 2, length, length)},
        {"key_padding_mask": padding.isinf()},
        {"key_padding_mask": padding, "attn_mask": causal, "need_weights": False},
    ]
    for call in calls:
        torch.testing.assert_close(opened(q, k, v, **call), module(q, k, v, **call), msg=str(call))
    torch.testing.assert_close(opened(q[0], k[0], v[0]), module(q[0], k[0], v[0]))
    check_same_module(opened, module)
    torch.testing.assert_close(opened(q, k, v), module(q, k, v))


class Reader(nn.Module):
    """A recurrent network with time first, held in a list besides."""

    def __init__(self, kind: type[nn.RNNBase] = nn.LSTM) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.rnn = kind(6, 8, num_layers=2)
        self.head = nn.Linear(8, 3)
        self.steps = [self.rnn]

    def forward(self, tokens):
        states, _ = self.steps[0](self.embedding(tokens).transpose(0, 1))
        return self.head(states[-1])


EXACT = [
    BatchEnsemble(2),
    Mixture(2, parameters=3.0),
    Inner(2),
    MIMO(2),
    Multihead(2),
    TreeNet(2, split="rnn"),
    DeepEnsemble(2),
]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("spec", EXACT, ids=lambda spec: spec.name)
def test_recurrent_networks_become_ensembles_whose_members_have_torchs_own_modules(spec, kind, tmp_path):
    net = Reader(kind).double()
    ensemble = pluribus.ensemble(net, spec, example=tokens(2)).eval()
    x = tokens(5)
    answers = ensemble(x)
    for index in range(ensemble.members):
        member = ensemble.member(index)
        if spec.name != "mimo":  # whose members have heads of their own
            assert list(member.state_dict()) == list(net.state_dict())
        assert type(member.rnn) is kind
        assert member.rnn is member.steps[0]
        torch.testing.assert_close(member(x), answers[index], rtol=0, atol=1e-10)
    again = pluribus.load(pluribus.save(ensemble, tmp_path / "e"), Reader(kind).double()).eval()
    assert torch.equal(again(x), answers)
    loss = ensemble.train().loss(x, torch.randint(0, 3, (5,)))
    loss.backward()
    assert all(p.grad is not None for name, p in ensemble.named_parameters() if "rnn" in name)


def test_a_batch_ensemble_converts_every_weight_of_a_recurrent_module():
    described = pluribus.ensemble(Reader(), BatchEnsemble(2)).describe(tokens(2))
    assert {"rnn.ih_l0", "rnn.hh_l0", "rnn.ih_l1", "rnn.hh_l1", "head"} == set(described.changed)


@pytest.mark.parametrize("spec", [MCDropout(samples=3), VariationalDropout(samples=3)], ids=lambda spec: spec.name)
def test_frozen_draws_of_recurrent_networks_are_plain(spec):
    frozen = pluribus.ensemble(Reader().double(), spec, example=tokens(2)).eval().freeze()
    x = tokens(4)
    answers = frozen(x)
    torch.testing.assert_close(frozen.fold()(x), answers, rtol=0, atol=1e-10)
    assert not torch.equal(answers[0], answers[1])


def test_what_a_method_leaves_alone_is_the_users_own_module():
    ensemble = pluribus.ensemble(Reader(), BatchEnsemble(2, include="head"))
    assert type(ensemble.net.rnn) is nn.LSTM
    assert ensemble.net.rnn is ensemble.net.steps[0]
    attention = pluribus.ensemble(Transformer(), Inner(include="head")).net.encoder.layers[0].self_attn
    assert type(attention) is nn.MultiheadAttention


def test_modules_that_cannot_be_taken_apart_stay_whole():
    normalised = Reader()
    nn.utils.parametrizations.weight_norm(normalised.rnn, "weight_hh_l0")
    assert type(take_apart(normalised, KINDS)) is Reader
    tied = Reader()
    tied.other = nn.Linear(8, 32, bias=False)
    tied.other.weight = tied.rnn.weight_hh_l0
    assert take_apart(tied, KINDS) is tied
    odd = nn.Sequential(nn.MultiheadAttention(8, 2, add_zero_attn=True))
    assert take_apart(odd, KINDS) is odd


def test_a_file_from_before_attention_was_converted_still_loads(tmp_path, monkeypatch):
    """Such a file says nothing about what was taken apart, and has attention whole."""
    with monkeypatch.context() as patched:
        patched.setattr(BatchEnsemble, "takes_apart", ())
        ensemble = pluribus.ensemble(Transformer(), BatchEnsemble(2)).eval()
        path = pluribus.save(ensemble, tmp_path / "old")
    again = pluribus.load(path, Transformer()).eval()
    x = tokens(3)
    assert torch.equal(again(x), ensemble(x))


def test_hooks_on_attention_go_on_running():
    net, calls = Transformer(), []
    net.encoder.layers[0].self_attn.register_forward_hook(lambda *_: calls.append(1))
    ensemble = pluribus.ensemble(net, BatchEnsemble(2)).eval()
    ensemble.predict(tokens(2))
    before = len(calls)
    assert before
    ensemble.member(0)(tokens(2))
    assert len(calls) == before + 1


def test_the_description_names_what_was_converted_by_its_place():
    text = words(pluribus.ensemble(Transformer(), BatchEnsemble(2)).describe())
    assert "encoder.layers.0.self_attn.out_proj: Linear" in text
