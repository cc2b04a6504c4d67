"""Terms, transforms and steps that several methods share: pure, with their tensors as leaves."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from feddg.local import Forward, Grad, Loss, Outcome
from feddg.optim import Theta
from feddg.trees import Tensors, each, part
from feddg.weights import Layout


@part("anchor")
class Proximal:
    """mu/2 ||w - anchor||^2; its gradient is mu (w - anchor)."""

    anchor: Tensor
    on: Layout
    mu: float
    taps: tuple[str, ...] = ()

    def loss(self, fwd: Forward) -> Tensor:
        return self.mu / 2 * (fwd.weights(self.on) - self.anchor).square().sum()


@part("slope")
class Linear:
    """<slope, w>: adds `slope` to the gradient."""

    slope: Tensor
    on: Layout
    taps: tuple[str, ...] = ()

    def loss(self, fwd: Forward) -> Tensor:
        return fwd.weights(self.on) @ self.slope


@dataclass(frozen=True)
class SAM:
    """The gradient at w + rho g / ||g||, to be descended from w (g: all terms, all parameters).

    Batch norm keeps the statistics of the first forward, at w, and drops those of the second.
    """

    rho: float

    def __call__(
        self, loss: Loss, theta: Theta, grad: Grad, draw: Tensors
    ) -> tuple[Theta, Outcome]:
        slope = grad(loss)
        g, outcome = slope(theta)
        size = torch.stack([x.square().sum() for x in pytree.tree_leaves(g)]).sum().sqrt()
        reach = self.rho / (size + 1e-12)
        g, _ = slope(each(lambda w, d: w + reach * d, theta, g))
        return g, outcome
