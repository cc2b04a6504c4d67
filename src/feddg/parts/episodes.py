"""The episode of ELCFS: a step that must also help on the same images in another style."""

import torch
from torch import Generator, Tensor

from feddg.constants import constant
from feddg.data.transforms import Numbers
from feddg.local import Grad, Loss, Outcome
from feddg.optim import Theta
from feddg.parts.spectra import with_low_amplitude
from feddg.training import func_grad
from feddg.trees import Tensors, each, part


def by_channel(numbers: Numbers, like: Tensor) -> Tensor:
    return constant(numbers, like)[:, None, None]


@part("bank", "chance")
class Episode:
    """grad L(w; x) + meta grad L(w - rate clip(grad L(w; x)); x in another site's style).

    The style: the low frequencies' amplitude becomes (1 - l) |F x| + l bank, l ~ U(0, 1), or
    the bank's (`hard`). The phase stays. Batch norm keeps the plain batch's statistics.
    """

    bank: Tensor  # amplitudes of other sites' images
    chance: Tensor  # of each of them
    rate: float
    clip: float
    meta: float
    hard: bool
    second_order: bool
    mean: Numbers  # what brings the batch back to pixels
    std: Numbers

    def draw(self, rng: Generator, n: int) -> Tensors:
        at = torch.multinomial(self.chance, n, replacement=True, generator=rng)
        share = torch.rand(n, 1, 1, 1, generator=rng)
        return {"low": self.bank[at], "share": torch.ones_like(share) if self.hard else share}

    def styled(self, x: Tensor, draw: Tensors) -> Tensor:
        mean, std = (by_channel(v, x) for v in (self.mean, self.std))
        pixels = with_low_amplitude(x * std + mean, draw["low"].to(x), draw["share"].to(x))
        return (pixels - mean) / std

    def __call__(
        self, loss: Loss, theta: Theta, grad: Grad, draw: Tensors
    ) -> tuple[Theta, Outcome]:
        g, outcome = grad(loss)(theta)

        def adapted(theta: Theta, g: Theta) -> Theta:
            return each(lambda w, d: w - self.rate * d.clamp(-self.clip, self.clip), theta, g)

        def elsewhere(theta: Theta) -> tuple[Tensor, Outcome]:
            if self.second_order:
                theta = adapted(theta, func_grad(loss)(theta)[0])
            return loss(theta, change={"": lambda x: self.styled(x, draw)})

        start = theta if self.second_order else adapted(theta, g)
        h, _ = grad(elsewhere)(start)
        return each(lambda a, b: a + self.meta * b, g, h), outcome
