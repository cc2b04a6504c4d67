"""How the server turns replies into the next model: old + what it makes of the updates.

The rows of X are updates, reply - old, parameters only. Most merges are geometry: they find
coefficients c from numbers that the sites report and from the Gram matrix X X', and move
by c @ X. Batch-norm buffers are outside of it (`buffered`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Generator, Tensor

from feddg.method import Sees
from feddg.packets import Reply
from feddg.shelf import matrix
from feddg.weights import Weights


@dataclass(frozen=True, eq=False)
class Gathered:
    """The replies of a round, as a merge wants them."""

    old: Weights
    replies: Sequence[Reply]
    rng: Generator

    @property
    def sites(self) -> list[str]:
        return [r.site for r in self.replies]

    @cached_property
    def updates(self) -> Tensor:
        """K x P, parameters only; beyond the memory budget, in a file (`feddg.shelf`)."""
        start, cut = self.old.parameters, self.old.layout.cut
        x = matrix(len(self.replies), cut, start)
        for row, reply in zip(x, self.replies, strict=True):
            torch.sub(reply.model.parameters, start, out=row)
        return x

    @cached_property
    def shares(self) -> Tensor:
        """The sites' say, summing to 1."""
        w = torch.tensor([r.weight for r in self.replies], dtype=torch.float64)
        return w / w.sum()


@dataclass(frozen=True, eq=False)
class Merged:
    """A step of the parameters, and what was decided on the way, for the record."""

    step: Tensor
    trace: dict[str, Any] = field(default_factory=dict)


class Merge(Protocol):
    @property
    def sees(self) -> Sees: ...
    def __call__(self, got: Gathered) -> Merged: ...


@contextmanager
def whole_products() -> Iterator[None]:
    """A GPU's products of float32 in float32, whatever training is allowed to round."""
    matmul = torch.backends.cuda.matmul
    before, matmul.allow_tf32 = matmul.allow_tf32, False
    try:
        yield
    finally:
        matmul.allow_tf32 = before


@cache
def triton_kernels() -> Any:
    """Triton's programs, where there is Triton; None elsewhere."""
    try:
        from feddg.merges import kernels
    except ImportError:
        return None
    return kernels


def gpu_kernels(x: Tensor) -> Any:
    """The programs that can take this matrix; None for all but float32 on a GPU."""
    fits = x.is_cuda and x.dtype == torch.float32 and x.stride(1) == 1
    return triton_kernels() if fits else None


def combined(c: Tensor, x: Tensor) -> Tensor:
    """c @ X in the precision of X."""
    kernels = gpu_kernels(x)
    if kernels and len(x) <= kernels.UNROLLED:
        found: Tensor = kernels.combined(c.to(x), x)
        return found
    with whole_products():
        return c.to(x) @ x


@dataclass(frozen=True)
class WeightedMean:
    """old + sum_i a_i (w_i - old). One reply at a time: X is never held."""

    sees: ClassVar[Sees] = "sums"

    def __call__(self, got: Gathered) -> Merged:
        start = got.old.parameters
        step = torch.zeros_like(start)
        for a, reply in zip(got.shares.tolist(), got.replies, strict=True):
            step.add_(reply.model.parameters - start, alpha=a)
        return Merged(step, {"weights": dict(zip(got.sites, got.shares.tolist(), strict=True))})


@dataclass(frozen=True)
class Median:
    """The coordinate-wise median of the updates (Yin et al., ICML 2018).

    A few sites that send nonsense cannot move it. Ignores the sites' weights; for an even number
    of sites it is the mean of the two middle values.
    """

    sees: ClassVar[Sees] = "everything"

    def __call__(self, got: Gathered) -> Merged:
        ordered = got.updates.sort(0)[0]
        k = len(ordered)
        step = (ordered[(k - 1) // 2] + ordered[k // 2]) / 2
        spread = (got.updates - step).norm(dim=1).tolist()
        return Merged(step, {"distance": dict(zip(got.sites, spread, strict=True))})


def buffered(got: Gathered, policy: Literal["mean", "uniform", "keep"]) -> Tensor:
    """The next buffers: by the sites' weights, uniformly, or the old ones."""
    old = got.old.buffers
    if policy == "keep" or not len(old):
        return old
    k = len(got.replies)
    say = got.shares.tolist() if policy == "mean" else [1 / k] * k
    after = old.clone()
    for a, reply in zip(say, got.replies, strict=True):
        after.add_(reply.model.buffers - old, alpha=a)
    return after
