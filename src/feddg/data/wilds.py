"""What the data sets of WILDS share: folders, metadata in CSV, and their official splits.

WILDS (Koh et al., ICML 2021) splits by domain: `train`, `id_val` and `id_test` lie in the source
domains, `val` and `test` in domains that no training sees. The folders are those that its archives
unpack to and that the `wilds` package makes; the package itself is not needed.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from feddg.data.domain import Domain, Examples
from feddg.data.folders import NORMALISE
from feddg.data.transforms import Transform
from feddg.errors import DataError, unknown

PARTS = {"train": "train", "id_val": "val", "id_test": "test"}  # of the source domains
UNSEEN = ("val", "test")
POOLED = {"val": "validation", "test": "test"}
WAYS = ("domains", "pooled")
Columns = Mapping[str, list[str]]


@dataclass(frozen=True)
class Rows:
    """What the metadata say of every example: its file, label, domain, official split, group.

    An empty split: WILDS uses the example nowhere.
    """

    files: Sequence[str]  # below the folder
    y: Tensor
    domain: Sequence[str]
    split: Sequence[str]
    groups: Tensor | None = None


def folder(root: str | Path, name: str, version: str) -> Path:
    """`root/<name>_v<version>`, or `root` if it is that; another release is refused."""
    root, own = Path(root).expanduser(), f"{name}_v{version}"
    if not root.is_dir():
        raise DataError(f"{root} is not a folder; expected one with WILDS' {own}")
    found = root / own if (root / own).is_dir() else root
    marks = [p.name for p in sorted(found.glob("RELEASE_v*.txt"))]
    others = [p.name for p in sorted(root.glob(f"{name}_v*")) if found == root and p.is_dir()]
    others += [found.name] if found.name.startswith(f"{name}_v") and found.name != own else []
    others += marks if marks and f"RELEASE_v{version}.txt" not in marks else []
    if others:
        raise DataError(
            f"{found} holds {others[0]}, another version of {name} than {version}, whose splits"
            f" differ; get {own}"
        )
    return found


def likeness(name: str, *marks: str) -> Callable[[Path], float]:
    """Whether a folder, or the release in it, has the files that no other data set has."""

    def like(root: Path) -> float:
        places = (root, *root.glob(f"{name}_v*"))
        return float(any(all((p / mark).exists() for mark in marks) for p in places))

    return like


def lacking(name: str, *marks: str) -> Callable[[Mapping[str, Any]], str]:
    """The same look, for who wants to train: in a sentence what is missing."""
    like = likeness(name, *marks)

    def look(values: Mapping[str, Any]) -> str:
        root = Path(values["root"])
        return "" if like(root) else f"{root} has no {name} of WILDS: no {' with '.join(marks)}"

    return look


def table(path: Path, columns: Sequence[str]) -> Columns:
    """The named columns of a CSV, as text."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file)
            header = next(lines, [])
            missing = [c for c in columns if c not in header]
            if missing:
                raise DataError(
                    f"{path} has no column {missing[0]!r}; it has: {', '.join(header)}; fetch the"
                    " archive of this version again"
                )
            at = [header.index(c) for c in columns]
            found: list[list[str]] = [[] for _ in columns]
            for number, line in enumerate(lines, 2):
                if len(line) != len(header):
                    raise DataError(
                        f"{path}, row {number}: {len(line)} columns where {len(header)} are"
                        " expected; fetch it again"
                    )
                for values, k in zip(found, at, strict=True):
                    values.append(line[k])
    except FileNotFoundError:
        raise DataError(f"{path} is missing; name the folder that has it by root=") from None
    except (OSError, UnicodeDecodeError, csv.Error) as why:
        raise DataError(f"{path} is no readable CSV in UTF-8 ({why}); fetch it again") from None
    if not found[0]:
        raise DataError(f"{path} has no rows; fetch it again")
    return dict(zip(columns, found, strict=True))


def values(path: Path, columns: Columns, name: str, known: Mapping[str, Any]) -> list[Any]:
    """What each text of a column stands for; any other is refused with its row."""
    found = []
    for number, text in enumerate(columns[name], 2):
        if text not in known:
            some = ", ".join(list(known)[:8]) + (", …" if len(known) > 8 else "")
            raise DataError(f"{path}, row {number}: {name} {text!r} is not one of: {some}")
        found.append(known[text])
    return found


def domains(
    place: Path,
    rows: Rows,
    order: Sequence[str],
    unseen: str,
    read: Callable[[Sequence[Path]], Tensor],
) -> tuple[Domain, ...]:
    """Those of `order` that have examples, with the splits that `official_splits` looks for.

    domains   every unseen domain by itself: {"val": all} or {"test": all}
    pooled    one domain "validation" and one domain "test" instead, which is what WILDS' scores
              (and so the papers') are over: a correlation is not the mean of those of its parts
    """
    if unseen not in WAYS:
        raise unknown("way with the unseen domains", unseen, WAYS)
    lists: dict[str, list[int]] = {name: [] for name in (*order, *POOLED.values())}
    for k, (domain, split) in enumerate(zip(rows.domain, rows.split, strict=True)):
        if split:
            pooled = unseen == "pooled" and split in UNSEEN
            lists[POOLED[split] if pooled else domain].append(k)
    return tuple(_domain(place, name, rows, at, read) for name, at in lists.items() if at)


def protocol(official: str, unseen: str) -> str:
    return f"{official}, pooled" if unseen == "pooled" else official


def normalisation(name: str) -> tuple[Transform, ...]:
    if name not in NORMALISE:
        raise unknown("normalisation", name, NORMALISE)
    return (NORMALISE[name],)


def _domain(
    place: Path,
    name: str,
    rows: Rows,
    at: list[int],
    read: Callable[[Sequence[Path]], Tensor],
) -> Domain:
    chosen = torch.tensor(at)
    groups = None if rows.groups is None else rows.groups[chosen]
    files = [rows.files[k] for k in at]
    examples = Examples(read([place / f for f in files]), rows.y[chosen], groups)
    parts: dict[str, list[int]] = {}
    for row, k in enumerate(at):
        parts.setdefault(PARTS.get(rows.split[k], rows.split[k]), []).append(row)
    splits = {part: torch.tensor(found) for part, found in parts.items()}
    return Domain(name, examples, splits, tuple(files))
