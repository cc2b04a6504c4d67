"""A domain's folder while it is read: its images, and under which paths lists may name them."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

SPLITS = ("train", "val", "test")
COUNTED = re.compile(r"^\d{3}\.")  # Caltech-256 counts its classes: 045.computer-keyboard


def key(name: str) -> str:
    """A folder's name by its letters and digits alone."""
    return "".join(c for c in COUNTED.sub("", name).lower() if c.isalnum())


def plain(folder: Path) -> list[Path]:
    """The folders in a folder but for hidden ones, sorted."""
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if e.is_dir() and not e.name.startswith((".", "__"))]
    except PermissionError:  # a search passes by what it may not look into
        return []
    return [folder / name for name in sorted(names)]


def files(folder: Path) -> list[Path]:
    """The files in a folder but for hidden ones, sorted; a link that leads nowhere is one, too."""
    with os.scandir(folder) as entries:
        seen = [e for e in entries if not e.name.startswith(".")]
        names = [e.name for e in seen if e.is_file() or not os.path.exists(e.path)]
    return [folder / name for name in sorted(names)]


@dataclass
class Shelf:
    """Filled folder by folder; `labels` is −1 where only a list can say of which class it is."""

    folder: Path
    paths: list[Path] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    splits: dict[str, list[int]] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    named: dict[tuple[int, str], int] = field(default_factory=dict)

    @property
    def flat(self) -> bool:
        return bool(self.labels) and self.labels[0] < 0

    def add(
        self, images: Sequence[Path], label: int, split: str = "", repeats: bool = False
    ) -> None:
        """`repeats`: an image of the same class and file name lies in several folders."""
        for path in images:
            row = self.named.get((label, path.name), -1) if repeats else -1
            if row < 0:
                row = len(self.paths)
                self.paths.append(path)
                self.labels.append(label)
                if split:
                    self.splits.setdefault(split, []).append(row)
            self.rows[path.relative_to(self.folder).as_posix()] = row
            same = self.named.setdefault((label, path.name), row)
            if same != row:
                self.named[label, path.name] = -1  # a list has to say in which folder

    def row(self, path: str, number: int | None) -> int | None:
        """Of a path below the domain's folder, or of a file name and a class."""
        found = self.rows.get(path)
        if found is None and number is not None:
            found = self.named.get((number, path.rsplit("/", 1)[-1]))
        return None if found is None or found < 0 else found

    def listed(self) -> tuple[tuple[Path, ...], tuple[int, ...], dict[str, tuple[int, ...]]]:
        there = [s for s in SPLITS if s in self.splits]
        splits = {s: tuple(sorted(self.splits[s])) for s in there}
        return tuple(self.paths), tuple(self.labels), splits
