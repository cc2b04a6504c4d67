"""t-SNE (van der Maaten and Hinton, 2008), exact, for at most a few hundred points.

p_ij = (p_j|i + p_i|j) / 2N, a Gaussian whose entropy at i is log(perplexity)
q_ij ~ 1 / (1 + |y_i - y_j|^2);   y descends KL(p || q)
"""

from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from feddg.engines import one_thread
from feddg.errors import ConfigError
from feddg.seeds import generator

MOST = 1_500  # points; a step costs their square
STEPS, EARLY = 500, 125  # of the latter p is exaggerated, and groups form
EXAGGERATION = 12.0


@dataclass(frozen=True, eq=False)
class Embedding:
    """`kl` is KL(p || q) of every step, without exaggeration."""

    points: Tensor
    kl: tuple[float, ...]


def tsne(x: Tensor, perplexity: float = 30.0, seed: int = 0, steps: int = STEPS) -> Embedding:
    """N rows in the plane. Few rows lower the perplexity: it is at most a third of the others."""
    if not 4 <= len(x) <= MOST:
        raise ConfigError(f"t-SNE takes 4 to {MOST} points, not {len(x)}")
    if not torch.isfinite(x).all():
        raise ConfigError("t-SNE takes finite numbers, and these have NaN or infinity among them")
    with one_thread():
        p = affinities(x.flatten(1).double(), min(perplexity, (len(x) - 1) / 3)).float()
        return descend(p, seed, steps)


def affinities(x: Tensor, perplexity: float) -> Tensor:
    """p_ij; every row's width is found by bisection."""
    far = squared(x - x.mean(0))
    far = far / far.mean().clamp_min(1e-300)  # of size one, whatever the features' scale
    beta, low, high = torch.ones(3, len(x), 1, dtype=x.dtype)
    low, high = torch.zeros_like(low), torch.full_like(high, torch.inf)
    for _ in range(60):
        given = conditional(far, beta)
        entropy = torch.special.entr(given).sum(1, keepdim=True)
        wide = entropy > log(perplexity)
        low, high = torch.where(wide, beta, low), torch.where(wide, high, beta)
        beta = torch.where(high.isinf(), beta * 2, (low + high) / 2)
    given = conditional(far, beta)
    return (given + given.T) / (2 * len(x))


def conditional(far: Tensor, beta: Tensor) -> Tensor:
    """p_j|i with precision beta_i; nobody is its own neighbour."""
    return (-far * beta).fill_diagonal_(-torch.inf).softmax(1)


def squared(x: Tensor) -> Tensor:
    """|x_i - x_j|^2."""
    sizes = x.square().sum(1)
    return (sizes[:, None] + sizes - 2 * x @ x.T).clamp_min_(0).fill_diagonal_(0)


def descend(p: Tensor, seed: int, steps: int) -> Embedding:
    """Gradient descent with momentum and a gain for every number, as in the paper's own code."""
    n = len(p)
    y = 1e-4 * torch.randn(n, 2, generator=generator(seed, "t-SNE"))
    moved, gain = torch.zeros_like(y), torch.ones_like(y)
    rate = max(n / EXAGGERATION / 4, 50.0)
    own = torch.special.entr(p).sum()  # KL = sum p log p - sum p log q
    kl = []
    for step in range(steps):
        early = step < EARLY
        near = squared(y).add_(1).reciprocal_().fill_diagonal_(0)
        total = near.sum()
        kl.append(float(-own - (p * (near / total).clamp_min(1e-12).log()).sum()))
        pull = p.mul(EXAGGERATION if early else 1.0).sub_(near / total).mul_(near)
        slope = 4 * (pull.sum(1, keepdim=True) * y - pull @ y)
        gain = torch.where(slope.sign() == moved.sign(), gain * 0.8, gain + 0.2).clamp_min(0.01)
        moved = (0.5 if early else 0.8) * moved - rate * gain * slope
        y = y + moved
        y = y - y.mean(0)
    return Embedding(y, tuple(kl))
