"""How good predictions are: counts by class, ranking, calibration, and errors of real values.

Everything works on CPU tensors in float64. None stands where a number is not defined: the recall
of a class that nobody has, the AUC of data with one class.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from feddg.tasks import auc


@dataclass(frozen=True)
class ClassScores:
    """One class: of those called it, of those that are it, their harmonic mean, how many are it."""

    name: str
    precision: float | None
    recall: float | None
    f1: float | None
    support: int


@dataclass(frozen=True)
class Bin:
    """Predictions of like confidence: how sure they were on average, how often they were right."""

    confidence: float
    accuracy: float
    examples: int


def confusion(y: Tensor, predicted: Tensor, classes: int) -> Tensor:
    """Counts, a row per true class and a column per predicted one."""
    return torch.bincount(y * classes + predicted, minlength=classes**2).view(classes, classes)


def by_class(counts: Tensor, names: tuple[str, ...]) -> tuple[ClassScores, ...]:
    """precision TP/(TP+FP), recall TP/(TP+FN), F1 2TP/(2TP+FP+FN) from a confusion matrix."""
    rows = []
    for k, name in enumerate(names):
        right, true, called = int(counts[k, k]), int(counts[k].sum()), int(counts[:, k].sum())
        scores = (ratio(right, called), ratio(right, true), ratio(2 * right, true + called))
        rows.append(ClassScores(name, *scores, support=true))
    return tuple(rows)


def ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def accuracy(counts: Tensor) -> float:
    return counts.trace().item() / counts.sum().item()


def balanced_accuracy(counts: Tensor) -> float:
    """The mean recall of the classes that are there."""
    support = counts.sum(1)
    return (counts.diagonal()[support > 0].double() / support[support > 0]).mean().item()


def ranking(output: Tensor, y: Tensor) -> float | None:
    """The area under the ROC curve: of two classes, by their log-odds.

    Of more classes: each against the rest, the mean over those of which there are examples and
    counter-examples (macro).
    """
    output = output.double()
    if output.shape[1] == 2:
        pairs = [(output[:, 1] - output[:, 0], y)]
    else:
        p = output.softmax(1)
        pairs = [(p[:, k], (y == k).long()) for k in range(output.shape[1])]
    found = [auc(score, mine) for score, mine in pairs if 0 < int(mine.sum()) < len(mine)]
    return sum(found) / len(found) if found else None


def reliability(p: Tensor, y: Tensor, bins: int = 15) -> tuple[Bin, ...]:
    """The non-empty ones of equally wide bins ((b-1)/B, b/B] of the top probability."""
    confidence, predicted = p.double().max(1)
    right = (predicted == y).double()
    edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64)[1:-1]
    at = torch.bucketize(confidence, edges)
    groups = [at == b for b in range(bins)]
    return tuple(
        Bin(confidence[g].mean().item(), right[g].mean().item(), int(g.sum()))
        for g in groups
        if g.any()
    )


def ece(bins: tuple[Bin, ...]) -> float:
    """Expected calibration error: sum_b (n_b / n) |accuracy_b - confidence_b|."""
    n = sum(b.examples for b in bins)
    return sum(b.examples * abs(b.accuracy - b.confidence) for b in bins) / n


def brier(p: Tensor, y: Tensor) -> float:
    """mean of sum_k (p_k - [y = k])^2; for two classes half of it, the usual mean of (p - y)^2."""
    p = p.double()
    truth = torch.nn.functional.one_hot(y, p.shape[1]).double()
    value = (p - truth).square().sum(1).mean().item()
    return value / 2 if p.shape[1] == 2 else value


def mse(output: Tensor, y: Tensor) -> float:
    return (output.double() - y.double().view_as(output)).square().mean().item()


def mae(output: Tensor, y: Tensor) -> float:
    return (output.double() - y.double().view_as(output)).abs().mean().item()
