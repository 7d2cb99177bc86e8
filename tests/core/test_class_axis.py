"""Classes on the last axis, as language models have them, and targets that do not count."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pluribus
from pluribus import MIMO, BatchEnsemble, DeepEnsemble, MCDropout, Multihead, Predictive, Single
from pluribus.metrics import accuracy, brier, ece, nll

WORDS, LENGTH = 7, 5
LAST, FIRST = {"class_axis": -1}, {}


class Tagger(nn.Module):
    """Tokens `[B, T]` → logits of words, `[B, T, V]`, or with classes first, `[B, V, T]`."""

    def __init__(self, first: bool = False) -> None:
        super().__init__()
        self.embed, self.body, self.head = nn.Embedding(WORDS, 8), nn.Linear(8, 8), nn.Linear(8, WORDS)
        self.dropout, self.first = nn.Dropout(0.2), first

    def forward(self, tokens):
        logits = self.head(self.dropout(torch.relu(self.body(self.embed(tokens)))))
        return logits.transpose(1, 2) if self.first else logits


def draw_rows(rows: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = torch.randint(0, WORDS, (rows, LENGTH)), torch.randint(0, WORDS, (rows, LENGTH))
    y[:, -1] = -100
    y[0] = -100
    return x, y


def make_both(spec: pluribus.Spec) -> tuple[pluribus.Ensemble, pluribus.Ensemble]:
    """The same ensemble with classes on the last axis, and on the axis after the batch."""
    torch.manual_seed(0)
    net, other = Tagger().double(), Tagger(first=True).double()
    other.load_state_dict(net.state_dict())
    made = []
    for each, options in ((net, LAST), (other, FIRST)):
        torch.manual_seed(1)
        made.append(pluribus.ensemble(each, spec, example=draw_rows(2)[0], **options))
    return made[0], made[1]


@pytest.mark.parametrize("spec", [Single(), BatchEnsemble(3), DeepEnsemble(2), Multihead(2), MIMO(2)], ids=lambda s: s.name)
def test_the_axis_changes_the_shape_of_answers_and_nothing_else(spec):
    last, first = make_both(spec)
    x, y = draw_rows()
    for mode in (True, False):
        losses = []
        for ensemble in (last, first):
            torch.manual_seed(2)
            losses.append(ensemble.train(mode).loss(x, y))
        torch.testing.assert_close(*losses)
    p, q = last.predict(x), first.predict(x)
    assert p.outputs.shape == (last.members, 6, LENGTH, WORDS)
    assert p.probs.shape == (6, LENGTH, WORDS)
    for name in ("labels", "entropy", "expected_entropy", "mutual_information", "disagreement", "confidence", "is_finite"):
        torch.testing.assert_close(getattr(p, name), getattr(q, name), msg=name)
    for name, axis in (("probs", 1), ("log_probs", 1), ("members", 2), ("member_log_probs", 2)):
        torch.testing.assert_close(getattr(p, name), getattr(q, name).movedim(axis, -1), msg=name)
    torch.testing.assert_close(p.nll(y), q.nll(y))
    known = y != -100
    for metric in (accuracy, nll):
        assert metric(p, y) == pytest.approx(metric(q, y), abs=1e-12)
        assert metric(p, y) == pytest.approx(metric(p.select_positions(known), y[known]), abs=1e-12)
    tokens, others = p.select_positions(known), q.select_positions(known)
    assert tokens.outputs.shape == (last.members, int(known.sum()), WORDS)
    for metric in (brier, ece):
        assert metric(tokens, y[known]) == pytest.approx(metric(others, y[known]), abs=1e-12)
        full = y.clamp_min(0)
        assert metric(p, full) == pytest.approx(metric(q, full), abs=1e-12)
    short = last.predict(x, members=False)
    torch.testing.assert_close(short.probs, p.probs)
    torch.testing.assert_close(short.labels, p.labels)
    torch.testing.assert_close(short.select_positions(known).probs, tokens.probs)
    torch.testing.assert_close(short.select_positions(known).entropy, tokens.entropy)
    torch.testing.assert_close(p.summarize().probs, p.probs)


def test_the_loss_is_the_mean_over_targets_that_count():
    ensemble = pluribus.ensemble(Tagger(), Single(), class_axis=-1).eval()
    x, y = draw_rows()
    logits = ensemble(x)[0]
    known = y != -100
    torch.testing.assert_close(ensemble.loss(x, y), F.cross_entropy(logits[known], y[known]))
    assert ensemble.predict(x).nll(y)[~known].eq(0).all()


def test_soft_targets_have_the_shape_of_the_outputs():
    ensemble = pluribus.ensemble(Tagger(), Single(), class_axis=-1).eval()
    x, y = draw_rows()
    y = y.clamp_min(0)
    soft = F.one_hot(y, WORDS).float()
    torch.testing.assert_close(ensemble.loss(x, soft), ensemble.loss(x, y))


def test_labels_of_places_ask_for_the_axis_if_it_is_missing():
    ensemble = pluribus.ensemble(Tagger(), Single())
    with pytest.raises(ValueError, match=r"labels of the shape \[6, 5\].*\[6, 5, 7\].*class_axis=-1"):
        ensemble.loss(*draw_rows())


def test_members_are_asked_until_every_token_is_sure():
    last, first = make_both(DeepEnsemble(3))
    x, _ = draw_rows()
    p, q = last.predict(x, until=0.2), first.predict(x, until=0.2)
    assert torch.equal(p.used, q.used)
    torch.testing.assert_close(p.probs, q.probs.movedim(1, -1))
    torch.testing.assert_close(p.entropy, q.entropy)


def test_a_wrong_axis_is_refused():
    with pytest.raises(ValueError, match="class_axis must be 1, the axis after the batch, or -1"):
        pluribus.ensemble(Tagger(), Single(), class_axis=2)
    with pytest.raises(ValueError, match="this is a regression: leave it out"):
        pluribus.ensemble(Tagger(), Single(), class_axis=-1, task="regression")
    with pytest.raises(ValueError, match=r"boolean mask of the shape \[6, 5\]"):
        Predictive(torch.zeros(1, 6, 5, 7), class_axis=-1).select_positions(torch.ones(6, dtype=torch.bool))


def test_the_axis_is_saved_and_kept_by_frozen_and_folded_ensembles(tmp_path):
    ensemble = pluribus.ensemble(Tagger(), MCDropout(samples=3), class_axis=-1).eval()
    x, _ = draw_rows()
    ensemble.predict(x)
    again = pluribus.load(pluribus.save(ensemble, tmp_path / "e"), Tagger())
    assert again.predict(x).probs.shape == (6, LENGTH, WORDS)
    frozen = ensemble.freeze()
    torch.testing.assert_close(frozen.interpret(frozen.fold()(x)).probs, frozen.predict(x).probs)


def test_fit_and_its_scores_leave_out_targets_that_do_not_count():
    x, y = draw_rows(16)
    ensemble = pluribus.ensemble(Tagger(), BatchEnsemble(2), class_axis=-1)
    rows = DataLoader(TensorDataset(x, y), batch_size=8)
    history = pluribus.fit(ensemble, rows, rows, epochs=1)
    p = ensemble.predict(x)
    scores = history[-1]
    assert scores["validation_accuracy"] == pytest.approx(accuracy(p, y), abs=1e-6)
    assert scores["validation_nll"] == pytest.approx(nll(p, y), abs=1e-5)


def test_a_language_model_is_distilled():
    x, y = draw_rows(16)
    teacher = pluribus.ensemble(Tagger(), DeepEnsemble(2), class_axis=-1)
    student = pluribus.ensemble(Tagger(), Single(), class_axis=-1)
    pluribus.distil(teacher, student, DataLoader(TensorDataset(x, y.clamp_min(0)), batch_size=8), epochs=1)
    assert student.predict(x).probs.shape == (16, LENGTH, WORDS)
