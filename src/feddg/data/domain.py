"""Domains, the sites that hold them, and the federation that they form.

domain       a distribution of data: `art_painting`, `m75`, hospital 3
site         who holds one domain's data privately
target       an unseen domain on which the model is judged
federation   the sites, optional validation domains, the targets
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from feddg.data.examples import Examples
from feddg.errors import DataError, unknown
from feddg.seeds import generator
from feddg.tasks import Task

__all__ = [
    "Collection",
    "Domain",
    "Examples",
    "Federation",
    "Site",
    "check_name",
    "federation",
    "leave_one_domain_out",
    "nested_sources",
    "official_splits",
    "unseen",
]


def check_name(kind: str, name: str) -> None:
    """Names stand in the keys of scores and in the labels of streams of chance."""
    if not name or "/" in name or name.endswith("#"):
        raise DataError(f"{name!r} cannot name a {kind}: no '/', no '#' at its end")


@dataclass(frozen=True, eq=False)
class Domain:
    """A domain's examples, and its splits as row numbers: "train", "val", "test".

    files   what each example was read from, where it was a file: by that the manifest knows it
    """

    name: str
    examples: Examples
    splits: Mapping[str, Tensor] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name("domain", self.name)

    @property
    def trainable(self) -> Tensor:
        """The rows to train on: those said to be, else all that are not held out."""
        given = torch.zeros(len(self.examples), dtype=torch.bool)
        for at in self.splits.values():
            given[at] = True
        return self.splits.get("train", torch.arange(len(given))[~given])

    def part(self, split: str) -> Examples | None:
        rows = self.splits.get(split)
        return None if rows is None else self.examples.take(rows)

    def split(self, share: float, seed: int) -> "Domain":
        """Hold out `share` of the training examples for validation, by a seeded draw.

        Only the seed and the number of examples decide which rows: domains that show the same
        objects in the same order (Rotated MNIST) hold out the same objects, so nothing leaks.
        """
        rows = self.trainable
        if "val" in self.splits or not share:
            return replace(self, splits={"train": rows, **self.splits})
        if not 0 < share < 1 or not 0 < round(share * len(rows)) < len(rows):
            raise DataError(
                f"domain {self.name!r}: cannot hold out {share:g} of its {len(rows)} examples"
                " for validation; choose a share that leaves both parts non-empty"
            )
        once = rows.unique()
        if len(once) < len(rows):  # an example that counts several times is held out as a whole
            val = replace(self, splits={"train": once}).split(share, seed).splits["val"]
            kept = rows[~torch.isin(rows, val)]
            return replace(self, splits={**self.splits, "train": kept, "val": val})
        order = torch.randperm(len(rows), generator=generator(seed, "split"))
        held = round(share * len(rows))
        val, train = rows[order[:held].sort()[0]], rows[order[held:].sort()[0]]
        return replace(self, splits={**self.splits, "train": train, "val": val})


@dataclass(frozen=True, eq=False)
class Site:
    """A participant: its private training data and, if split off, its own validation data."""

    name: str
    train: Examples
    val: Examples | None = None
    joins: int = 0  # the first round in which it can be asked

    @staticmethod
    def of(domain: Domain) -> "Site":
        train = domain.part("train")
        return Site(domain.name, domain.examples if train is None else train, domain.part("val"))


@dataclass(frozen=True, eq=False)
class Collection:
    """Domains that share a task, and what is done to a batch before the model sees it.

    `prepare` is deterministic and becomes part of the model (uint8 to scaled floats);
    `augment` is drawn anew in every training step. Both are batched transforms.
    """

    name: str
    domains: tuple[Domain, ...]
    task: Task
    prepare: tuple[Any, ...] = ()
    augment: tuple[Any, ...] = ()
    protocol: str = ""  # how it was made and split; a paper's number stands beside the same only
    columns: tuple[str, ...] = ()  # the features' names, where they have any
    scaled_on: tuple[str, ...] = ()  # the domains whose statistics `prepare` holds

    def __getitem__(self, name: str) -> Domain:
        for domain in self.domains:
            if domain.name == name:
                return domain
        known = ", ".join(self.names)
        raise DataError(f"{self.name} has no domain {name!r}; it has: {known}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(d.name for d in self.domains)

    def sources(self, held: Sequence[str]) -> tuple[str, ...]:
        """All domains but those held out, and but those that are so by the data's own split."""
        return tuple(d.name for d in self.domains if d.name not in held and len(d.trainable))


@dataclass(frozen=True, eq=False)
class Federation:
    """Who trains (`sites`), on whom it is judged (`targets`), and what helps to select."""

    sites: tuple[Site, ...]
    targets: tuple[Domain, ...]
    collection: Collection
    validation: tuple[Domain, ...] = ()
    server: Site | None = None  # the server's own data, which have no labels

    def __post_init__(self) -> None:
        if not self.sites:
            raise DataError(f"{self.collection.name}: a federation needs at least one site")
        names = [site.name for site in self.sites]
        for name in names:
            check_name("site", name)
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise DataError(
                f"{self.collection.name}: two sites are called {twice[0]!r}; rename one"
            )

    def to(self, device: torch.device) -> "Federation":
        """With all examples on a device, where everything happens that uses them."""

        def site(s: Site) -> Site:
            held = None if s.val is None else s.val.to(device)
            return replace(s, train=s.train.to(device), val=held)

        def domain(d: Domain) -> Domain:
            return replace(d, examples=d.examples.to(device))

        return replace(
            self,
            sites=tuple(site(s) for s in self.sites),
            server=self.server and site(self.server),
            targets=tuple(domain(d) for d in self.targets),
            validation=tuple(domain(d) for d in self.validation),
        )


def federation(
    collection: Collection,
    sources: Sequence[str],
    targets: Sequence[str],
    validation: Sequence[str] = (),
    *,
    share: float = 0.0,
    seed: int = 0,
    joins: Mapping[str, int] | None = None,
) -> Federation:
    """The named domains in their roles; `share` of each source is held out for selection.

    joins   the first round (from 0) of sites that are not there from the beginning
    """
    roles = [*sources, *targets, *validation]
    if len(set(roles)) < len(roles):
        raise DataError(f"{collection.name}: a domain stands in two roles: {', '.join(roles)}")
    unseen(collection, [*targets, *validation])
    for name in sources:
        if not len(collection[name].trainable):
            raise DataError(
                f"{collection.name}: all of {name!r} is held out by the data's own split; take it"
                " as a target or for validation"
            )
    late = joins or {}
    for name, first in late.items():
        if name not in sources:
            raise unknown(f"site of {collection.name}", name, sources)
        if first < 0:
            raise DataError(f"site {name!r} cannot join in round {first}; rounds count from 0")
    sites = tuple(
        replace(Site.of(collection[name].split(share, seed)), joins=late.get(name, 0))
        for name in sources
    )
    judged = tuple(collection[name] for name in targets)
    return Federation(sites, judged, collection, tuple(collection[name] for name in validation))


def unseen(collection: Collection, held: Sequence[str]) -> None:
    """What is held out must not have shaped the preprocessing."""
    leaked = [name for name in held if name in collection.scaled_on]
    if leaked:
        way = f"target={held[0]!r}" if len(held) == 1 else "the training domains as sources="
        raise DataError(
            f"{collection.name}: statistics of {', '.join(leaked)} are in the preprocessing;"
            f" open the data with {way}"
        )


def leave_one_domain_out(
    collection: Collection, target: str, *, share: float = 0.0, seed: int = 0
) -> Federation:
    """Every other domain is a site; `target` is the unseen one."""
    sources = collection.sources([target])
    collection[target]  # a clear error for an unknown name
    if not sources:
        raise DataError(
            f"{collection.name} has one domain only ({target}); leaving it out leaves no site"
        )
    return federation(collection, sources, [target], share=share, seed=seed)


def official_splits(collection: Collection, *, share: float = 0.0, seed: int = 0) -> Federation:
    """The roles that the data come with, as in WILDS.

    Domains with training rows are the sites, those with test rows and none to train on are the
    targets, those with validation rows alone help to select.
    """
    have = {d.name: {k for k, rows in d.splits.items() if len(rows)} for d in collection.domains}
    sources = [n for n, parts in have.items() if "train" in parts]
    targets = [n for n, parts in have.items() if "train" not in parts and "test" in parts]
    validation = [n for n, parts in have.items() if parts == {"val"}]
    if not sources or not targets:
        raise DataError(
            f"{collection.name} has no official split: it takes domains with 'train' rows and"
            " domains with 'test' rows only; hold a domain out instead"
        )
    return federation(collection, sources, targets, validation, share=share, seed=seed)


def nested_sources(
    collection: Collection, order: Sequence[str], target: str, *, share: float = 0.0, seed: int = 0
) -> list[Federation]:
    """The first source alone, the first two, ... as in CSAC's Fig. 5."""
    chosen = [n for n in order if n != target]
    return [
        federation(collection, chosen[: k + 1], [target], share=share, seed=seed)
        for k in range(len(chosen))
    ]
