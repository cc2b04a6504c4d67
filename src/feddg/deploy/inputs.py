"""Data for a deployed model: with labels or without, from files or from the catalogue."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from feddg.data.catalogue import catalogue, open_collection
from feddg.data.domain import Collection, Domain, Examples
from feddg.data.scaling import PROTOCOLS
from feddg.deploy import pictures, sheets
from feddg.deploy.load import Deployed
from feddg.deploy.manifest import features
from feddg.errors import DataError, unknown
from feddg.tasks import Classification


@dataclass(frozen=True, eq=False)
class Part:
    """One domain's inputs, the labels if they are known, and a name for every row."""

    domain: str
    x: Tensor
    y: Tensor | None
    ids: tuple[str, ...]  # an image's path, a line of a file, or a row's number
    groups: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Inputs:
    name: str
    parts: tuple[Part, ...]
    id_name: str = "row"  # what `ids` are

    @property
    def labelled(self) -> bool:
        return all(p.y is not None for p in self.parts)

    @property
    def x(self) -> Tensor:
        return torch.cat([p.x for p in self.parts])

    @property
    def y(self) -> Tensor | None:
        known = [p.y for p in self.parts if p.y is not None]
        return torch.cat(known) if len(known) == len(self.parts) else None

    @property
    def groups(self) -> Tensor | None:
        known = [p.groups for p in self.parts if p.groups is not None]
        return torch.cat(known) if len(known) == len(self.parts) else None

    def only(self, domains: Sequence[str]) -> "Inputs":
        """The named domains; all if none is named."""
        here = [p.domain for p in self.parts]
        for name in domains:
            if name not in here:
                raise unknown(f"domain of {self.name}", name, here)
        kept = tuple(p for p in self.parts if not domains or p.domain in domains)
        return replace(self, parts=kept)


Given = Inputs | Collection | Examples | Tensor


def read_inputs(source: str | Path, deployed: Deployed, **options: str) -> Inputs:
    """A data set of the catalogue with its options, or files that the model's own inputs are in.

    images   <image>, <folder>/<image> (no labels), <class>/<image> or <domain>/<class>/<image>
    tables   <file>.csv or a folder of CSVs with the model's columns, others are ignored;
             label=  names the column with the labels (by default `label`, `target`, `y` or
             `class`, where there is one); without it there are none
    """
    options = dict(options)
    if str(source) in catalogue() and not ("root" in options and str(source) in ("csv", "folder")):
        if (
            PROTOCOLS["site"] == deployed.meta.protocol
            and "scaling" in catalogue()[str(source)].options
        ):
            options.setdefault("scaling", "site")
        return from_collection(open_collection(str(source), **options), deployed)
    path = Path(options.pop("root", source)).expanduser()
    if not path.exists():
        raise DataError(
            f"there is no file or folder {path}; give one, or a data set of"
            f" `feddg data list`: {', '.join(catalogue())}"
        )
    if pictures.fits(deployed.meta):
        refuse(options, ())
        found = pictures.read(path, deployed.meta)
        return Inputs(path.name, tuple(Part(*f) for f in found), "path")
    if deployed.meta.columns:
        refuse(options, ("label",))
        rows = sheets.read(path, deployed.meta, options.get("label", ""))
        return Inputs(path.name, tuple(Part(*r) for r in rows), "line")
    raise DataError(
        f"the model takes {deployed.meta.takes}, which no file holds; use the Python API:"
        " feddg.deploy.predict(model, tensor)"
    )


def refuse(options: Mapping[str, str], known: Sequence[str]) -> None:
    for name in options:
        if name not in known:
            raise unknown("option of the data", name, [*known, "root"])


def inputs_of(data: Given, deployed: Deployed) -> Inputs:
    """Any form of data as parts with the model's own class numbers."""
    if isinstance(data, Inputs):
        found = data
    elif isinstance(data, Collection):
        found = from_collection(data, deployed)
    elif isinstance(data, Examples):
        found = Inputs("examples", (Part("all", data.x, data.y, numbered(len(data)), data.groups),))
    else:
        found = Inputs("examples", (Part("all", data, None, numbered(len(data))),))
    meta = deployed.meta
    for part in found.parts:
        if tuple(part.x.shape[1:]) != meta.shape or part.x.dtype != meta.dtype:
            shape, kind = "×".join(map(str, part.x.shape[1:])), str(part.x.dtype)[6:]
            raise DataError(
                f"{found.name}, domain {part.domain!r}: the model takes {meta.takes}, not inputs"
                f" {shape} of {kind}"
            )
    if not sum(len(part.x) for part in found.parts):
        raise DataError(f"{found.name} has no examples; there is nothing to predict")
    return found


def from_collection(collection: Collection, deployed: Deployed) -> Inputs:
    """All of its domains; where one has an official test split, only that."""
    if type(collection.task) is not type(deployed.task):
        raise DataError(
            f"{collection.name} is for {type(collection.task).__name__.lower()}, the model for"
            f" {type(deployed.task).__name__.lower()}"
        )
    columns, theirs = deployed.meta.columns, features(collection.columns)
    if columns and theirs and set(theirs) != set(columns):
        odd = min(set(theirs) ^ set(columns))
        has, lacks = (
            ("the model", collection.name) if odd in columns else (collection.name, "the model")
        )
        raise DataError(f"{has} has a column {odd!r}, {lacks} has not; both need the same")
    return Inputs(collection.name, tuple(parts(collection, deployed)))


def parts(collection: Collection, deployed: Deployed) -> Iterator[Part]:
    number = renumbered(collection, deployed)
    order = reordered(collection, deployed)
    for domain in collection.domains:
        rows = rows_of(domain)
        data = domain.examples.take(rows)
        x = data.x if order is None else data.x[:, order]
        y = data.y if number is None else number[data.y]
        yield Part(domain.name, x, y, tuple(map(str, rows.tolist())), data.groups)


def rows_of(domain: Domain) -> Tensor:
    test = domain.splits.get("test")
    return torch.arange(len(domain.examples)) if test is None or not len(test) else test


def renumbered(collection: Collection, deployed: Deployed) -> Tensor | None:
    """The model's number of each of the data's classes, which agree by name."""
    if not isinstance(collection.task, Classification):
        return None
    for name in collection.task.classes:
        if name not in deployed.classes:
            raise unknown(f"class of {collection.name}", name, deployed.classes)
    return torch.tensor([deployed.classes.index(name) for name in collection.task.classes])


def reordered(collection: Collection, deployed: Deployed) -> list[int] | None:
    """The data's columns in the model's order; indicators, if any, go along."""
    here, wanted = features(collection.columns), deployed.meta.columns
    if not here or not wanted or here == wanted:
        return None
    order = [here.index(name) for name in wanted]
    return order + [len(here) + k for k in order] if deployed.meta.indicators else order


def numbered(n: int) -> tuple[str, ...]:
    return tuple(map(str, range(n)))
