"""FedADG's generator of reference features, its discriminator, and what each wants of the other."""

from dataclasses import dataclass
from math import sqrt

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from feddg.local import Forward
from feddg.seeds import generator
from feddg.trees import Tensors, each, part


@dataclass(frozen=True)
class Sizes:
    """In the proportions of the released code: 4096 features, 2048 numbers of noise, 1024 seen."""

    features: int
    classes: int

    @property
    def noise(self) -> int:
        return max(self.features // 2, 1)

    @property
    def seen(self) -> int:
        """To how many numbers the features are projected before they are judged."""
        return max(self.features // 4, 1)

    def generator(self, rng: Generator) -> Tensors:
        return perceptron(self.noise + self.classes, self.features, self.features, rng)

    def discriminator(self, rng: Generator) -> Tensors:
        return perceptron(self.seen + self.classes, self.seen, 1, rng)

    def projection(self) -> Tensor:
        """Random, fixed, and the same at every site; its rows have length 1."""
        rows = torch.randn(
            self.seen, self.features, generator=generator("fedadg", self.seen, self.features)
        )
        return F.normalize(rows, dim=1)


def perceptron(before: int, hidden: int, after: int, rng: Generator) -> Tensors:
    """Two dense layers, started as torch starts them."""

    def start(bound: int, *shape: int) -> Tensor:
        return (2 * torch.rand(*shape, generator=rng) - 1) / sqrt(bound)

    return {
        "in": start(before, hidden, before),
        "in_bias": start(before, hidden),
        "out": start(hidden, after, hidden),
        "out_bias": start(hidden, after),
    }


def through(own: Tensors, x: Tensor) -> Tensor:
    inside = F.leaky_relu(F.linear(x, own["in"], own["in_bias"]))
    return F.linear(inside, own["out"], own["out_bias"])


def made(own: Tensors, noise: Tensor, label: Tensor) -> Tensor:
    """Features of a class from noise; positive, as what follows a ReLU."""
    return through(own, torch.cat([noise, label], 1)).relu()


def judged(own: Tensors, projection: Tensor, z: Tensor, label: Tensor) -> Tensor:
    """Near 1 for the generator's features, near 0 for the network's."""
    return through(own, torch.cat([F.linear(z, projection), label], 1)).sigmoid()[:, 0]


@part("learned", "projection")
class Adversaries:
    """away mean (1 - D(z))^2 + rate (mean D(G)^2 + mean (1 - D(G))^2 + mean D(z)^2).

    The first is for the network, the second for the generator, the rest for the discriminator;
    in each, the other parties stand still. All three are least squares, as in LSGAN.
    """

    learned: dict[str, Tensors]
    projection: Tensor
    sizes: Sizes
    features: str
    away: float
    rate: float
    key: str = "fedadg"

    @property
    def taps(self) -> tuple[str, ...]:
        return (self.features,)

    def draw(self, rng: Generator, n: int) -> Tensors:
        return {"noise": torch.rand(n, self.sizes.noise, generator=rng)}

    def loss(self, fwd: Forward) -> Tensor:
        own, z = fwd.theta[self.key], fwd.taps[self.features]
        label = (fwd.y[:, None] == torch.arange(self.sizes.classes, device=z.device)).to(z)
        reference = made(own["generator"], fwd.draw["noise"], label)
        fixed = each(torch.Tensor.detach, own["discriminator"])

        def judge(judge: Tensors, z: Tensor) -> Tensor:
            return judged(judge, self.projection, z, label)

        fool = (1 - judge(fixed, z)).square().mean()
        follow = judge(fixed, reference).square().mean()
        apart = (1 - judge(own["discriminator"], reference.detach())).square().mean()
        near = judge(own["discriminator"], z.detach()).square().mean()
        return self.away * fool + self.rate * (follow + apart + near)
