"""The loss of many rows with few classes is computed with the rows on the last axis: the same numbers as by rows."""

import pytest
import torch
import torch.nn.functional as F

from pluribus.core.losses import FEW_CLASSES, MANY_ROWS, compute_loss


@pytest.mark.parametrize("classes", [2, FEW_CLASSES, FEW_CLASSES + 1])
@pytest.mark.parametrize("rows", [MANY_ROWS - 1, MANY_ROWS])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_and_its_gradient_are_those_of_each_row_averaged(classes, rows, smoothing):
    output = torch.randn(rows, classes, dtype=torch.double, requires_grad=True)
    label = torch.randint(classes, (rows,))
    soft = (1 - smoothing) * F.one_hot(label, classes).double() + smoothing / classes
    expected = -(soft * output.log_softmax(1)).sum(1).mean()
    found = compute_loss("classification", output, label, smoothing)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    ours, theirs = (torch.autograd.grad(loss, output)[0] for loss in (found, expected))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_a_label_that_is_ignored_is_ignored_in_both_forms():
    output, label = torch.randn(MANY_ROWS, 3, dtype=torch.double), torch.randint(3, (MANY_ROWS,))
    label[::3] = -100
    expected = compute_loss("classification", output[label >= 0][: MANY_ROWS - 1], label[label >= 0][: MANY_ROWS - 1])
    torch.testing.assert_close(compute_loss("classification", output, label), expected, rtol=0, atol=1e-12)
