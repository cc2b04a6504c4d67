"""Benchmarks of images by domain and class, in the folder layouts that people have on disk.

Names are compared by their letters and digits alone, so `Real World` and `real_world` are one.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from feddg.data import split_lists
from feddg.data.folders import IMAGE_TYPES
from feddg.data.listed import Found, Listing
from feddg.data.shelves import Shelf, files, key, plain
from feddg.errors import DataError

DEPTH = 3  # how far below its root a benchmark's domain folders may lie
MANY = 200  # folders looked into before the search ends
PARTS = {  # folders between domain and class that are splits; "full" repeats train and crossval
    "train": "train", "training": "train", "crossval": "val", "val": "val", "valid": "val",
    "test": "test", "testing": "test", "full": "",
}  # fmt: skip


@dataclass(frozen=True)
class Benchmark:
    """What is known of a benchmark, however it lies on disk.

    domains    by our name, other names of its folder
    also       by the class's name, other names of its folder
    part       other domains and classes may lie beside: they are left out
    gaps       a class may be missing in a domain
    withdrawn  paths in official lists that are to be skipped where the file is not there
    """

    name: str
    domains: Mapping[str, tuple[str, ...]]
    classes: tuple[str, ...]
    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    part: bool = False
    gaps: bool = False
    withdrawn: tuple[str, ...] = ()
    published: Mapping[str, Mapping[str, int] | int] = field(default_factory=dict)
    whole: int = 0

    @cached_property
    def folders(self) -> dict[str, str]:
        """Our name of a domain by the key of a folder's name."""
        return {key(n): d for d, others in self.domains.items() for n in (d, *others)}

    @cached_property
    def numbers(self) -> dict[str, int]:
        """A class's number by the key of a folder's name."""
        return {key(n): k for k, c in enumerate(self.classes) for n in (c, *self.also.get(c, ()))}

    @cached_property
    def counts(self) -> dict[str, int]:
        """Published images by domain."""
        return {d: n if isinstance(n, int) else sum(n.values()) for d, n in self.published.items()}

    def survey(self, root: Path) -> Found:
        return find(self, root)

    def likeness(self, root: Path) -> float:
        """1 where every domain is there, and has every class and no other; less as any lacks one.

        With `gaps` it is enough that one of the domains has a class.
        """
        found = places(self, root)
        names = [{key(p.name) for p in _class_folders(at[0])} for at in found.values()] or [set()]
        every = set.union(*names)
        mine = {self.numbers[n] for n in every if n in self.numbers}
        if not self.gaps:
            common = set.intersection(*names)
            mine = {self.numbers[n] for n in common if n in self.numbers}
        others = 0 if self.part else len(every - set(self.numbers))
        share = len(mine) / (len(self.classes) + others)
        return min(len(found) / len(self.domains), share)


def find(benchmark: Benchmark, root: Path) -> Found:
    """All images of the benchmark below `root`, their official splits, and what is wrong."""
    if not root.is_dir():
        raise DataError(f"{root} is not a folder; name the one of {benchmark.name}")
    at = places(benchmark, root)
    if not at:
        raise DataError(
            f"{root} has no domain folder of {benchmark.name} ({', '.join(benchmark.domains)}),"
            f" nor have the folders in it; expected <domain>/<class>/<image>"
        )
    problems = [
        f"domain folder {domain} of {benchmark.name} is missing in {base(at)}; get it again"
        for domain in benchmark.domains
        if domain not in at
    ]
    problems += [
        f"{paths[0]} and {paths[1]} are both domain {domain}; remove one"
        for domain, paths in at.items()
        if len(paths) > 1
    ]
    shelves = {d: shelved(benchmark, at[d][0]) for d in benchmark.domains if d in at}
    lists = split_lists.find(benchmark.folders, base(at), root)
    said = split_lists.apply(
        lists, shelves, benchmark.numbers, benchmark.folders, benchmark.withdrawn, benchmark.part
    )
    every = list(shelves.values())
    flat = any(shelf.flat for shelf in every)  # then the lists say which class it is, too
    return Found(
        layout="; ".join(filter(None, (_kind(every, base(at), root), said.words))),
        classes=benchmark.classes,
        domains={d: Listing(*shelf.listed()) for d, shelf in shelves.items()},
        problems=(*problems, *(p for s in every for p in s.problems), *said.problems * flat),
        split_problems=tuple(said.problems * (not flat)),
        warnings=(*(w for s in every for w in s.warnings), *said.warnings),
        published=benchmark.published,
        whole=benchmark.whole,
    )


def places(benchmark: Benchmark, root: Path) -> dict[str, list[Path]]:
    """The domain folders: of all folders down to DEPTH the one that has most of them, first."""
    best: dict[str, list[Path]] = {}
    waiting, seen = deque([(root, 0)]), 0
    while waiting and seen < MANY:
        folder, depth = waiting.popleft()
        seen += 1
        inside = plain(folder)
        here: dict[str, list[Path]] = {}
        for path in inside:
            domain = benchmark.folders.get(key(path.name))
            if domain:
                here.setdefault(domain, []).append(path)
        if len(here) > len(best):
            best = here
        if len(best) == len(benchmark.domains):
            break
        if depth < DEPTH:
            waiting += [(p, depth + 1) for p in inside if key(p.name) not in benchmark.folders]
    return best if len(best) > 1 or len(benchmark.domains) == 1 else {}


def base(at: Mapping[str, Sequence[Path]]) -> Path:
    return next(iter(at.values()))[0].parent


def shelved(benchmark: Benchmark, folder: Path) -> Shelf:
    """What lies in a domain's folder: classes, or splits with classes, or images alone."""
    shelf = Shelf(folder)
    inside = plain(folder)
    if [key(p.name) for p in inside] == ["images"]:  # as in Office-31's archive
        inside = plain(inside[0])
    if inside and all(key(p.name) in PARTS for p in inside):
        repeats = any(key(p.name) == "full" for p in inside)
        for part in sorted(inside, key=lambda p: list(PARTS).index(key(p.name))):
            shelf.parts.append(part.name)
            _classes(benchmark, shelf, plain(part), PARTS[key(part.name)] or "train", repeats)
    elif inside:
        _classes(benchmark, shelf, inside, "", False)
    else:
        shelf.add(_images(shelf, folder), -1)
    if not shelf.paths and not shelf.problems:
        shelf.problems.append(f"domain folder {folder} holds no image; get it again")
    return shelf


def _classes(
    benchmark: Benchmark, shelf: Shelf, folders: Sequence[Path], split: str, repeats: bool
) -> None:
    there = set()
    learned = split in ("", "train")  # a rare class may well be missing in what only judges
    for folder in sorted(folders, key=lambda p: benchmark.numbers.get(key(p.name), -1)):
        number = benchmark.numbers.get(key(folder.name))
        if number is None:
            if not benchmark.part:
                shelf.problems.append(
                    f"{folder} is no class of {benchmark.name}; take it out, or open the folder"
                    " as your own images"
                )
            continue
        there.add(number)
        images = _images(shelf, folder)
        if not images:
            said = shelf.problems if learned else shelf.warnings
            said.append(f"class folder {folder} holds no image; get it again")
        shelf.add(images, number, split, repeats)
    gone = [c for k, c in enumerate(benchmark.classes) if k not in there]
    if gone and learned:
        said = shelf.warnings if benchmark.gaps else shelf.problems
        said.append(f"{shelf.folder} has no class folder {', '.join(gone)} of {benchmark.name}")


def _images(shelf: Shelf, folder: Path) -> list[Path]:
    there = files(folder)
    fit = [p for p in there if p.suffix.lower() in IMAGE_TYPES]
    if len(fit) < len(there):
        odd = next(p for p in there if p.suffix.lower() not in IMAGE_TYPES)
        shelf.warnings.append(f"{odd} is not an image by its name and is left out")
    return fit


def _class_folders(folder: Path) -> Iterator[Path]:
    """Below a domain's folder, whether or not splits lie between."""
    for path in plain(folder):
        if key(path.name) in PARTS or key(path.name) == "images":
            yield from plain(path)
        else:
            yield path


def _kind(shelves: Sequence[Shelf], where: Path, root: Path) -> str:
    """The layout in words, from the first domain's folder."""
    first = shelves[0]
    below = "" if where == root else f"{where.relative_to(root).as_posix()}/"
    between = f"{{{','.join(first.parts)}}}/" if first.parts else ""
    classes = "" if first.flat else "<class>/"
    return f"{below}<domain>/{between}{classes}<image>"
