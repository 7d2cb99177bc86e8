"""Students learn the members of their teacher: the loss, who learns whom, and how a run goes on."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pluribus
from pluribus import MIMO, BatchEnsemble, DeepEnsemble, MCDropout, Multihead, Single, Variance, metrics
from pluribus.core.errors import FileError
from pluribus.training.checkpoint_files import read_checkpoint
from pluribus.training.checkpoints import list_checkpoints
from pluribus.training.distillation import Teacher, make_distillation_criterion
from pluribus.training.fit import fit
from pluribus.training.settings import Settings
from tests.training.test_fit import QUIET, blobs, net


def make_teacher(members=3, seed=5):
    """Members that differ a lot, because their weights are large."""
    base = net()
    torch.manual_seed(seed)
    ensemble = pluribus.ensemble(base, DeepEnsemble(members=members))
    with torch.no_grad():
        for parameter in ensemble.parameters():
            parameter.mul_(1.5)
    return ensemble


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_the_gradient_of_the_loss_is_that_by_hand(weight, temperature):
    """∂/∂z = w T (softmax(z/T) − p^T) + (1 − w)(softmax(z) − y), over the rows: T² by 1/T from the chain rule."""
    output = torch.randn(8, 3, dtype=torch.double, requires_grad=True)
    soft = (torch.randn(8, 3, dtype=torch.double) / temperature).softmax(1)
    hard = F.one_hot(torch.arange(8) % 3, 3).double()
    criterion = make_distillation_criterion("classification", Settings(teacher_weight=weight, teacher_temperature=temperature))
    criterion(output, torch.stack([soft, hard], 1)).backward()
    z = output.detach()
    expected = weight * temperature * ((z / temperature).softmax(1) - soft) + (1 - weight) * (z.softmax(1) - hard)
    torch.testing.assert_close(output.grad, expected / 8)


def test_one_member_answers_each_row_and_all_answer_as_often():
    """20 rows and 3 members: 7, 7 and 6 rows; over many steps the mean target is the mean of the members."""
    x, y = blobs(20)
    teacher, student = make_teacher(), pluribus.ensemble(net(), Single())
    outputs = teacher.predict(x).outputs
    answered = Teacher(teacher).answer_by_one(x)
    assert answered.shape == (1, 20, 3)
    who = (answered - outputs).abs().amax(2).argmin(0)
    torch.testing.assert_close(answered[0], outputs[who, torch.arange(20)])
    assert sorted(who.bincount().tolist()) == [6, 7, 7]
    targets = [Teacher(teacher).make_targets(student, x, y, 2.0, "one").values[:, 0, 0] for _ in range(400)]
    expected = (outputs / 2).softmax(2).mean(0)
    error = torch.stack(targets).std(0) / 20  # of the mean of 400 draws
    assert ((torch.stack(targets).mean(0) - expected).abs() <= 5 * error + 1e-6).all()


def test_the_members_of_several_teachers_are_drawn_alike():
    x, _ = blobs(8)
    others = make_teacher(members=2, seed=2)
    for parameter in others.parameters():
        parameter.data.mul_(1.1)  # the first members of both have the weights of one network
    both = Teacher([make_teacher(members=2, seed=1), others])
    answered, outputs = both.answer_by_one(x), both.answer(x)
    assert (answered - outputs).abs().amax(2).argmin(0).bincount().tolist() == [2, 2, 2, 2]


def test_a_student_with_several_members_needs_all_of_the_teacher():
    student = pluribus.ensemble(net(), Multihead(members=2))
    with pytest.raises(ValueError, match="teacher_members must be all for a student with 2 members"):
        fit(student, blobs(20), teacher=make_teacher(), teacher_members="one", epochs=1, **QUIET)


@pytest.mark.parametrize(
    "spec", [Multihead(members=4), BatchEnsemble(members=2), DeepEnsemble(members=2), MIMO(members=4)], ids=str
)
def test_member_m_learns_member_m_of_the_teacher(spec):
    """Of three members: the fourth head learns the first again. MIMO's rows are told by their labels."""
    x, y = blobs(20)
    teacher, student = make_teacher(), pluribus.ensemble(net(), spec)
    found = Teacher(teacher).make_targets(student, x, y, temperature=2.0)
    answers = (teacher.predict(x).outputs / 2).softmax(2)
    rows = torch.arange(20)
    torch.manual_seed(0)
    _, targets = found.deal(student, x)
    torch.manual_seed(0)
    _, dealt = student.deal(x, rows)
    for member in range(student.members):
        soft, hard = targets[member].unbind(1)
        torch.testing.assert_close(soft, answers[member % 3, dealt[member]])
        assert torch.equal(hard.argmax(1), y[dealt[member]])


@pytest.mark.parametrize("spec", [Single(), MCDropout(samples=5), Variance(samples=5)], ids=str)
def test_one_member_learns_the_mean_of_the_probabilities(spec):
    x, y = blobs(20)
    teacher, student = make_teacher(), pluribus.ensemble(net(), spec)
    found = Teacher([teacher, teacher]).make_targets(student, x, y, temperature=1.0)
    assert found.values.shape == (20, 1, 2, 3)
    torch.testing.assert_close(found.values[:, 0, 0], teacher.predict(x).probs)


def test_a_step_has_the_loss_of_the_teachers_answers_to_the_mixed_inputs():
    """The student sees mixed inputs; its teacher answers those, in evaluation mode, and the labels are mixed with them."""
    x, y = blobs(32)
    teacher = pluribus.ensemble(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)), DeepEnsemble(2))
    kept = {name: value.clone() for name, value in teacher.state_dict().items()}
    student, twin = (pluribus.ensemble(net(), Single()) for _ in range(2))
    seen: list[torch.Tensor] = []
    student.net.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach().clone()))
    options = {"epochs": 1, "batch_size": 32, "teacher_weight": 0.7, "mixup": 1.0}
    history = fit(student, (x, y), teacher=teacher.train(), **options, **QUIET)
    mixed = seen[-1]
    output, soft = twin(mixed)[0], teacher.predict(mixed).probs
    assert teacher.training, "its mode is left as it is"
    for name, value in teacher.state_dict().items():  # no running statistics moved, no weight learnt
        assert torch.equal(value, kept[name]), name
    lone = fit(pluribus.ensemble(net(), Single()), (x, y), teacher=teacher, **options | {"teacher_weight": 1.0}, **QUIET)
    expected = F.cross_entropy(output, soft)
    assert lone[0]["loss"] == pytest.approx(expected.item(), rel=1e-5)
    labels = fit(pluribus.ensemble(net(), Single()), (x, y), epochs=1, batch_size=32, mixup=1.0, **QUIET)
    assert history[0]["loss"] == pytest.approx(0.7 * expected.item() + 0.3 * labels[0]["loss"], rel=1e-5)


def test_a_student_of_a_regression_learns_the_members_outputs():
    x, _ = blobs(32)
    y = x[:, 0].double()
    torch.manual_seed(0)
    teacher = pluribus.ensemble(net(outputs=1), DeepEnsemble(members=2), task="regression")
    student, twin = (pluribus.ensemble(net(outputs=1), Multihead(members=2), task="regression") for _ in range(2))
    twin.load_state_dict(student.state_dict())
    history = fit(student, (x, y), teacher=teacher, epochs=1, batch_size=32, teacher_weight=0.6, **QUIET)
    ours, theirs = twin(x), teacher.predict(x).outputs
    each = [0.6 * F.mse_loss(ours[m], theirs[m]) + 0.4 * F.mse_loss(ours[m, :, 0], y.float()) for m in range(2)]
    assert history[0]["loss"] == pytest.approx((sum(each) / 2).item(), rel=1e-5)
    with pytest.raises(ValueError, match="teacher_temperature is for probabilities"):
        fit(student, (x, y), teacher=teacher, epochs=1, teacher_temperature=2, **QUIET)


def test_a_student_comes_near_its_teacher_and_heads_to_their_members():
    x, y = blobs(128)
    teacher = make_teacher(members=2)
    options = {"weight": 1.0, "epochs": 30, "batch_size": 64, "lr": 0.03, **QUIET}
    student = pluribus.distil(teacher, Multihead(members=2), (x, y), network=net(), **options)
    theirs, ours = teacher.predict(x).members, student.predict(x).members

    def measure(student_member: int, teacher_member: int) -> float:
        return float((ours[student_member] - theirs[teacher_member]).abs().mean())

    for member in range(2):
        assert measure(member, member) < 0.5 * measure(member, 1 - member)
    alone = pluribus.distil(teacher, Single(), (x, y), **options)
    assert float((alone.predict(x).probs - teacher.predict(x).probs).abs().mean()) < 0.05


def test_a_student_is_made_of_a_fresh_copy_of_the_teachers_network():
    x, y = blobs(64)
    for spec in (DeepEnsemble(members=2), MIMO(members=2), BatchEnsemble(members=2)):
        teacher = pluribus.ensemble(net(), spec)
        student = pluribus.distil(teacher, Single(), (x, y), epochs=1, lr=1e-9, **QUIET)
        weight = student.state_dict()["net.0.weight"]
        assert weight.shape == (16, 4)
        assert not torch.allclose(weight, teacher.member(0)[0].weight)
    with pytest.raises(ValueError, match=r"has no base network to copy .*pass the student's network as network="):
        pluribus.distil(pluribus.ensemble(net(), MCDropout(samples=3)), Single(), (x, y), **QUIET)


def test_a_student_that_was_made_already_is_trained_in_place():
    x, y = blobs(64)
    student = pluribus.ensemble(net(), Multihead(members=2))
    before = metrics.nll(student.predict(x), y)
    assert pluribus.distil(make_teacher(), student, (x, y), weight=0.1, epochs=5, lr=0.02, **QUIET) is student
    assert metrics.nll(student.predict(x), y) < before
    with pytest.raises(ValueError, match="leave network out"):
        pluribus.distil(make_teacher(), student, (x, y), network=net(), **QUIET)


def test_a_teacher_that_draws_answers_the_same_in_the_same_step():
    x, y = blobs(64)
    states = []
    for seed in range(2):
        torch.manual_seed(seed)
        teacher = pluribus.ensemble(net(), MCDropout(samples=3, rate=0.5))
        student = pluribus.ensemble(net(), Multihead(members=2))
        if states:
            student.load_state_dict(states[0][1])
        start = {name: value.clone() for name, value in student.state_dict().items()}
        fit(student, (x, y), teacher=teacher, epochs=2, batch_size=32, **QUIET)
        states.append((nn.utils.parameters_to_vector(student.parameters()).detach(), start))
    assert torch.equal(states[0][0], states[1][0])


def test_a_run_goes_on_with_the_same_teacher_alone(tmp_path):
    x, y = blobs(128)
    teacher, other = make_teacher(), make_teacher(seed=6)

    def train(folder, taught_by, epochs, resume):
        student = pluribus.ensemble(net(), MIMO(members=2))
        student.load_state_dict(start)
        options = {"batch_size": 32, "mixup": 0.3, "schedule": "constant"}
        fit(student, (x, y), teacher=taught_by, folder=folder, resume=resume, epochs=epochs, **options, **QUIET)
        return student.state_dict()

    start = pluribus.ensemble(net(), MIMO(members=2)).state_dict()
    whole = train(tmp_path / "whole", teacher, 3, False)
    train(tmp_path / "run", teacher, 2, False)
    state = read_checkpoint(list_checkpoints(tmp_path / "run")[0])
    assert state["pluribus"]["teacher"] == Teacher(teacher).digest
    assert len(state["state_dict"]) == len(start), "the teacher is no part of it"
    with pytest.raises(FileError, match="of a run with another teacher"):
        train(tmp_path / "run", other, 3, True)
    with pytest.raises(FileError, match="of a run with a teacher: pass the same teacher again"):
        train(tmp_path / "run", None, 3, True)
    resumed = train(tmp_path / "run", teacher, 3, True)
    for name, value in whole.items():
        assert torch.equal(resumed[name], value), name
    train(tmp_path / "plain", None, 1, False)
    with pytest.raises(FileError, match="of a run without a teacher"):
        train(tmp_path / "plain", teacher, 2, True)


def test_what_does_not_fit_is_refused():
    x, y = blobs(32)
    student, teacher = pluribus.ensemble(net(), Single()), make_teacher()
    with pytest.raises(TypeError, match="teacher must be a trained ensemble, or a list of them, got Sequential"):
        fit(student, (x, y), teacher=[net()], **QUIET)
    with pytest.raises(ValueError, match="got none"):
        fit(student, (x, y), teacher=[], **QUIET)
    with pytest.raises(ValueError, match=r"the teacher's outputs for a row have the shape \[5\], and the student's \[3\]"):
        fit(student, (x, y), teacher=pluribus.ensemble(net(outputs=5), Single()), **QUIET)
    with pytest.raises(ValueError, match="the teacher was made for a regression, and the student for a classification"):
        fit(student, (x, y), teacher=pluribus.ensemble(net(), Single(), task="regression"), **QUIET)
    with pytest.raises(ValueError, match="leave criterion out, or teacher"):
        fit(student, (x, y), teacher=teacher, criterion=F.cross_entropy, **QUIET)
    with pytest.raises(TypeError, match="student must be a method"):
        pluribus.distil(teacher, "mimo", (x, y))
    with pytest.raises(ValueError, match="teacher_weight"):
        pluribus.distil(teacher, Single(), (x, y), weight=1.5, **QUIET)
