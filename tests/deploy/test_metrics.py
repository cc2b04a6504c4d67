"""Worked by hand; AUC also against scipy's Mann-Whitney statistic."""

import pytest
import torch
from scipy.stats import mannwhitneyu

from feddg.deploy import metrics
from feddg.seeds import generator

# true     a a a b b c
# called   a a b b a b
Y = torch.tensor([0, 0, 0, 1, 1, 2])
CALLED = torch.tensor([0, 0, 1, 1, 0, 1])
COUNTS = [[2, 1, 0], [1, 1, 0], [0, 1, 0]]


def test_confusion_has_a_row_per_true_class():
    assert metrics.confusion(Y, CALLED, 3).tolist() == COUNTS


def test_scores_by_class():
    """a: 2 of 3 called are, 2 of 3 found, F1 4/6. b: 1/3, 1/2, 2/5. c: never called, 0/1, 0/1."""
    a, b, c = metrics.by_class(torch.tensor(COUNTS), ("a", "b", "c"))
    assert (a.precision, a.recall, a.f1, a.support) == (2 / 3, 2 / 3, 2 / 3, 3)
    assert (b.precision, b.recall, b.f1, b.support) == (1 / 3, 1 / 2, 2 / 5, 2)
    assert (c.precision, c.recall, c.f1, c.support) == (None, 0, 0, 1)


def test_a_class_that_nobody_has_or_is_called_has_no_scores():
    [_, b] = metrics.by_class(torch.tensor([[3, 0], [0, 0]]), ("a", "b"))
    assert (b.precision, b.recall, b.f1, b.support) == (None, None, None, 0)


def test_accuracies():
    """3 of 6; the mean of 2/3, 1/2 and 0; a class without support does not count."""
    counts = torch.tensor(COUNTS)
    assert metrics.accuracy(counts) == 3 / 6
    assert metrics.balanced_accuracy(counts) == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert metrics.balanced_accuracy(torch.tensor([[1, 1], [0, 0]])) == 0.5


def test_ranking_of_two_classes_is_the_mann_whitney_statistic():
    rng = generator("auc")
    y = torch.arange(50) % 2
    output = torch.randn(50, 2, generator=rng).round(decimals=1)
    score = (output.double()[:, 1] - output.double()[:, 0]).numpy()
    u = mannwhitneyu(score[y == 1], score[y == 0]).statistic
    assert metrics.ranking(output, y) == pytest.approx(u / (25 * 25))


def test_ranking_of_more_classes_is_one_against_the_rest():
    """Row 2 of class b has p(a) above one of two a: AUC(a) = 3/4, AUC(b) = 3/4; nobody is c."""
    p = torch.tensor([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2], [0.5, 0.3, 0.2], [0.1, 0.8, 0.1]])
    y = torch.tensor([0, 0, 1, 1])
    assert metrics.ranking(p.log(), y) == pytest.approx((3 / 4 + 3 / 4) / 2)


def test_ranking_needs_two_classes_in_the_data():
    assert metrics.ranking(torch.randn(4, 2), torch.ones(4, dtype=torch.int64)) is None


def test_calibration_of_two_bins():
    """Of 15 bins, (9/15, 10/15] has 0.62 right and 0.66 wrong; 0.95 is right.

    ECE = 2/3 |0.5 - 0.64| + 1/3 |1 - 0.95|.
    """
    p = torch.tensor([[0.62, 0.38], [0.34, 0.66], [0.05, 0.95]], dtype=torch.float64)
    bins = metrics.reliability(p, torch.tensor([0, 0, 1]))
    assert [b.confidence for b in bins] == pytest.approx([0.64, 0.95])
    assert [(b.accuracy, b.examples) for b in bins] == [(0.5, 2), (1.0, 1)]
    assert metrics.ece(bins) == pytest.approx(2 / 3 * 0.14 + 1 / 3 * 0.05)


def test_bins_end_at_the_right():
    """With 4 bins, 0.5 belongs to (0.25, 0.5] and 0.75 to (0.5, 0.75]; certainty to the last."""
    p = torch.tensor([[0.5, 0.5], [0.75, 0.25], [1.0, 0.0]])
    confidences = [b.confidence for b in metrics.reliability(p, torch.tensor([0, 0, 0]), bins=4)]
    assert confidences == [0.5, 0.75, 1.0]


def test_brier():
    """Two classes: (0.3^2 + 0.6^2) / 2. Three: 0.5^2 + 0.3^2 + 0.2^2, all classes counted."""
    two = torch.tensor([[0.7, 0.3], [0.6, 0.4]])
    assert metrics.brier(two, torch.tensor([0, 1])) == pytest.approx((0.09 + 0.36) / 2)
    three = torch.tensor([[0.5, 0.3, 0.2]])
    assert metrics.brier(three, torch.tensor([0])) == pytest.approx(0.38)


def test_errors_of_real_values():
    output, y = torch.tensor([[1.0], [4.0]]), torch.tensor([2.0, 2.0])
    assert (metrics.mse(output, y), metrics.mae(output, y)) == (2.5, 1.5)
