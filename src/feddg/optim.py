"""Optimisers as pure functions of trees: they run alone or under vmap over many sites."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from feddg.trees import each

Theta = dict[str, Any]  # "model": the parameter vector; then a part's own parameters by its key


@dataclass(frozen=True)
class SGD:
    """As torch.optim.SGD: v <- momentum v + g + decay w; w <- w - rate v.

    With nesterov the direction is g + momentum v.
    """

    momentum: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    def init(self, theta: Theta) -> Theta:
        return {"velocity": each(torch.zeros_like, theta)} if self.momentum else {}

    def step(self, theta: Theta, g: Theta, state: Theta, rate: Tensor) -> tuple[Theta, Theta]:
        if self.weight_decay:
            g = each(lambda d, w: d.add(w, alpha=self.weight_decay), g, theta)
        if self.momentum:
            v = each(lambda v, d: d.add(v, alpha=self.momentum), state["velocity"], g)
            g = each(lambda d, v: d.add(v, alpha=self.momentum), g, v) if self.nesterov else v
            state = {"velocity": v}
        return each(lambda w, d: w - rate * d, theta, g), state


@dataclass(frozen=True)
class Adam:
    """As torch.optim.Adam, and AdamW where the decay is `decoupled`."""

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False

    def init(self, theta: Theta) -> Theta:
        zeros = each(torch.zeros_like, theta)
        count = torch.zeros((), dtype=theta["model"].dtype, device=theta["model"].device)
        return {"mean": zeros, "square": zeros, "count": count}

    def step(self, theta: Theta, g: Theta, state: Theta, rate: Tensor) -> tuple[Theta, Theta]:
        decay = self.weight_decay
        if decay and self.decoupled:
            theta = each(lambda w: w * (1 - rate * decay), theta)
        elif decay:
            g = each(lambda d, w: d.add(w, alpha=decay), g, theta)
        t = state["count"] + 1
        b1, b2 = self.beta1, self.beta2
        m = each(lambda m, d: b1 * m + (1 - b1) * d, state["mean"], g)
        s = each(lambda s, d: b2 * s + (1 - b2) * d * d, state["square"], g)
        unit, root = rate / (1 - b1**t), (1 - b2**t).sqrt()
        after = each(lambda w, m, s: w - unit * m / (s.sqrt() / root + self.eps), theta, m, s)
        return after, {"mean": m, "square": s, "count": t}


Optimizer = SGD | Adam
