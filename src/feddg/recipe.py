"""How a site optimises. It belongs to the experiment, so that methods compare fairly."""

from dataclasses import dataclass, replace
from math import cos, inf, pi
from typing import Literal

from feddg.errors import ConfigError, check_choices
from feddg.optim import SGD, Adam, Optimizer


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Local optimisation for all rounds; `at(round)` is what holds in one of them.

    A round has `epochs` passes over the data, or exactly `steps` steps; the first round may
    differ. The rate follows `schedule` over the whole run, moved on per round or per step.
    `optimizer_state` and batch-norm `buffers` are switches because public code disagrees.
    """

    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"
    lr: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine", "step", "exponential"] = "constant"
    decay: float = 0.1  # the factor of "step" at `decay_at`; of "exponential" over the whole run
    decay_at: tuple[float, ...] = (0.8,)  # shares of the run
    per: Literal["round", "step"] = "round"
    epochs: int = 1
    steps: int | None = None
    first_epochs: int | None = None
    first_steps: int | None = None
    batch_size: int = 32
    drop_last: bool = True  # a site smaller than one batch always trains on all it has
    label_smoothing: float = 0.0
    first_label_smoothing: float | None = None
    optimizer_state: Literal["reset", "keep"] = "reset"
    buffers: Literal["mean", "uniform", "keep"] = "mean"

    def __post_init__(self) -> None:
        check_choices("recipe", self)
        for name in ("epochs", "steps", "first_epochs", "first_steps", "batch_size"):
            self.within(name, 1, inf)
        for name in ("momentum", "label_smoothing", "first_label_smoothing"):
            self.within(name, 0, 1, below=True)
        self.within("weight_decay", 0, inf, below=True)
        for name in ("lr", "decay"):
            if not 0 < getattr(self, name) < inf:
                raise ConfigError(f"recipe: {name} must be positive, not {getattr(self, name)}")
        if not all(0 <= at <= 1 for at in self.decay_at):
            raise ConfigError(f"recipe: decay_at holds shares of the run, not {self.decay_at}")
        if self.nesterov and not self.momentum:
            raise ConfigError("recipe: nesterov needs a momentum above 0")

    def within(self, name: str, least: float, most: float, below: bool = False) -> None:
        value = getattr(self, name)
        if value is None or (least <= value < most if below else least <= value <= most):
            return
        limit = f" and {'below' if below else 'at most'} {most:g}" if most < inf else ""
        raise ConfigError(f"recipe: {name} must be at least {least:g}{limit}, not {value}")

    def at(self, round: int) -> "Recipe":
        """The recipe with this round's epochs, steps and smoothing in place of the first's."""
        if round > 0:
            return self
        if self.first_steps is not None:
            steps, epochs = self.first_steps, self.epochs
        elif self.first_epochs is not None:
            steps, epochs = None, self.first_epochs
        else:
            steps, epochs = self.steps, self.epochs
        first = self.first_label_smoothing
        smoothing = self.label_smoothing if first is None else first
        return replace(self, steps=steps, epochs=epochs, label_smoothing=smoothing)

    def batch(self, n: int) -> int:
        return min(n, self.batch_size)

    def per_epoch(self, n: int) -> int:
        whole, rest = divmod(n, self.batch(n))
        return whole + (1 if rest and not self.drop_last else 0)

    def length(self, n: int) -> int:
        """Steps of one round at a site with n examples."""
        return self.steps if self.steps is not None else self.epochs * self.per_epoch(n)

    def rates(self, round: int, rounds: int, n: int) -> list[float]:
        """The learning rate of every step of a round."""
        length = self.at(round).length(n)
        if self.per == "round":
            return [self.lr * self.factor(round / max(rounds, 1))] * length
        before = 0 if round == 0 else self.at(0).length(n) + (round - 1) * self.length(n)
        total = self.at(0).length(n) + max(rounds - 1, 0) * self.length(n)
        return [self.lr * self.factor((before + t) / max(total, 1)) for t in range(length)]

    def factor(self, done: float) -> float:
        """Of the rate, after the share `done` of the run."""
        if self.schedule == "cosine":
            return (1 + cos(pi * done)) / 2
        if self.schedule == "step":
            return float(self.decay ** sum(done >= at for at in self.decay_at))
        if self.schedule == "exponential":
            return float(self.decay**done)
        return 1.0

    def make_optimizer(self) -> Optimizer:
        if self.optimizer == "sgd":
            return SGD(self.momentum, self.weight_decay, self.nesterov)
        return Adam(weight_decay=self.weight_decay, decoupled=self.optimizer == "adamw")
