"""Official lists of images: `<domain>_train.txt` and the like, a path and a class number a line.

FedBN's `<domain>_train.pkl`, of paths and of classes by name, are read as well, not unpickled.

The folder of an image says its class, so a list's numbers only have to agree with the folders, one
to one. Where images lie without class folders the numbers decide, from 0 or from 1: from 0 if any
is 0, from 1 if any is the number of classes, and refused if neither occurs.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from feddg.data import plain_pickle
from feddg.data.shelves import Shelf, key, plain
from feddg.errors import DataError

NAME = re.compile(r"(.+?)[_-](train|crossval|val|test|img_label_list)(?:_kfold)?", re.IGNORECASE)
SPLIT = {"train": "train", "crossval": "val", "val": "val", "test": "test", "img_label_list": ""}
HOMES = ("split", "list", "kfold")  # what folders of lists are called, among other words


@dataclass(frozen=True)
class SplitList:
    """A file of a domain's images; `split` is empty where it lists them all."""

    path: Path
    domain: str
    split: str


@dataclass
class Said:
    """What the lists are, in words, and what is wrong with them."""

    words: str = ""
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Line:
    """One line: where it stands, and the row of the image that it names."""

    at: str
    path: str
    label: int
    row: int


def find(folders: Mapping[str, str], base: Path, root: Path) -> list[SplitList]:
    """The lists beside the domain folders, in folders beside them, and up to `root`."""
    homes = [base, *(p for p in base.parents if p == root or root in p.parents)]
    found: dict[tuple[str, str], SplitList] = {}
    for home in homes:
        beside = [p for p in plain(home) if any(word in p.name.lower() for word in HOMES)]
        files = (p for h in (home, *beside) for p in sorted(h.iterdir()))
        for path in (p for p in files if p.suffix in (".txt", ".pkl")):
            match = NAME.fullmatch(path.stem)
            domain = folders.get(key(match[1])) if match else None
            if match and domain:
                split = SPLIT[match[2].lower()]
                found.setdefault((domain, split), SplitList(path, domain, split))
    return list(found.values())


Read = Sequence[tuple[SplitList, Sequence[Line]]]


def apply(
    lists: Sequence[SplitList],
    shelves: Mapping[str, Shelf],
    numbers: Mapping[str, int],
    aliases: Mapping[str, str],
    withdrawn: Sequence[str] = (),
    part: bool = False,
) -> Said:
    """Put the lists' splits on the shelves.

    numbers, aliases   a class's number and a domain's name, by the key of a folder's name
    withdrawn          paths that are skipped where the file is not there
    part               lines of other classes are skipped
    """
    said = Said()
    classes = max(numbers.values()) + 1
    reader = Reader(numbers, aliases, withdrawn, part, said)
    read = [
        (given, reader.lines(given, shelves[given.domain]))
        for given in lists
        if given.domain in shelves
    ]
    flat = [shelf for shelf in shelves.values() if shelf.flat]
    if flat:
        said.words = _labelled(read, shelves, flat, classes, said)
    elif read:
        said.words = _agreed(read, shelves, classes, part, said)
    for domain, shelf in shelves.items():
        _split(domain, shelf, read, said)
    return said


@dataclass(frozen=True)
class Reader:
    """Lines as rows; see `apply`."""

    numbers: Mapping[str, int]
    aliases: Mapping[str, str]
    withdrawn: Sequence[str]
    part: bool
    said: Said

    def lines(self, given: SplitList, shelf: Shelf) -> list[Line]:
        """A line's path may begin anywhere: what counts stands after the domain's folder."""
        found: list[Line] = []
        absent: list[str] = []
        for at, path, label in _pairs(given.path):
            number = int(label) if label.isdecimal() else self.numbers.get(key(label), -1)
            if not path or (number < 0 and not self.part):
                self.said.problems.append(f"{at} is {path} {label}, not a path and a class")
                return found
            parts = path.replace("\\", "/").split("/")
            mine = [i for i, p in enumerate(parts) if self.aliases.get(key(p)) == given.domain]
            below = parts[mine[-1] + 1 :] if mine else parts
            cls = self.numbers.get(key(below[-2])) if len(below) > 1 else -1
            row = shelf.row("/".join(below), cls)
            if row is not None:
                found.append(Line(at, path, number, row))
            elif not (self.part and cls is None) and not path.endswith(tuple(self.withdrawn)):
                absent.append(f"{at} names {path}, which is not in {shelf.folder}")
        if absent:
            more = f" (and {len(absent) - 1} more of its lines)" if len(absent) > 1 else ""
            self.said.problems.append(f"{absent[0]}{more}; get the images again, or the list")
        return found


def _pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    """Where it stands, a path and a class as text, for every line that is not empty."""
    if path.suffix == ".pkl":
        held = plain_pickle.read(path)
        if len(held) != 2 or len(held[0]) != len(held[1]):
            raise DataError(f"{path} holds no paths with their classes; get it again")
        for number, (name, label) in enumerate(zip(*held, strict=True), 1):
            yield f"{path}, entry {number}", str(name), str(label)
        return
    for number, text in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        if text.strip():
            name, _, label = text.strip().rpartition(" ")
            yield f"{path}, line {number}", name.strip(), label


def _labelled(
    read: Read, shelves: Mapping[str, Shelf], flat: Sequence[Shelf], classes: int, said: Said
) -> str:
    """Classes from the numbers of the lists, where there are no class folders."""
    numbers = {line.label for _, lines in read for line in lines}
    if not numbers:
        said.problems.append(
            f"{flat[0].folder} has images without class folders; expected <domain>/<class>/<image>,"
            " or official lists beside the domains"
        )
        return ""
    first = 0 if 0 in numbers else 1 if classes in numbers else None
    if first is None:
        said.problems.append(
            f"{read[0][0].path} and the lists beside it use the numbers {min(numbers)} to"
            f" {max(numbers)} of {classes} classes: whether they count from 0 or from 1 cannot be"
            " told, and there are no class folders; sort the images into class folders"
        )
        return ""
    for given, lines in read:
        for line in lines:
            if not 0 <= line.label - first < classes:
                said.problems.append(f"{line.at}: {_out_of_range(line, classes)}")
                return ""
            shelves[given.domain].labels[line.row] = line.label - first
    for shelf in flat:
        bare = [p for p, label in zip(shelf.paths, shelf.labels, strict=True) if label < 0]
        if bare:
            said.problems.append(f"{bare[0]} is in no list and in no class folder; take it out")
    return f"{_called(read)}, which count classes from {first}"


def _agreed(read: Read, shelves: Mapping[str, Shelf], classes: int, part: bool, said: Said) -> str:
    """A number stands for one class and a class for one number, in all lists."""
    lines = [(line, shelves[given.domain].labels[line.row]) for given, ls in read for line in ls]
    beyond = next((line for line, _ in lines if line.label > classes and not part), None)
    if beyond:
        said.problems.append(f"{beyond.at}: {_out_of_range(beyond, classes)}")
        return ""
    pairs = {(line.label, cls) for line, cls in lines}
    offsets = Counter(line.label - cls for line, cls in lines)
    if len(offsets) < 2 and not set(offsets) - {0, 1}:
        return f"{_called(read)}, which count classes from {next(iter(offsets), 0)}"
    if len({number for number, _ in pairs}) == len({cls for _, cls in pairs}) == len(pairs):
        return f"{_called(read)}, which have an order of classes of their own"
    [(first, most)] = offsets.most_common(1)
    odd, cls = next((line, cls) for line, cls in lines if line.label - cls != first)
    said.problems.append(
        f"{odd.at} gives {odd.path} the number {odd.label}, where {most} of {len(lines)} lines"
        f" would have {cls + first}; get the lists again, or pass split=none"
    )
    return ""


def _out_of_range(line: Line, classes: int) -> str:
    return f"class number {line.label} is out of range for {classes} classes; get the list again"


def _called(read: Read) -> str:
    return f"lists such as {read[0][0].path.name}"


def _split(domain: str, shelf: Shelf, read: Read, said: Said) -> None:
    """The splits of lists come before those of folders."""
    splits = {
        given.split: sorted({line.row for line in lines})
        for given, lines in read
        if given.domain == domain and given.split
    }
    for given, lines in read:
        if given.domain == domain and len({line.row for line in lines}) < len(lines):
            [(row, times)] = Counter(line.row for line in lines).most_common(1)
            said.warnings.append(
                f"{given.path} lists {shelf.paths[row].name} {times} times; it counts once"
            )
    others = [given.path for given, _ in read if given.split == "train"]
    if splits:
        shelf.splits = splits
        listed = {row for rows in splits.values() for row in rows}
        if len(listed) < len(shelf.paths):
            spare = next(p for k, p in enumerate(shelf.paths) if k not in listed)
            said.warnings.append(
                f"{len(shelf.paths) - len(listed)} images of {domain} are in none of its lists,"
                f" {spare} for one; no split has them"
            )
    elif others and not shelf.splits:
        said.problems.append(
            f"{others[0]} has no like for domain {domain}; add its lists, or pass split=none"
        )
    both = sorted(set(shelf.splits.get("train", ())) & set(shelf.splits.get("val", ())))
    if both:
        said.problems.append(
            f"{shelf.paths[both[0]]} is in the training and in the validation list of {domain};"
            " get the lists again"
        )
