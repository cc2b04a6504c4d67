"""A head that reads a Gaussian code, for FedSR: mu and sigma of x, a sample, the classes."""

from copy import deepcopy
from math import log, sqrt

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from feddg.local import Forward
from feddg.models import Anatomy, anatomy
from feddg.parts.shared import seeded_by, width
from feddg.seeds import generator
from feddg.trees import Tensors, part


def spread(code: Tensor) -> tuple[Tensor, Tensor]:
    """mu and sigma, of which `code` is mu beside what softplus makes sigma of."""
    mean, rho = code.chunk(2, -1)
    return mean, F.softplus(rho)


class Code(nn.Module):
    """Reads (mu, rho), gives mu; in training `Noise` puts a sample into the place of mu."""

    def forward(self, code: Tensor) -> Tensor:
        return code.chunk(2, -1)[0]


class GaussianHead(nn.Module):
    """`encode` to mu and sigma, `code`, `classify`. In eval mode the mean over samples, in log."""

    noise: Tensor

    def __init__(self, features: int, size: int, outputs: int, samples: int, rng: Generator):
        super().__init__()
        self.encode = linear(features, 2 * size, rng)
        self.code = Code()
        self.classify = linear(size, outputs, rng)
        noise = torch.randn(samples, 1, size, generator=generator("fedsr", "samples"))
        self.register_buffer("noise", noise, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        code = self.encode(x)
        if self.training or not len(self.noise):
            return self.classify(self.code(code))
        mean, sigma = spread(code)
        each = self.classify(mean + sigma * self.noise).log_softmax(-1)
        return each.logsumexp(0) - log(len(self.noise))


def linear(features: int, outputs: int, rng: Generator) -> nn.Linear:
    """As torch starts one, but from a stream of its own."""
    layer = nn.utils.skip_init(nn.Linear, features, outputs)
    for value in layer.parameters():
        nn.init.uniform_(value, -1 / sqrt(features), 1 / sqrt(features), generator=rng)
    return layer


def with_gaussian_head(model: nn.Module, size: int, samples: int) -> nn.Module:
    """A copy of `model` with such a head; the values of the old head seed the new one's."""
    layers = anatomy(model)
    where, _, name = layers.head.rpartition(".")
    if isinstance(model.get_submodule(where), GaussianHead):
        return model
    fresh = deepcopy(model)
    old, features = fresh.get_submodule(layers.head), width(fresh, layers.head)
    assert isinstance(old, nn.Linear)
    rng = seeded_by(model, "fedsr")
    head = GaussianHead(features, size or features, old.out_features, samples, rng)
    setattr(fresh.get_submodule(where), name, head.to(old.weight))
    fresh.anatomy = Anatomy(f"{layers.head}.classify", layers.taps)  # type: ignore[assignment]
    return fresh


@part()
class Noise:
    """mu + sigma e in the place of mu, at the code's input."""

    at: str
    size: int

    def draw(self, rng: Generator, n: int) -> Tensors:
        return {"noise": torch.randn(n, self.size, generator=rng)}

    def apply(self, value: Tensor, draw: Tensors) -> Tensor:
        mean, sigma = spread(value)
        return torch.cat([mean + sigma * draw["noise"], value[..., self.size :]], -1)


@part("learned")
class Prior:
    """weight * mean_i KL(N(c mu_i, c sigma_i) || r_y), with own Gaussians r and an own scale c."""

    learned: Tensors
    tap: str
    weight: float
    key: str = "fedsr"

    @property
    def taps(self) -> tuple[str, ...]:
        return (self.tap,)

    def loss(self, fwd: Forward) -> Tensor:
        own = fwd.theta[self.key]
        mean, sigma = (v * own["scale"] for v in spread(fwd.taps[self.tap]))
        to, wide = own["mean"][fwd.y], F.softplus(own["rho"])[fwd.y]
        ratio = (sigma.square() + (mean - to).square()) / (2 * wide.square())
        return self.weight * ((wide / sigma).log() + ratio - 0.5).sum(1).mean()


def priors(classes: int, size: int) -> Tensors:
    """As the released code starts them."""
    return {
        "mean": torch.zeros(classes, size),
        "rho": torch.ones(classes, size),
        "scale": torch.ones(()),
    }
