"""Predictions inside predictions: from hooks, from modules, from callbacks of `fit`, of the same ensemble and of others."""

import threading

import lightning as L
import pytest
import torch
from torch import nn

import pluribus
from pluribus import BatchEnsemble, DeepEnsemble, Inner, MCDropout, PluribusError, Single, TreeNet

SPECS = [Single(), Inner(copies=2), BatchEnsemble(members=3), MCDropout(samples=4), DeepEnsemble(members=2)]
X, ROWS = torch.randn(7, 4), torch.randn(5, 4)


def small_net():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.Dropout(0.5), nn.Linear(6, 3))


def add_hook(ensemble, hook):
    next(module for module in ensemble.modules() if isinstance(module, nn.ReLU)).register_forward_hook(hook)


@pytest.mark.parametrize("inner", SPECS, ids=str)
@pytest.mark.parametrize("outer", SPECS[1:4], ids=str)
def test_a_hook_may_predict_with_another_ensemble(outer, inner):
    one, other = pluribus.ensemble(small_net(), outer), pluribus.ensemble(small_net(), inner)
    torch.manual_seed(0)
    expected, found = one.predict(X).outputs, []
    add_hook(one, lambda *_: found.append(other.predict(ROWS).outputs))
    torch.manual_seed(0)
    answer = one.predict(X).outputs
    assert {part.shape for part in found} == {(other.count_members(training=False), 5, 3)}
    if not other.sampled:
        torch.testing.assert_close(found[0], other.predict(ROWS).outputs)
        torch.testing.assert_close(answer, expected)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_hook_that_guards_itself_may_predict_with_its_own_ensemble(spec):
    ensemble, found = pluribus.ensemble(small_net(), spec), []

    def hook(*_):
        if not found:
            found.append(None)
            found[0] = ensemble.predict(ROWS).outputs.shape

    add_hook(ensemble, hook)
    assert ensemble.predict(X).outputs.shape[1:] == (7, 3)  # also in the search for the plan
    assert found == [(ensemble.count_members(training=False), 5, 3)]


@pytest.mark.parametrize("spec", [Single(), BatchEnsemble(members=3), DeepEnsemble(members=2, stacked=False)], ids=str)
def test_a_hook_may_wait_for_a_prediction_in_another_thread_also_in_the_first_pass(spec):
    ensemble, found = pluribus.ensemble(small_net(), spec), []

    def hook(*_):
        if not found:
            found.append(None)
            thread = threading.Thread(target=lambda: found.append(ensemble.predict(ROWS).outputs), daemon=True)
            thread.start()
            thread.join(60)

    add_hook(ensemble, hook)
    answer = ensemble.predict(X).outputs
    assert len(found) == 2, "the other thread waits for the first pass, which waits for it"
    torch.testing.assert_close(found[1], ensemble.predict(ROWS).outputs)
    torch.testing.assert_close(answer, ensemble.predict(X).outputs)


@pytest.mark.parametrize("is_prepared", [False, True])
@pytest.mark.parametrize("spec", [Single(), BatchEnsemble(members=3), DeepEnsemble(members=2)], ids=str)
def test_a_prediction_that_calls_itself_without_end_is_told_so(spec, is_prepared):
    ensemble = pluribus.ensemble(small_net(), spec)
    if is_prepared:
        ensemble.predict(X)
    add_hook(ensemble, lambda *_: ensemble.predict(ROWS) and None)
    with pytest.raises(PluribusError, match="predict calls itself without end"):
        ensemble.predict(X)


def test_an_endless_recursion_of_the_network_itself_stays_what_it_is():
    class Endless(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x):
            return self.layer(self.forward(x))

    with pytest.raises(RecursionError):
        pluribus.ensemble(Endless(), Single()).predict(X)


class Student(nn.Module):
    """A network with an ensemble inside, which it asks for a prediction."""

    def __init__(self, teacher) -> None:
        super().__init__()
        self.body, self.head, self.teacher = nn.Linear(4, 6), nn.Linear(6, 3), teacher

    def forward(self, x):
        return self.head(torch.relu(self.body(x))) + self.teacher.predict(x).probs


@pytest.mark.parametrize("inner", [BatchEnsemble(members=2), MCDropout(samples=4)], ids=str)
@pytest.mark.parametrize("outer", [BatchEnsemble(members=3), MCDropout(samples=5), DeepEnsemble(members=2)], ids=str)
def test_an_ensemble_inside_a_network_is_left_as_it_is_and_predicts(outer, inner):
    teacher = pluribus.ensemble(nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)), inner)
    ensemble = pluribus.ensemble(Student(teacher), outer)
    assert ensemble.predict(X).outputs.shape == (ensemble.count_members(training=False), 7, 3)
    assert all(not change.name.startswith("teacher.") for change in ensemble.conversion.changes)


def test_an_ensemble_that_every_member_has_for_itself_must_be_called():
    student = Student(pluribus.ensemble(small_net(), Single()))
    with pytest.raises(AttributeError, match="the network must call it, and not its predict"):
        pluribus.ensemble(student, TreeNet(members=2, split="head")).predict(X)


@pytest.mark.parametrize("spec", [BatchEnsemble(members=3), MCDropout(samples=4)], ids=str)
def test_a_callback_of_fit_may_predict(spec):
    ensemble, found = pluribus.ensemble(small_net(), spec), []

    class Look(L.Callback):
        def on_train_batch_start(self, *_):
            found.append(ensemble.predict(X).outputs.shape)

    pluribus.fit(ensemble, (torch.randn(8, 4), torch.arange(8) % 3), epochs=1, batch_size=4, progress=False, callbacks=[Look()])
    assert found == [(ensemble.count_members(training=False), 7, 3)] * 2
    assert ensemble.training
