"""Losses and scores, worked by hand and beside other definitions."""

import pytest
import torch
import torch.nn.functional as F

from feddg.errors import DataError
from feddg.tasks import Classification, Regression, auc, pearson

TWO = Classification(("x", "o"))


def logits(*predicted, classes=2):
    return F.one_hot(torch.tensor(predicted), classes).float()


def test_accuracy_and_balanced_accuracy():
    """True 0 0 0 1, predicted 0 0 1 1: 3 of 4; recalls 2/3 and 1, mean 5/6."""
    found = TWO.scores(logits(0, 0, 1, 1), torch.tensor([0, 0, 0, 1]))
    assert found["accuracy"] == 0.75
    assert found["balanced_accuracy"] == pytest.approx(5 / 6)


def test_balanced_accuracy_is_over_the_classes_that_are_there():
    three = Classification(("x", "o", "z"))
    found = three.scores(logits(0, 1, classes=3), torch.tensor([0, 0]))
    assert found["balanced_accuracy"] == 0.5
    assert "auc" not in found


def test_the_worst_group():
    """Groups 7 and 9: 1 of 2 and 2 of 2 right."""
    y = torch.tensor([0, 0, 1, 1])
    found = TWO.scores(logits(0, 1, 1, 1), y, torch.tensor([7, 7, 9, 9]))
    assert found["worst_group"] == 0.5


def test_a_negative_group_is_none():
    """The two of group -1 (both wrong) count for the accuracy, 1 of 4, not for the worst group."""
    y, groups = torch.tensor([0, 0, 1, 1]), torch.tensor([-1, -1, 3, 3])
    found = TWO.scores(logits(1, 1, 1, 0), y, groups)
    assert (found["accuracy"], found["worst_group"]) == (0.25, 0.5)
    assert "worst_group" not in TWO.scores(logits(1, 1, 1, 0), y, groups.clamp(max=-1))
    output, values = torch.tensor([[3.0], [1.0], [1.0], [2.0]]), torch.tensor([1.0, 2, 1, 2])
    assert Regression().scores(output, values, groups)["worst_group"] == pytest.approx(1.0)


def test_smoothing():
    """-(0.9 + 0.05) log p0 - 0.05 log p1 with logits (1, 0) and smoothing 0.1."""
    log = torch.tensor([1.0, 0.0]).log_softmax(0)
    wanted = -(0.95 * log[0] + 0.05 * log[1])
    found = TWO.loss(torch.tensor([[1.0, 0.0]]), torch.tensor([0]), 0.1)
    assert found.item() == pytest.approx(wanted.item())


def test_auc_counts_ordered_pairs_and_half_of_the_ties():
    """Positives 3, 2; negatives 2, 1: pairs 3>2, 3>1, 2=2, 2>1 are 3.5 of 4."""
    score, y = torch.tensor([3.0, 2.0, 2.0, 1.0]), torch.tensor([1, 1, 0, 0])
    assert auc(score, y) == 3.5 / 4


def test_auc_is_that_of_all_pairs():
    score, y = torch.randn(60).round(decimals=1), torch.randint(0, 2, (60,))
    pairs = score[y == 1][:, None] - score[y == 0][None]
    wanted = ((pairs > 0).double() + (pairs == 0).double() / 2).mean().item()
    assert auc(score, y) == pytest.approx(wanted)


def test_auc_of_two_classes_only_where_both_are_there():
    assert "auc" in TWO.scores(torch.randn(4, 2), torch.tensor([0, 1, 0, 1]))
    assert "auc" not in TWO.scores(torch.randn(2, 2), torch.tensor([1, 1]))


def test_pearson_by_hand():
    """(1, 2, 3) and (1, 3, 2): covariance 0.5·2, norms √2 each: r = 1/2."""
    assert pearson(torch.tensor([1.0, 2, 3]), torch.tensor([1.0, 3, 2])) == pytest.approx(0.5)


def test_pearson_beside_torch_and_where_nothing_varies():
    a, b = torch.randn(20), torch.randn(20)
    assert pearson(a, b) == pytest.approx(
        torch.corrcoef(torch.stack([a, b]))[0, 1].item(), abs=1e-6
    )
    assert pearson(torch.ones(5), torch.arange(5.0)) == 0.0


def test_pearson_of_several_outputs_is_the_mean():
    a = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    b = torch.tensor([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]])
    assert pearson(a, b) == pytest.approx(0.0)


def test_regression():
    task = Regression()
    output, y = torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([1, 2, 3])
    assert task.loss(output, y).item() == pytest.approx(1 / 3)
    found = task.scores(output, y, torch.tensor([0, 0, 0]))
    assert found["loss"] == pytest.approx(1 / 3)
    assert found["worst_group"] == found["pearson_r"] == pytest.approx(0.98198, abs=1e-5)
    assert task.outputs == 1


@pytest.mark.parametrize(("task", "outputs"), [(TWO, 2), (Regression(), 1)])
def test_nothing_to_score_is_refused(task, outputs):
    with pytest.raises(DataError, match="no examples to score"):
        task.scores(torch.ones(0, outputs), torch.zeros(0, dtype=torch.long))


@pytest.mark.parametrize("label", [-1, -100, 2])
def test_a_label_that_is_no_class_is_named(label):
    with pytest.raises(DataError, match=f"label {label} cannot .* 2 classes are 0 to 1;"):
        TWO.scores(logits(0, 1, 1), torch.tensor([0, label, 1]))
