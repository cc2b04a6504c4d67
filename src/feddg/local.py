"""What a site can be asked for. A Job makes requests; an engine carries them out.

Local training has three kinds of part, all pure, so that they also run under vmap:
Transform   a batch, or a named tap, to its like
Term        a summand of the loss
Step        how one update is made from the loss
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Generator, Tensor, nn

from feddg.data.domain import Examples, Site
from feddg.errors import ConfigError
from feddg.optim import Theta
from feddg.recipe import Recipe
from feddg.seeds import generator
from feddg.tasks import Scores, Task
from feddg.trees import Tensors, part
from feddg.weights import Layout, Weights

Change = Callable[[str, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Forward:
    """One forward pass, shared by all terms.

    A tap is the output of a submodule by its name, or with ":in" its input (`head:in` is the
    feature vector). `draw` and `columns` are the term's own chance and per-example data;
    `plain` says that x shows the examples as they are: prepared, nothing drawn or changed.
    """

    module: nn.Module
    task: Task
    layout: Layout  # of the parameters
    theta: Theta
    values: dict[str, Any]  # weights by name; batch norm writes into its own; None: not used
    x: Tensor
    y: Tensor
    logits: Tensor
    taps: Tensors
    smoothing: float = 0.0
    draw: Tensors = field(default_factory=dict)
    columns: Tensors = field(default_factory=dict)
    plain: bool = True

    @property
    def apart(self) -> dict[str, Any]:
        """The values for one more pass: running statistics follow the step's first one only."""
        learned = set(self.layout.names)
        shared = {k: v for k, v in self.values.items() if k in learned or v is None}
        return shared | {k: v.clone() for k, v in self.values.items() if k not in shared}

    def weights(self, part: Layout) -> Tensor:
        """The trained parameters that `part` names, as one vector."""
        return part.take(self.layout, self.theta["model"])


class Term(Protocol):
    """A summand of the loss.

    Optional: `key` and `learned` (own parameters, trained along and found in `fwd.theta[key]`),
    `draw(rng, n)` (own chance, found in `fwd.draw`), `columns` (tensors with a row per training
    example; the batch's rows are in `fwd.columns`).
    """

    @property
    def taps(self) -> tuple[str, ...]: ...
    def loss(self, fwd: Forward) -> Tensor: ...


class Transform(Protocol):
    """Batch (`at` = "") or tap to its like. Its chance is drawn before, once per step."""

    @property
    def at(self) -> str: ...
    def draw(self, rng: Generator, n: int) -> Tensors: ...
    def apply(self, value: Tensor, draw: Tensors) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a loss evaluation leaves besides its value."""

    buffers: Tensor
    logits: Tensor
    losses: Tensor  # one per term, then their sum


class Loss(Protocol):
    def __call__(
        self,
        theta: Theta,
        /,
        *,
        batch: tuple[Tensor, Tensor] | None = None,
        change: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
    ) -> tuple[Tensor, Outcome]:
        """The loss on the step's batch, or on another; `change` alters a tap ("" is the input)."""


Slope = Callable[[Theta], tuple[Theta, Outcome]]  # theta -> (gradient, outcome)
Grad = Callable[[Callable[[Theta], tuple[Tensor, Outcome]]], Slope]


class Step(Protocol):
    """The gradient to descend. `draw(rng, n)`, where a step has one, gives it its own chance."""

    def __call__(
        self, loss: Loss, theta: Theta, grad: Grad, draw: Tensors
    ) -> tuple[Theta, Outcome]: ...


@dataclass(frozen=True)
class Plain:
    def __call__(
        self, loss: Loss, theta: Theta, grad: Grad, draw: Tensors
    ) -> tuple[Theta, Outcome]:
        return grad(loss)(theta)


@part()
class TaskLoss:
    """The task's own loss, smoothed where the recipe says so."""

    weight: float = 1.0
    taps: tuple[str, ...] = ()

    def loss(self, fwd: Forward) -> Tensor:
        value = fwd.task.loss(fwd.logits, fwd.y, fwd.smoothing)
        return value if self.weight == 1.0 else self.weight * value


@dataclass(frozen=True, eq=False)
class Job:
    """One site's (or the server's) work in one round: its data, recipe, chance and parts."""

    site: Site | None
    model: nn.Module  # the architecture; values always come from an inbox
    task: Task
    recipe: Recipe
    seed: int
    round: int = 0
    rounds: int = 1
    prepare: tuple[Any, ...] = ()  # transforms of the data: deterministic, part of the model
    augment: tuple[Any, ...] = ()  # transforms of the data: drawn in every training step
    parts: tuple[Any, ...] = (TaskLoss(),)  # terms and transforms of the method
    step: Step = Plain()
    name: str = "server"

    def adding(self, *parts: Any) -> "Job":
        return replace(self, parts=self.parts + parts)

    def stepping(self, step: Step) -> "Job":
        if self.step != Plain():
            raise ConfigError(f"a site makes one kind of step, not both {self.step} and {step}")
        return replace(self, step=step)

    def rng(self, label: str) -> Generator:
        """A stream for one use. Sites are interleaved, so nobody may use the global one."""
        return generator(self.seed, self.name, self.round, label)

    @property
    def local(self) -> Recipe:
        """The recipe as it holds in this round."""
        return self.recipe.at(self.round)

    @property
    def train(self) -> Examples:
        if self.site is None:
            raise ConfigError(f"{self.name} holds no data to train on")
        return self.site.train

    def training(
        self, start: Weights, optimizer: Theta | None = None, data: Examples | None = None
    ) -> "Training":
        """Train from `start` on the site's training data, or on `data`."""
        return Training(self, start, data or self.train, optimizer or None)

    def evaluation(self, predictor: nn.Module, data: Examples | None = None) -> "Evaluation":
        """Score `predictor` on the site's training data, or on `data`: eval mode, unaugmented."""
        return Evaluation(predictor, data or self.train, self.task, self.prepare)

    def prediction(self, predictor: nn.Module) -> "Prediction":
        """The predictor's outputs for the holder's examples."""
        return Prediction(predictor, self.train, self.prepare)


@dataclass(frozen=True, eq=False)
class Training:
    job: Job
    start: Weights
    data: Examples
    optimizer: Theta | None = None  # None: fresh

    @property
    def theta(self) -> Theta:
        own = {p.key: p.learned for p in self.job.parts if hasattr(p, "key")}
        return {"model": self.start.parameters, **own}


@dataclass(frozen=True, eq=False)
class Trained:
    model: Weights
    steps: int
    losses: dict[str, float]  # the mean of each term over the last epoch, and "total"
    learned: dict[str, Any]  # the parts' own parameters
    optimizer: Theta


@dataclass(frozen=True, eq=False)
class Evaluation:
    predictor: nn.Module
    data: Examples
    task: Task
    prepare: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the predictor puts out for every example: eval mode, unaugmented. No label is read."""

    predictor: nn.Module
    data: Examples
    prepare: tuple[Any, ...] = ()


Request = Training | Evaluation | Prediction
Answer = Any  # Trained for a Training, Scores for an Evaluation, a Tensor for a Prediction


def prepared(x: Tensor, prepare: tuple[Any, ...]) -> Tensor:
    """The batch as the model wants it."""
    for transform in prepare:
        x = transform.apply(x, {})
    return x


@torch.no_grad()
def outputs(
    predictor: nn.Module, x: Tensor | Examples, prepare: tuple[Any, ...], batch: int = 256
) -> Tensor:
    """The predictor's output for all examples, in eval mode, batch by batch."""
    before = predictor.training
    predictor.eval()
    try:
        return torch.cat([predictor(prepared(part, prepare)) for part in batches(x, batch)])
    finally:
        predictor.train(before)


def batches(x: Tensor | Examples, size: int) -> Iterable[Tensor]:
    return x.batches(size) if isinstance(x, Examples) else x.split(size)


def evaluate(request: Evaluation) -> Scores:
    data = request.data
    found = outputs(request.predictor, data, request.prepare)
    return request.task.scores(found, data.y, data.groups)
