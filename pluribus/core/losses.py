"""The members' losses, and how they become one."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .answer import IGNORED, ClassAxis, Task
from .spec import Spec

Criterion = Callable[[Tensor, Tensor], Tensor]
"""From the outputs of one member, `[B, C]`, and its targets, `[B, …]`, to a mean over rows."""
FEW_CLASSES, MANY_ROWS = 16, 256
"""Of so few classes and so many rows, loss and gradient are computed up to 2.5 times as fast with the rows on the last axis."""


def compute_loss(task: Task, output: Tensor, target: Tensor, label_smoothing: float = 0.0, class_axis: ClassAxis = 1) -> Tensor:
    """Cross-entropy, or the mean squared error of a regression.

    Args:
        output: `[B, C, …]`, or `[B, …, C]` with the `class_axis` −1; one column, or none, is the logit of a yes.
        target: labels `[B, …]`, of which −100 are left out of the mean; of a classification also probabilities of the classes,
            in the shape of the output.
        label_smoothing: the share of a classification's target that is spread over all classes.
        class_axis: where the classes are.

    Raises:
        ValueError: the targets do not have the shape that the outputs ask for.

    >>> output, label, probabilities = torch.tensor([[2.0, 0.0]]), torch.tensor([0]), torch.tensor([[1.0, 0.0]])
    >>> compute_loss("classification", output, label) == compute_loss("classification", output, probabilities)
    tensor(True)
    """
    if task == "regression":
        return F.mse_loss(output, match_shape(target, output))
    if class_axis != 1 and output.dim() > 2:
        is_soft = target.is_floating_point() and target.shape == output.shape
        output, target = output.movedim(-1, 1), target.movedim(-1, 1) if is_soft else target
    if output.dim() == 1 or output.shape[1] == 1:
        target = match_shape(target, output)
        return F.binary_cross_entropy_with_logits(output, target.lerp(target.new_full((), 0.5), label_smoothing))
    if target.is_floating_point():
        if target.shape != output.shape:
            raise ValueError(
                f"real targets of a classification are probabilities in the shape of the outputs, {list(output.shape)}, got "
                f"{list(target.shape)}; labels must be whole numbers"
            )
        target = target.to(output.dtype)
    elif class_axis == 1 and output.dim() > 2 and target.shape == output.shape[:-1] != (len(output), *output.shape[2:]):
        raise ValueError(
            f"labels of the shape {list(target.shape)} are one for each place of the outputs {list(output.shape)} if the "
            "classes are on the last axis: convert with pluribus.ensemble(…, class_axis=-1)"
        )
    elif output.dim() == 2 and output.shape[1] <= FEW_CLASSES and len(output) >= MANY_ROWS:
        output, target = output.mT.unsqueeze(0), target.unsqueeze(0)
    return F.cross_entropy(output, target, label_smoothing=label_smoothing)


def compute_probabilities(labels: Tensor, classes: int, class_axis: ClassAxis = 1) -> Tensor:
    """Labels as probabilities: `[B, …]` → one-hot `[B, C, …]`. Probabilities, and labels of one logit, stay in their shape.

    Raises ValueError if a label is −100, which no class is.

    >>> compute_probabilities(torch.tensor([1, 0]), 2)
    tensor([[0., 1.],
            [1., 0.]])
    """
    if labels.is_floating_point():
        return labels
    if classes == 1:
        return labels.to(torch.get_default_dtype())
    if bool((labels == IGNORED).any()):
        raise ValueError(
            f"a target of {IGNORED} is left out of the loss, and has no probabilities to mix or to distil: use all"
        )
    return F.one_hot(labels, classes).movedim(-1, class_axis).to(torch.get_default_dtype())


def combine_losses(criterion: Criterion | None, default: Criterion, outputs: Tensor, targets: Tensor, reduction: str) -> Tensor:
    """The sum or the mean over members of each one's criterion: outputs `[M, B, C]`, targets `[M, B, …]`."""
    if criterion is None and targets.stride(0) == 0:  # the same for all members: then their mean is the mean over all rows
        total = default(outputs.flatten(0, 1), targets.flatten(0, 1))
        return total if reduction == "mean" else total * len(outputs)
    criterion = criterion or default
    losses = [criterion(output, target) for output, target in zip(outputs, targets, strict=True)]
    total = torch.stack(losses).sum()
    return total / len(losses) if reduction == "mean" else total


def match_shape(target: Tensor, output: Tensor) -> Tensor:
    """The target in the shape and dtype of the output: `[B]` against `[B, 1]` would broadcast to `[B, B]`."""
    if [n for n in target.shape if n != 1] != [n for n in output.shape if n != 1]:
        raise ValueError(f"targets must have the shape of the outputs, {list(output.shape)}, got {list(target.shape)}")
    return target.view_as(output).to(output.dtype)


def count_losses(ensemble: Any) -> int:
    """How many members' losses the objective of an ensemble adds up: by this number it is divided to be shown."""
    parts = [part for part in ensemble.net.children() if hasattr(part, "count_members")]
    if parts:  # a deep ensemble adds up the objectives of its parts
        return sum(count_losses(part) for part in parts)
    return ensemble.count_members(training=True) if ensemble.reduction == "sum" else 1


def check_examples(examples: int | None, spec: Spec) -> int:
    """The number of training examples, which a penalty is divided by. Raises ValueError if it is not known."""
    if examples is None or examples < 1:
        raise ValueError(
            f"{type(spec).__name__} weighs its penalty against the data: pass examples=, the number of training "
            "examples, as in ensemble.loss(x, y, examples=len(dataset))"
        )
    return examples
