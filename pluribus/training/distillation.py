"""Distillation: a student learns what the members of a trained ensemble, its teacher, answer.

    loss of student member m = w T² CE(p_{m mod M}, softmax(z_m / T)) + (1 − w) CE(y, softmax(z_m)),    p = softmax(teacher / T)

So each head of a student with several members learns one member of the teacher, which keeps their spread; a student with one
member learns the mean of the members' probabilities. Of a regression, members learn the members' outputs by squared error. The
teacher answers the inputs that the student sees, augmented and mixed alike, in evaluation mode and without gradients.

With `teacher_members="one"` a student with one member is cheaper to teach: each row is answered by one member of the teacher,
drawn anew in every step. The loss is linear in p, and a squared error has the same gradient, so that its gradient is right on
average, at the M-th part of the teacher's cost.

Hinton et al., "Distilling the Knowledge in a Neural Network", 2015; Tran et al., "Hydra: Preserving Ensemble Diversity for
Model Distillation", 2020 (a head for each member); Beyer et al., "Knowledge distillation: A good teacher is patient and
consistent", CVPR 2022 (the same views for both, mixup, long training).
"""

import copy
import functools
import json
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..core import pytrees
from ..core.answer import ClassAxis, Task
from ..core.convert import ensemble as convert
from ..core.ensemble import Ensemble
from ..core.errors import PluribusError
from ..core.initialization import redraw_weights
from ..core.losses import Criterion, compute_loss, compute_probabilities, match_shape
from ..core.member_targets import MemberTargets
from ..core.modes import copy_for_evaluation
from ..core.shares import find_share
from ..core.spec import Spec
from ..core.surgery import describe_structure
from ..core.tensor_files import compute_digest
from .settings import Settings


class Teacher:
    """Trained ensembles, all members of which teach. It is no module: a student's weights and checkpoints do not hold it.

    Raises TypeError if one of `ensembles` is no ensemble, ValueError if there is none or their tasks differ.
    """

    def __init__(self, ensembles: Ensemble | Sequence[Ensemble]) -> None:
        found = [ensembles] if isinstance(ensembles, Ensemble) else list(ensembles)
        if not found:
            raise ValueError("teacher must be a trained ensemble, or several: got none")
        for each in found:
            if not isinstance(each, Ensemble):
                raise TypeError(f"teacher must be a trained ensemble, or a list of them, got {type(each).__name__}")
        if len({each.task for each in found}) > 1:
            raise ValueError("the teachers must be for one task, got a classification and a regression")
        self.task: Task = found[0].task
        self.ensembles = [copy_for_evaluation(each) for each in found]

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of specs and weights: a resumed run must have the same teacher."""
        text = json.dumps([[each.spec.to_json(), each.count_members(training=False)] for each in self.ensembles])
        tensors = {
            f"{number}.{name}": tensor.detach().cpu().contiguous()
            for number, each in enumerate(self.ensembles)
            for name, tensor in each.state_dict().items()
        }
        return compute_digest(text, tensors)

    def move(self, device: torch.device) -> None:
        """Copy the weights to a device, if they are elsewhere: the caller's own ensemble stays where it is."""
        self.ensembles = [
            each if next(each.parameters()).device == device else copy.deepcopy(each).to(device) for each in self.ensembles
        ]

    def answer(self, x: Any) -> Tensor:
        """The outputs of all members, `[T, B, C, …]`, for inputs `[B, …]`; those of several ensembles follow one another."""
        rows = pytrees.count_rows(x)
        return torch.cat([each.predict(cast_inputs(x, each), batch_size=rows).outputs for each in self.ensembles])

    def answer_by_one(self, x: Any) -> Tensor:
        """The output of one member for each row, `[1, B, C, …]`: every member is drawn for as many rows, up to one."""
        rows = pytrees.count_rows(x)
        share = find_share(rows)
        teachers = [(each, member) for each in self.ensembles for member in range(each.count_members(training=False))]
        drawn = torch.randperm(rows if share is None else share.rows) % len(teachers)
        drawn = drawn if share is None else share.take(drawn)
        places = [(drawn == number).nonzero()[:, 0] for number in range(len(teachers))]
        outputs = [
            each.predict(take_places(cast_inputs(x, each), place), members=[member]).outputs[0]
            for place, (each, member) in zip(places, teachers, strict=True)
            if len(place)
        ]
        return torch.cat(outputs)[torch.cat(places).argsort()].unsqueeze(0)

    def check(self, student: Ensemble, x: Any, members: str = "all") -> None:
        """Raise ValueError if the student answers two rows `x` for another task, or in another shape, or needs all members."""
        count = student.count_members(training=True)
        if members == "one" and count > 1:
            raise ValueError(
                f"teacher_members must be all for a student with {count} members, of which each learns a member, got one"
            )
        for each in (student, *self.ensembles):
            if each.distribution is not None:
                raise ValueError(
                    f"distillation is of means, and an ensemble here answers with {each.distribution.answers}: leave "
                    f"{each.distribution.option} out"
                )
        if student.task != self.task:
            raise ValueError(f"the teacher was made for a {self.task}, and the student for a {student.task}")
        two = pytrees.take_rows(x, 2)
        with torch.random.fork_rng(devices=[]):
            ours, theirs = student.predict(two).outputs.shape[2:], self.answer(two).shape[2:]
        if ours != theirs:
            raise ValueError(f"the teacher's outputs for a row have the shape {list(theirs)}, and the student's {list(ours)}")

    def make_targets(self, student: Ensemble, x: Any, y: Tensor, temperature: float, members: str = "all") -> MemberTargets:
        """What each member of the student learns about inputs `[B, …]` with targets y: `[B, T, 2, C, …]`, of which the first of
        two is the teacher's answer, and the second the data's own target."""
        outputs = self.answer_by_one(x) if members == "one" else self.answer(x)
        axis = 2 if student.class_axis == 1 else -1
        one_logit = outputs.dim() == 2 or outputs.shape[axis] == 1
        if self.task == "regression":
            soft, hard = outputs, match_shape(y, outputs[0])
        elif one_logit:
            soft, hard = (outputs / temperature).sigmoid(), match_shape(y, outputs[0])
        else:
            soft = (outputs / temperature).softmax(axis)
            hard = compute_probabilities(y, outputs.shape[axis], student.class_axis).to(outputs.dtype)
        if student.count_members(training=True) == 1:
            soft = soft.mean(0, keepdim=True)
        return MemberTargets(torch.stack([soft, hard.expand_as(soft)], 2).movedim(0, 1))


def take_places(x: Any, places: Tensor) -> Any:
    """The rows of inputs at some places."""
    return pytrees.map_tensors(lambda leaf: leaf[places.to(leaf.device)], x)


def cast_inputs(x: Any, ensemble: Ensemble) -> Any:
    """Inputs in the dtype of the ensemble's weights; whole numbers stay."""
    dtype = next((p.dtype for p in ensemble.parameters() if p.is_floating_point()), torch.float)
    return pytrees.map_tensors(lambda leaf: leaf.to(dtype) if leaf.is_floating_point() else leaf, x)


def make_distillation_criterion(task: Task, settings: Settings, class_axis: ClassAxis = 1) -> Criterion:
    """Return the loss of one member: outputs `[B, C, …]` against `[B, 2, C, …]`, the teacher's answers and the data's targets.

    Raises ValueError if a temperature is set for a regression, which has no probabilities.
    """
    weight, temperature = settings.teacher_weight, settings.teacher_temperature
    if task == "regression" and temperature != 1:
        raise ValueError(
            f"teacher_temperature is for probabilities, and this is a regression: leave it at 1, got {temperature:g}"
        )

    def compute(output: Tensor, target: Tensor) -> Tensor:
        soft, hard = target.unbind(1)
        loss = weight * temperature**2 * compute_loss(task, output / temperature, soft, class_axis=class_axis)
        if weight < 1:
            loss = loss + (1 - weight) * compute_loss(task, output, hard, settings.label_smoothing, class_axis)
        return loss

    return compute


def distil(
    teacher: Ensemble | Sequence[Ensemble],
    student: Spec | Ensemble,
    data: Any,
    validation: Any = None,
    *,
    network: nn.Module | None = None,
    weight: float = Settings.model_fields["teacher_weight"].default,
    temperature: float = Settings.model_fields["teacher_temperature"].default,
    **settings: Any,
) -> Ensemble:
    """Train a student to answer as a trained ensemble does.

    Each member m of the student learns member m mod M of the teacher, so that the members' spread is kept; a student with one
    member learns the mean of their probabilities.

    Args:
        teacher: a trained ensemble, or several, whose members then follow one another.
        student: the method that makes the student, such as `MIMO(members=3)`; or an ensemble, which is then trained in place.
        data, validation: tensors or arrays (x, y), a Dataset or a loader, as `pluribus.fit` takes them.
        network: the student's base network, whose weights are used as they are. By default it is the base network of the
            teacher, drawn anew at the scale of its weights; not every teacher has one to copy.
        weight: share of the teacher's answers in the loss, from 0 to 1; the rest is the loss of the data's own targets.
        temperature: T, by which the outputs of teacher and student are divided; a regression has none.
        settings: every other argument of `pluribus.fit`: epochs, lr, mixup, augmentation, folder, resume and so on.

    Returns:
        The trained student. `pluribus.fit(student, data, teacher=teacher)` does the same and returns the history.

    Raises:
        TypeError: teacher or student is none.
        ValueError: they do not fit together, a setting makes no sense, or the teacher has no base network to copy.

    >>> import pluribus
    >>> x = torch.randn(64, 4); y = (x[:, 0] > 0).long()
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> teacher = pluribus.ensemble(net, pluribus.DeepEnsemble(members=2))
    >>> student = pluribus.distil(teacher, pluribus.Multihead(members=2), (x, y), epochs=1, progress=False)
    >>> student.predict(x).members.shape
    torch.Size([2, 64, 2])
    """
    from .fit import fit

    first = Teacher(teacher).ensembles[0]  # raises if it is none
    if isinstance(student, Ensemble):
        if network is not None:
            raise ValueError("the student is an ensemble already, with a network of its own: leave network out")
        made = student
    elif isinstance(student, Spec):
        net = copy_base_network(first) if network is None else network
        example = first.executor.example
        like = next(net.parameters())
        if example is not None:
            example = pytrees.map_tensors(lambda leaf: leaf.to(like.device), example)
        made = convert(net.train(), student, example=example, task=first.task, output=first.output)
    else:
        raise TypeError(f"student must be a method such as pluribus.MIMO(members=3), or an ensemble, got {student!r}")
    fit(made, data, validation, teacher=teacher, teacher_weight=weight, teacher_temperature=temperature, **settings)
    return made


def copy_base_network(ensemble: Ensemble) -> nn.Module:
    """A copy of the network that the ensemble was made of, its weights drawn anew at the scale of those of member 0.

    Raises ValueError if no member of the ensemble is such a network.
    """
    cure = "pass the student's network as network=…"
    try:
        net = copy.deepcopy(ensemble.member(0))
        if describe_structure(net) != ensemble.conversion.structure:
            raise ValueError(f"the teacher's members are not of the network that it was made of: {cure}")
        return redraw_weights(net.train())
    except PluribusError as error:
        raise ValueError(f"the teacher has no base network to copy ({error}): {cure}") from error
