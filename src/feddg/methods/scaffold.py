"""SCAFFOLD (Karimireddy et al., ICML 2020): control variates take the sites' drift out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from feddg.errors import ConfigError
from feddg.local import Job
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.methods.fednova import reach
from feddg.packets import Inbox, Reply, State
from feddg.parts.terms import Linear
from feddg.trees import Tree


@dataclass(frozen=True)
class Scaffold(Wrapper):
    """Descends g + c - c_i, the gradient of a loss with the linear term <c - c_i, w>.

    After training from x to y_i a site renews its control, an estimate of its mean gradient:
    option 1   c_i <- the gradient at x over its data (one more pass)
    option 2   c_i <- c_i - c + (x - y_i) / (K rate)
    and the server's follows: c <- c + sum over replies of the changes / all sites, present or not,
    whatever their say in the model. Controls have parameters only, no batch-norm buffers.

    The paper's K * rate is here the sum of the rates, and with momentum how far a constant gradient
    would have moved the model: else c_i is up to 1/(1 - momentum) times too long and, beyond 2,
    grows from round to round. `momentum_aware = False` is the paper to the letter.
    Public code differs: GA's leaves the rate out and weighs the changes, FedDG_Benchmark counts
    epochs for steps and takes buffers in.
    """

    inner: Method = FedAvg()
    option: int = 2
    momentum_aware: bool = True

    own: ClassVar[Reveals] = Reveals({"scaffold": "the change of its control, a mean gradient"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.option not in (1, 2):
            raise ConfigError(f"scaffold has option=1 and option=2, not {self.option}")

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        state = self.inner.init(model, sites)
        c = torch.zeros_like(state.model.parameters)
        return state.noting("scaffold", {"c": c, "sites": len(sites)})

    def broadcast(self, state: State, round: int) -> Inbox:
        return self.inner.broadcast(state, round).noting("scaffold", state.notes["scaffold"]["c"])

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        if self.option == 2 and job.recipe.optimizer != "sgd":
            raise ConfigError(
                f"scaffold(option=2) reads a gradient from the way that SGD went; with"
                f" {job.recipe.optimizer} use scaffold(option=1)"
            )
        x, c = inbox.model.parameters, inbox.notes["scaffold"]
        before = memory.get("scaffold", torch.zeros_like(c))
        corrected = job.adding(Linear(c - before, inbox.model.layout.parameters()))
        reply, memory = yield from self.inner.local_update(inbox, corrected, memory)
        if self.option == 1:
            change = (yield from slope(inbox, job)) - before
        else:
            change = (x - reply.model.parameters) / reach(job, self.momentum_aware) - c
        return reply.noting("scaffold", change), {**memory, "scaffold": before + change}

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        c, sites = state.notes["scaffold"]["c"], state.notes["scaffold"]["sites"]
        after = yield from self.inner.aggregate(state, replies, job)
        moved = torch.zeros_like(c)
        for reply in replies:
            moved += reply.notes["scaffold"]
        return after.noting("scaffold", {"c": c + moved / sites, "sites": sites})


def slope(inbox: Inbox, job: Job) -> Work[Tensor]:
    """The mean gradient over one pass at the model that was sent.

    The rate is too small to move a weight and the momentum is 1 (which a recipe refuses) but for
    rounding, so that the velocity adds the gradients up.
    """
    still: dict[str, Any] = {"lr": 1e-30, "momentum": 1 - 1e-12, "nesterov": False}
    once: dict[str, Any] = {"epochs": 1, "steps": None, "first_epochs": None, "first_steps": None}
    recipe = replace(job.recipe, optimizer="sgd", **still, **once)
    trained = yield replace(job, recipe=recipe).training(inbox.model)
    total: Tensor = trained.optimizer["velocity"]["model"]
    return total / trained.steps
