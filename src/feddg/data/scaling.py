"""Columns of numbers: what is missing, and the statistics that fill and scale them.

Values stay raw in the data (NaN where missing), each with an indicator column at its side; the
statistics live in the transforms, and so in the deployed model. Only sums leave a site.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor

from feddg.data.domain import Domain, Examples
from feddg.data.transforms import Impute, Standardise, Transform, prepared
from feddg.errors import DataError, unknown


@dataclass(frozen=True, eq=False)
class Sums:
    """All that a site tells about its columns: rows; and per column what is there, Σx, Σx²."""

    rows: int
    count: Tensor
    total: Tensor
    squares: Tensor

    @staticmethod
    def of(x: Tensor) -> "Sums":
        known, x = ~x.isnan(), x.double().nan_to_num(0.0)
        return Sums(len(x), known.sum(0), x.sum(0), x.square().sum(0))

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            self.rows + other.rows,
            self.count + other.count,
            self.total + other.total,
            self.squares + other.squares,
        )

    @property
    def mean(self) -> Tensor:
        return self.total / self.count.clamp_min(1)

    @property
    def std(self) -> Tensor:
        """√(E x² − (E x)²) over the values that are there; 0 for a constant column."""
        size = self.squares / self.count.clamp_min(1)
        variance = size - self.mean.square()
        return torch.where(variance > 1e-12 * size, variance, 0.0).clamp_min(0).sqrt()


def with_indicators(x: Tensor) -> Tensor:
    """F columns with gaps to 2F: the values, then 1 where the value is missing."""
    return torch.cat([x, x.isnan().to(x.dtype)], 1)


def fitted(sums: Sums, indicators: bool) -> tuple[Transform, ...]:
    """Fill gaps with the mean and standardise; indicators stay 0/1, and 0 where constant."""
    mean, std = sums.mean, sums.std
    if not indicators:
        return (Standardise(tuple(mean.tolist()), tuple(std.tolist())),)
    varies = ((sums.count > 0) & (sums.count < sums.rows)).double()
    zeros = torch.zeros_like(mean)
    mean, std = torch.cat([mean, zeros]), torch.cat([std, varies])
    fill = tuple(mean.tolist())
    return Impute(fill), Standardise(fill, tuple(std.tolist()))


def scaled(
    domains: tuple[Domain, ...],
    scaling: str,
    target: str | None,
    sources: Collection[str] | None,
    indicators: bool,
) -> tuple[tuple[Domain, ...], tuple[Transform, ...], tuple[str, ...]]:
    """The domains in one of the ways of `SCALINGS`, what prepares them, and by whose statistics."""
    if scaling not in SCALINGS:
        raise unknown("scaling", scaling, SCALINGS)
    known = {d.name: d for d in domains}
    for name in [*(sources or ()), *([target] if target else [])]:
        if name not in known:
            raise unknown("domain", name, known)
    others = [n for n in known if n != target]
    default = [n for n in others if _trains(known[n])] or others
    chosen = {n: d for n, d in known.items() if n in (sources or default)}
    if not chosen:
        raise DataError(f"scaling by sources: no domain besides the target {target!r}")
    if target in chosen:
        raise DataError(f"domain {target!r} is the target and a source; choose one role for it")
    done, prepare = SCALINGS[scaling](domains, chosen, indicators)
    return done, prepare, tuple(chosen) if prepare else ()


Scaled = tuple[tuple[Domain, ...], tuple[Transform, ...]]


def _by_sources(
    domains: tuple[Domain, ...], sources: Mapping[str, Domain], indicators: bool
) -> Scaled:
    """Each source sends its `Sums`; their total is all that the scaling is made from."""
    sent = [Sums.of(_values(_training(d), indicators)) for d in sources.values()]
    return domains, fitted(reduce(add, sent), indicators)


def _by_site(
    domains: tuple[Domain, ...], sources: Mapping[str, Domain], indicators: bool
) -> Scaled:
    """Each domain by its own sums, the target by its unlabelled ones; nothing leaves a site."""

    def own(domain: Domain) -> Domain:
        x = domain.examples.x
        sums = Sums.of(_values(_training(domain), indicators))
        done = prepared(x.double(), fitted(sums, indicators)).to(x.dtype)
        return replace(domain, examples=replace(domain.examples, store=done, rows=None))

    return tuple(map(own, domains)), ()


def _not_at_all(
    domains: tuple[Domain, ...], sources: Mapping[str, Domain], indicators: bool
) -> Scaled:
    """As given, but for gaps: these get the mean by the sources' sums."""
    _, prepare = _by_sources(domains, sources, indicators)
    return domains, tuple(t for t in prepare if isinstance(t, Impute))


SCALINGS: dict[str, Callable[[tuple[Domain, ...], Mapping[str, Domain], bool], Scaled]] = {
    "sources": _by_sources,
    "site": _by_site,
    "none": _not_at_all,
}
PROTOCOLS = {
    "sources": "scaled by sources",
    "site": "scaled by site (sees the target's unlabelled values)",
    "none": "not scaled",
}


def _trains(domain: Domain) -> bool:
    """Whether an official split leaves it rows to train on."""
    train = domain.splits.get("train")
    return train is None or len(train) > 0


def _training(domain: Domain) -> Examples:
    """The rows that a site trains on; all, where no official split says otherwise."""
    train = domain.part("train")
    return train if train is not None and len(train) else domain.examples


def _values(examples: Examples, indicators: bool) -> Tensor:
    x: Any = examples.x
    half: Tensor = x[:, : x.shape[1] // 2] if indicators else x
    return half
