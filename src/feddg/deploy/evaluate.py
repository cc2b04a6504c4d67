"""How good a deployed model is on labelled data: overall, by class and by domain."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from feddg.deploy import metrics
from feddg.deploy.inputs import Given
from feddg.deploy.load import Deployed
from feddg.deploy.metrics import Bin, ClassScores
from feddg.deploy.predict import Predictions, predict
from feddg.errors import DataError
from feddg.tasks import Classification, Task, members, pearson

Scores = dict[str, float | None]


@dataclass(frozen=True)
class Report:
    """One domain, or all together. None: not defined on these data."""

    examples: int
    scores: Scores


@dataclass(frozen=True)
class Evaluation:
    """`confusion` has a row per true class; `trained_on` names the domains that are no news."""

    data: str
    metric: str
    higher_is_better: bool
    overall: Report
    domains: dict[str, Report]
    classes: tuple[ClassScores, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    reliability: tuple[Bin, ...] = ()
    trained_on: tuple[str, ...] = ()

    @property
    def worst(self) -> str | None:
        """The domain with the worst score by the task's metric."""
        sign = 1 if self.higher_is_better else -1
        values = {k: r.scores.get(self.metric) for k, r in self.domains.items()}
        found = {k: sign * v for k, v in values.items() if v is not None}
        return min(found, key=lambda k: found[k]) if found else None

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {**asdict(self), "worst_domain": self.worst}


def evaluate(deployed: Deployed, data: Given, domains: Sequence[str] = ()) -> Evaluation:
    """On all domains together and each by itself, or on those that are named."""
    said = predict(deployed, data, domains)
    inputs, y = said.inputs, said.inputs.y
    if y is None:
        bare = next(p for p in inputs.parts if p.y is None)
        raise DataError(
            f"{inputs.name}: {bare.domain!r} has no labels to judge by; `feddg predict` needs none"
        )
    sizes = [len(p.x) for p in inputs.parts]
    pieces = zip(inputs.parts, torch.split(said.output, sizes), torch.split(y, sizes), strict=True)
    task = deployed.task
    meta = deployed.meta
    known = meta.training.get("sites", ()) if inputs.name == meta.data else ()
    return Evaluation(
        data=inputs.name,
        metric=task.metric,
        higher_is_better=task.higher_is_better,
        overall=Report(len(y), scored(task, said.output, y, inputs.groups)),
        domains={p.domain: Report(len(t), scored(task, o, t, p.groups)) for p, o, t in pieces},
        trained_on=tuple(p.domain for p in inputs.parts if p.domain in known),
        **by_class(said, y),
    )


def scored(task: Task, output: Tensor, y: Tensor, groups: Tensor | None = None) -> Scores:
    known = by_groups(task, output, y, groups)
    if not isinstance(task, Classification):
        truth = y.to(output.dtype).view_as(output)
        return {
            "pearson_r": pearson(output, truth),
            "mse": metrics.mse(output, truth),
            "mae": metrics.mae(output, truth),
            **known,
        }
    p = output.double().softmax(1)
    counts = metrics.confusion(y, output.argmax(1), task.outputs)
    return {
        "accuracy": metrics.accuracy(counts),
        "balanced_accuracy": metrics.balanced_accuracy(counts),
        "auc": metrics.ranking(output, y),
        "ece": metrics.ece(metrics.reliability(p, y)),
        "brier": metrics.brier(p, y),
        **known,
    }


def by_groups(task: Task, output: Tensor, y: Tensor, groups: Tensor | None) -> Scores:
    name = "worst_group"
    return {name: task.scores(output, y, groups)[name]} if members(groups) else {}


def by_class(said: Predictions, y: Tensor) -> dict[str, Any]:
    p = said.probabilities
    if p is None:
        return {}
    counts = metrics.confusion(y, said.labels, len(said.classes))
    return {
        "classes": metrics.by_class(counts, said.classes),
        "confusion": tuple(tuple(row) for row in counts.tolist()),
        "reliability": metrics.reliability(p, y),
    }
