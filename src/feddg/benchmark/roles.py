"""An experiment's data: opened once in a process, shared by its runs, every domain in its role."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from feddg.data.adaptation import adapting, divided
from feddg.data.catalogue import open_collection, resolve
from feddg.data.domain import Collection, Domain, Examples, Federation, Site, federation
from feddg.errors import DataError, unknown
from feddg.tasks import Classification

Options = tuple[tuple[str, str], ...]
Splits = dict[str, dict[str, Any]]  # site -> how many examples, and the rows held out


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Which domains train, help to select and are judged on. Empty `sources`: all the others."""

    data: str
    options: Options = ()
    targets: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()
    pooled: bool = False
    oracle: bool = False
    share: float = 0.0
    seed: int = 0
    allow_missing_classes: bool = False
    adapted: bool = False  # the server holds most of the target, unlabelled; judged on its rest


@lru_cache(maxsize=8)
def opened(data: str, options: Options = (), target: str | None = None) -> Collection:
    return open_collection(data, target=target, **dict(options))


def overview(data: str, options: Mapping[str, str]) -> Collection:
    """For names, task and shapes; its scaling is not that of a run."""
    return opened(data, tuple(sorted(options.items())))


def collection(roles: Roles) -> Collection:
    """Statistics of the data come from the sources alone, so it is opened for these roles."""
    options = dict(roles.options)
    spec, values = resolve(roles.data, options)
    held = (*roles.targets, *roles.validation)
    leaked = [name for name in held if name in values.get("sources", ())]
    if leaked:
        raise DataError(
            f"{roles.data}: domain {leaked[0]!r} is held out and in the data option sources=,"
            " whose statistics scale the data; take it out there"
        )
    if not spec.targeted or "sources" in options:
        return opened(roles.data, roles.options)
    if not roles.sources and len(held) < 2:
        return opened(roles.data, roles.options, held[0] if held else None)
    options["sources"] = ",".join(sources(roles))
    return opened(roles.data, tuple(sorted(options.items())))


def sources(roles: Roles) -> tuple[str, ...]:
    data = overview(roles.data, dict(roles.options))
    names = data.names
    for name in (*roles.sources, *roles.targets, *roles.validation):
        if name not in names:
            raise unknown(f"domain of {roles.data}", name, names)
    taken = {*roles.targets, *roles.validation}
    found = roles.sources or tuple(
        n
        for n in names
        if n not in taken and len(data[n].trainable)  # not WILDS' unseen domains
    )
    both = [n for n in found if n in taken]
    if both:
        raise DataError(f"{roles.data}: domain {both[0]!r} is held out and a source; choose one")
    if not found:
        raise DataError(
            f"{roles.data} has one domain only ({names[0]}); holding it out leaves none to train on"
            if len(names) == 1
            else f"{roles.data}: all its domains ({', '.join(names)}) are held out; leave some to"
            " train on"
        )
    return found


@lru_cache(maxsize=8)
def federated(roles: Roles) -> tuple[Federation, Splits]:
    """The federation, whose tensors all methods of a bench share, and who held out which rows."""
    if roles.oracle:
        return on_target(roles)
    names = sources(roles)
    data = collection(roles)
    split = {name: data[name].split(roles.share, roles.seed) for name in names}
    fed = federation(
        data, names, roles.targets, roles.validation, share=roles.share, seed=roles.seed
    )
    if not roles.allow_missing_classes:
        complete(fed)
    fed = replace(fed, sites=(pool(fed.sites),)) if roles.pooled else fed
    rows = {name: rows_of(domain) for name, domain in split.items()}
    if roles.adapted:
        fed = adapting(fed, roles.seed)
        rows |= {d.name: rows_of(d, "test") for d in fed.targets}
    return fed, rows


def on_target(roles: Roles) -> tuple[Federation, Splits]:
    """The targets' own sites: 80% of each trains, the rest is what it is judged on.

    Where columns are scaled it is by all of a target's values, none of its labels.
    """
    data = collection(replace(roles, oracle=False, targets=(), sources=roles.targets))
    split = [divided(data[name], roles.seed) for name in roles.targets]
    judged = [replace(d, splits={"test": d.splits["test"]}) for d in split]
    fed = Federation(tuple(map(Site.of, split)), tuple(judged), data)
    return fed, {d.name: rows_of(d, "test") for d in split}


def complete(fed: Federation) -> None:
    """A site that trains on no example of a class unlearns it: that is said, not passed over."""
    data = fed.collection
    if not isinstance(data.task, Classification):
        return
    for site in fed.sites:
        there = set(site.train.y.unique().tolist())
        for k, name in enumerate(data.task.classes):
            if k not in there:
                raise DataError(
                    f"site {site.name!r} of {data.name} has no example of class {name!r} to train"
                    " on; add some, leave the site out, or pass --allow-missing-classes"
                    " (allow_missing_classes=True in Python) if that is how it is"
                )


def rows_of(domain: Domain, part: str = "val") -> dict[str, Any]:
    held = domain.splits.get(part)
    return {"examples": len(domain.examples), "val": [] if held is None else held.tolist()}


def pool(sites: tuple[Site, ...]) -> Site:
    """All data in one place: a bound that no federation may compute."""

    def together(parts: list[Examples]) -> Examples:
        groups = [p.groups for p in parts if p.groups is not None]
        return Examples(
            torch.cat([p.x for p in parts]),
            torch.cat([p.y for p in parts]),
            torch.cat(groups) if len(groups) == len(parts) else None,
        )

    held = [s.val for s in sites if s.val is not None]
    return Site("pooled", together([s.train for s in sites]), together(held) if held else None)
