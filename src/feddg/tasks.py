"""What is predicted, how it is trained for and how it is judged."""

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from feddg.errors import DataError

Scores = dict[str, float]


class Task(Protocol):
    """Classification or regression; `metric` is the one that tables show."""

    @property
    def outputs(self) -> int: ...
    @property
    def metric(self) -> str: ...
    @property
    def higher_is_better(self) -> bool: ...
    def loss(self, output: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor: ...
    def scores(self, output: Tensor, y: Tensor, groups: Tensor | None = None) -> Scores: ...


@dataclass(frozen=True)
class Classification:
    """One of `classes`; the output is logits or log-probabilities."""

    classes: tuple[str, ...]
    metric: str = "accuracy"
    higher_is_better: bool = True

    @property
    def outputs(self) -> int:
        return len(self.classes)

    def loss(self, output: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
        return F.cross_entropy(output, y, label_smoothing=smoothing)

    def scores(self, output: Tensor, y: Tensor, groups: Tensor | None = None) -> Scores:
        """loss, accuracy, balanced_accuracy; worst_group with groups, as `members` counts them.

        Two classes add auc, sensitivity (the share of class 1 found) and specificity.
        """
        output, y = output.cpu(), y.cpu()  # a device is waited for once, not for every number
        some(y)
        if wrong := y[(y < 0) | (y >= self.outputs)].tolist():
            raise DataError(
                f"label {wrong[0]} cannot be scored: the {self.outputs} classes are 0 to"
                f" {self.outputs - 1}; mend the labels, or leave such examples out"
            )
        right = (output.argmax(1) == y).double()
        among = torch.bincount(y)
        recalls = (torch.bincount(y, right) / among)[among > 0]
        found = {
            "loss": F.cross_entropy(output, y).item(),
            "accuracy": right.mean().item(),
            "balanced_accuracy": recalls.mean().item(),
        }
        if self.outputs == 2 and len(recalls) == 2:
            found["specificity"], found["sensitivity"] = recalls.tolist()
            found["auc"] = auc(output[:, 1] - output[:, 0], y)
        if apart := members(groups):
            found["worst_group"] = min(right[g].mean().item() for g in apart)
        return found


@dataclass(frozen=True)
class Regression:
    """Real values; judged by Pearson's r (WILDS' PovertyMap) and the mean squared error."""

    names: tuple[str, ...] = ("value",)
    metric: str = "pearson_r"
    higher_is_better: bool = True

    @property
    def outputs(self) -> int:
        return len(self.names)

    def loss(self, output: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
        return F.mse_loss(output, y.to(output.dtype).view_as(output))

    def scores(self, output: Tensor, y: Tensor, groups: Tensor | None = None) -> Scores:
        output = output.cpu()
        some(y)
        y = y.cpu().to(output.dtype).view_as(output)
        found = {"loss": F.mse_loss(output, y).item(), "pearson_r": pearson(output, y)}
        if apart := members(groups):
            found["worst_group"] = min(pearson(output[g], y[g]) for g in apart)
        return found


def some(y: Tensor) -> None:
    """Means of nothing would be NaN, and would go on into tables."""
    if not len(y):
        raise DataError("there are no examples to score; leave data without any out")


def members(groups: Tensor | None) -> list[Tensor]:
    """Who is in each group, as masks. A negative number is no group (FMoW's region "Other")."""
    if groups is None:
        return []
    groups = groups.cpu()
    return [groups == g for g in groups.unique() if g >= 0]


def pearson(a: Tensor, b: Tensor) -> float:
    """The mean over outputs of the correlation; 0 where one side does not vary."""
    a, b = a.double().reshape(len(a), -1), b.double().reshape(len(b), -1)
    a, b = a - a.mean(0), b - b.mean(0)
    size = a.norm(dim=0) * b.norm(dim=0)
    return torch.where(size > 0, (a * b).sum(0) / size.clamp_min(1e-300), 0.0).mean().item()


def auc(score: Tensor, y: Tensor) -> float:
    """P(a positive scores above a negative), ties counting half: the Mann-Whitney statistic."""
    positive, negative = score[y == 1].double(), score[y == 0].double().sort()[0]
    below = torch.searchsorted(negative, positive, right=False)
    upto = torch.searchsorted(negative, positive, right=True)
    return ((below + upto).double() / 2).mean().item() / len(negative)
