import math

import pytest
import torch

from pluribus import Predictive


@pytest.fixture
def outputs():
    return 3 * torch.randn(5, 7, 4, dtype=torch.double)


def test_probabilities_are_averaged_never_logits(outputs):
    p = Predictive(outputs)
    expected = outputs.softmax(2).mean(0)
    torch.testing.assert_close(p.probs, expected)
    assert not torch.allclose(p.probs, outputs.mean(0).softmax(1))
    torch.testing.assert_close(p.labels, expected.argmax(1))
    torch.testing.assert_close(p.confidence, expected.amax(1))
    torch.testing.assert_close(p.members, outputs.softmax(2))


def test_the_nll_is_a_log_mean_exp_and_stays_finite(outputs):
    targets = torch.randint(0, 4, (7,))
    p = Predictive(outputs)
    torch.testing.assert_close(p.nll(targets), -p.probs[torch.arange(7), targets].log())
    far = Predictive(torch.tensor([[[1000.0, 0.0]], [[2000.0, 0.0]]]))
    torch.testing.assert_close(far.nll(torch.tensor([1])), torch.tensor([1000 + math.log(2)]))


def test_entropies_by_brute_force(outputs):
    p = Predictive(outputs)
    probs, members = p.probs, outputs.softmax(2)
    total = torch.stack([-sum(q * q.log() for q in row) for row in probs])
    own = torch.stack([sum(-sum(q * q.log() for q in members[m, b]) for m in range(5)) / 5 for b in range(7)])
    torch.testing.assert_close(p.entropy, total)
    torch.testing.assert_close(p.expected_entropy, own)
    torch.testing.assert_close(p.mutual_information, total - own)
    assert (p.mutual_information > 0).all()


def test_disagreement_is_the_share_of_pairs_that_differ(outputs):
    labels = outputs.argmax(2)
    pairs = [(i, j) for i in range(5) for j in range(i)]
    expected = torch.stack([torch.stack([labels[i, b] != labels[j, b] for i, j in pairs]).double().mean() for b in range(7)])
    torch.testing.assert_close(Predictive(outputs).disagreement.double(), expected, rtol=0, atol=1e-6)


def test_one_member_has_nothing_to_disagree_about(outputs):
    p = Predictive(outputs[:1])
    assert p.mutual_information.abs().max() < 1e-12
    assert p.disagreement.max() == 0


def test_certain_answers_have_no_entropy():
    p = Predictive(torch.tensor([[[1e4, 0.0, 0.0]]]))
    assert p.entropy.item() == 0
    assert p.confidence.item() == 1


def test_one_column_is_the_logit_of_a_yes():
    logits = torch.randn(3, 6, 1, dtype=torch.double)
    p = Predictive(logits)
    torch.testing.assert_close(p.probs[:, 1], logits.sigmoid().mean(0).squeeze(1))
    torch.testing.assert_close(Predictive(logits.squeeze(2)).probs, p.probs)


def test_half_precision_is_computed_in_single(outputs):
    half = outputs.bfloat16()
    assert Predictive(half).probs.dtype == torch.float
    torch.testing.assert_close(Predictive(half).probs.sum(1), torch.ones(7))


def test_regression_has_a_mean_and_a_variance(outputs):
    p = Predictive(outputs, "regression")
    torch.testing.assert_close(p.mean, outputs.mean(0))
    torch.testing.assert_close(p.variance, ((outputs - outputs.mean(0)) ** 2).mean(0))
    torch.testing.assert_close(p.std, p.variance.sqrt())
    assert Predictive(outputs[:1], "regression").variance.max() == 0
    with pytest.raises(AttributeError, match="Convert with task='classification'"):
        _ = p.entropy


def test_parts_make_a_whole(outputs):
    whole = Predictive.cat([Predictive(outputs[:, :3]), Predictive(outputs[:, 3:])])
    assert len(whole) == 7
    assert torch.equal(whole.outputs, outputs)


def test_outputs_need_a_member_axis():
    with pytest.raises(ValueError, match=r"\[members, batch, …\]"):
        Predictive(torch.zeros(3))
