"""Tables for a deployed model: the columns that it was trained on, by their names."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from feddg.data.scaling import PROTOCOLS, Sums, fitted, with_indicators
from feddg.data.tables import LABELS, MISSING
from feddg.data.transforms import prepared
from feddg.deploy.manifest import Manifest
from feddg.errors import DataError, unknown
from feddg.tasks import Classification

Found = tuple[str, Tensor, Tensor | None, tuple[str, ...]]  # the fields of a Part


@dataclass(frozen=True)
class Place:
    """A cell, for messages: the header is line 1."""

    path: Path
    line: int
    column: str

    def wrong(self, what: str) -> DataError:
        return DataError(f"{self.path}, line {self.line}, column {self.column!r}: {what}")


def read(root: Path, meta: Manifest, label: str = "") -> list[Found]:
    """A CSV, or every CSV of a folder, each a domain of its own."""
    paths = [root] if root.is_file() else sorted(root.glob("[!.]*.csv"))
    if not paths:
        raise DataError(f"{root} has no CSV; the model takes {meta.takes}")
    return [sheet(path, meta, label) for path in paths]


def sheet(path: Path, meta: Manifest, label: str) -> Found:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file)
            header = [cell.strip() for cell in next(lines, [])]
            rows = [(n, cells) for n, cells in enumerate(lines, 2) if any(c.strip() for c in cells)]
    except (OSError, UnicodeDecodeError, csv.Error) as why:
        raise DataError(f"{path} is no readable CSV in UTF-8 ({why}); save it as one") from None
    named = label_column(path, header, meta, label)
    check(path, header, rows, meta)
    cells = [dict(zip(header, (c.strip() for c in row), strict=True)) for _, row in rows]
    values = [
        [number(Place(path, n, c), row[c], meta.indicators) for c in meta.columns]
        for (n, _), row in zip(rows, cells, strict=True)
    ]
    y = None
    if named and any(row[named] for row in cells):
        y = torch.tensor(
            [
                target(Place(path, n, named), row[named], meta)
                for (n, _), row in zip(rows, cells, strict=True)
            ]
        )
    ids = tuple(str(n) for n, _ in rows)
    return path.stem, features(torch.tensor(values), meta), y, ids


def features(x: Tensor, meta: Manifest) -> Tensor:
    """As the collection had them; by the rows' own sums where every site scaled its own."""
    x = with_indicators(x) if meta.indicators else x
    if meta.protocol == PROTOCOLS["site"]:
        half = x[:, : len(meta.columns)]
        x = prepared(x.double(), fitted(Sums.of(half), meta.indicators)).to(x.dtype)
    return x.to(meta.dtype)


def label_column(path: Path, header: Sequence[str], meta: Manifest, label: str) -> str:
    """The one asked for, or one that is usually called so; empty if there is none."""
    if label and label not in header:
        raise DataError(f"{path}: {unknown('label column', label, header)}")
    return label or next((c for c in LABELS if c in header and c not in meta.columns), "")


def check(
    path: Path, header: list[str], rows: Sequence[tuple[int, list[str]]], meta: Manifest
) -> None:
    """The model's columns are all there, once, and every row is as long as the header."""
    missing = [c for c in meta.columns if c not in header]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        has = ", ".join(header) or "nothing"
        raise DataError(f"{path} lacks the model's column {missing[0]!r}{more}; it has: {has}")
    for column in meta.columns:
        if header.count(column) > 1:
            raise DataError(f"{path} has two columns {column!r}; remove one")
    if not rows:
        raise DataError(f"{path} has no rows; there is nothing to predict")
    for line, row in rows:
        if len(row) != len(header):
            raise DataError(
                f"{path}, line {line}: {len(row)} cells where the header has {len(header)}"
            )


def number(place: Place, cell: str, gaps: bool) -> float:
    """A finite number, or NaN for a gap where the model was trained with gaps."""
    if cell.lower() in MISSING:
        if not gaps:
            raise place.wrong("the value is missing, and the model was trained without gaps")
        return math.nan
    for value in parsed(cell):
        return value
    raise place.wrong(f"{cell!r} is not a finite number")


def target(place: Place, cell: str, meta: Manifest) -> float | int:
    """A class by its name, 1.0 being 1; or a real value."""
    if not cell:
        raise place.wrong("the label is missing; remove the row, or the labels of all rows")
    task = meta.task
    if not isinstance(task, Classification):
        for value in parsed(cell):
            return value
        raise place.wrong(f"{cell!r} is not a finite number")
    whole = [str(int(v)) for v in parsed(cell) if v == int(v)]
    for name in (cell, *whole):
        if name in task.classes:
            return task.classes.index(name)
    raise place.wrong(str(unknown("class", cell, task.classes)))


def parsed(cell: str) -> Iterator[float]:
    try:
        value = float(cell)
    except ValueError:
        return
    if math.isfinite(value):
        yield value
