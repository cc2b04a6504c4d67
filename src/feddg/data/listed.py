"""Image files that are known by class, domain and split, before any of them is decoded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from feddg.data.augment import augmentation
from feddg.data.cache import common
from feddg.data.domain import Collection, Domain, Examples
from feddg.data.folders import NORMALISE, and_more, check_images
from feddg.data.images import stored
from feddg.data.spec import Parser, one_of
from feddg.errors import DataError, unknown
from feddg.tasks import Classification

WAYS = ("found", "official", "none")


@dataclass(frozen=True)
class Listing:
    """A domain's images in order: paths, numbers of classes, and the rows of every split."""

    paths: tuple[Path, ...]
    labels: tuple[int, ...]
    splits: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A data set as it lies on disk, readable or not.

    layout          which of the known layouts it has, in words
    split_problems  what is wrong with the official splits alone
    published       a domain's number of images as the papers give it; by class where it is known
    whole           the published number of all images, where that is all that is known
    """

    layout: str
    classes: tuple[str, ...]
    domains: Mapping[str, Listing]
    problems: tuple[str, ...] = ()
    split_problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    published: Mapping[str, Mapping[str, int] | int] = field(default_factory=dict)
    whole: int = 0

    def unfit(self, split: str) -> tuple[str, ...]:
        """What forbids to use it, where official splits are wanted or where they are not."""
        return self.problems + (() if split == "none" else self.split_problems)


def collection(
    name: str,
    found: Found,
    size: int = 224,
    channels: int = 3,
    normalise: str = "imagenet",
    augment: str | tuple[Any, ...] = (),
    split: str = "found",
) -> Collection:
    """Decoded to uint8 N×channels×size×size.

    split   "found": the official split where the data come with one; "official": refused where
            they do not; "none": never, so that a share of each domain is held out by seed
    """
    check_images(size, channels, normalise)
    if split not in WAYS:
        raise unknown("way to split", split, WAYS)
    problems = found.unfit(split)
    if problems:
        raise DataError(and_more(problems))
    given = any(listing.splits for listing in found.domains.values())
    if split == "official" and not given:
        raise DataError(
            f"{name} lies there without official lists or split folders ({found.layout}); add them,"
            " or leave out split=official to hold out a share by seed"
        )
    official = given and split != "none"
    home = common([path for listing in found.domains.values() for path in listing.paths])
    domains = tuple(
        _domain(key, listing, size, channels, official, home)
        for key, listing in found.domains.items()
    )
    protocol = f"{'official' if official else 'seeded'} split; {found.layout}"
    return Collection(
        name, domains, Classification(found.classes), (NORMALISE[normalise],),
        augmentation(augment), protocol=protocol,
    )  # fmt: skip


def _domain(
    name: str, listing: Listing, size: int, channels: int, official: bool, home: Path
) -> Domain:
    x = stored(listing.paths, size, channels, home)
    examples = Examples(x, torch.tensor(listing.labels))
    splits = listing.splits if official else {}
    parts = {k: torch.tensor(rows) for k, rows in splits.items() if rows}
    return Domain(name, examples, parts, tuple(map(str, listing.paths)))


def image_options() -> dict[str, Parser]:
    """The options that every set of images has, as text is read."""
    return {
        "root": Path,
        "size": int,
        "channels": int,
        "normalise": one_of("normalisation", NORMALISE),
        "augment": augmentation,
        "split": one_of("way to split", WAYS),
    }


IMAGE = ("size", "channels", "normalise", "augment", "split")


def opener(name: str, survey: Callable[..., Found], **defaults: Any) -> Callable[..., Collection]:
    """What opens a set, from what surveys it: options of the images go to one, all else there."""

    def opened(**values: Any) -> Collection:
        images = {k: values.pop(k) for k in IMAGE if k in values}
        return collection(name, survey(**values), **{**defaults, **images})

    return opened


def ordered(names: Sequence[str]) -> tuple[str, ...]:
    """By number where all are numbers, else by letter."""
    if all(name.isdecimal() for name in names):
        return tuple(sorted(set(names), key=int))
    return tuple(sorted(set(names)))
