"""Terms, transforms and steps that several methods share: pure, with their tensors as leaves."""

from torch import Tensor

from feddg.local import Forward
from feddg.trees import part
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
