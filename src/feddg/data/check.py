"""`feddg data check`: everything that is wrong or odd about data, not only the first thing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from feddg.data import folders, images, splits, tables
from feddg.data.catalogue import READING, resolve
from feddg.data.domain import Collection, Domain
from feddg.errors import DataError
from feddg.tasks import Classification, Task

FEW = 10  # fewer examples of a class at a site are worth a warning


@dataclass(frozen=True)
class Row:
    """One domain: how many examples, and how many of each class (none for regression)."""

    domain: str
    examples: int
    classes: dict[str, int]


@dataclass(frozen=True)
class Report:
    """`problems` must be mended before a run; `warnings` are to be known.

    splits   how the examples and their parts compare with the manifest of splits
    """

    name: str
    rows: tuple[Row, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    splits: str = ""

    @property
    def ok(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def check(path_or_name: str, **options: str) -> Report:
    """Reads the data and collects; raises for a name, path or option that does not exist only."""
    spec, values = resolve(path_or_name, options)
    try:
        if spec.name == "folder":
            return _check_images(path_or_name, values)
        if spec.name == "csv":
            return _check_csv(path_or_name, values)
        opened = spec.open(**values)
    except DataError as problem:
        return Report(path_or_name, (), (str(problem),), ())
    rows = _rows(opened)
    said, differ = compared(spec.name, opened.protocol, opened.domains, opened.task)
    return Report(path_or_name, rows, (), (*differ, *_warnings(rows)), said)


def compared(
    name: str, protocol: str, domains: Sequence[Domain], task: Task
) -> tuple[str, tuple[str, ...]]:
    """Beside the manifest of splits: in a few words, and what differs."""
    wanted = splits.known(name, protocol)
    if wanted is None:
        return f"not in the manifest for protocol {protocol!r}: nothing to compare with", ()
    differ = splits.differences(domains, task, wanted)
    return f"{'not ' * bool(differ)}as in the manifest", differ


def _check_images(name: str, values: dict[str, Any]) -> Report:
    tree = folders.scan(values["root"], values.get("least", 2))
    paths = [p for by_class in tree.images.values() for found in by_class.values() for p in found]
    broken = [str(e) for e in images.decoded(paths, 8, 3) if isinstance(e, DataError)]
    rows = tuple(
        Row(domain, sum(map(len, found.values())), {c: len(found.get(c, ())) for c in tree.classes})
        for domain, found in tree.images.items()
    )
    ignored = [f"{path} is not an image by its name and is left out" for path in tree.others]
    return Report(name, rows, (*tree.problems, *broken), (*_warnings(rows), *ignored))


def _check_csv(name: str, values: dict[str, Any]) -> Report:
    reading = tables.Reading(**{k: v for k, v in values.items() if k in READING})
    sheets, problems = tables.read(values["root"], reading, values.get("least", 2))
    classes = tables.class_names(sheets, reading)
    rows = tuple(
        Row(s.path.stem, len(s.lines), {c: n[c] for c in classes})
        for s, n in ((sheet, Counter(sheet.labels)) for sheet in sheets)
    )
    if not problems:  # scaling and its options
        try:
            tables.from_csv(reading=reading, **{k: values[k] for k in values if k not in READING})
        except DataError as problem:
            problems = [str(problem)]
    return Report(name, rows, tuple(problems), _warnings(rows))


def _rows(collection: Collection) -> tuple[Row, ...]:
    task = collection.task
    names = task.classes if isinstance(task, Classification) else ()
    return tuple(
        Row(
            d.name,
            len(d.examples),
            {c: int((d.examples.y == k).sum()) for k, c in enumerate(names)},
        )
        for d in collection.domains
    )


def _warnings(rows: Sequence[Row]) -> tuple[str, ...]:
    found = []
    for row in rows:
        missing = [c for c, n in row.classes.items() if not n]
        if missing:
            found.append(
                f"domain {row.domain!r} has no example of: {', '.join(missing)};"
                " training there takes --allow-missing-classes"
            )
        found += [
            f"domain {row.domain!r} has only {n} of {row.examples} in class {c!r};"
            " scores there are coarse"
            for c, n in row.classes.items()
            if 0 < n < FEW
        ]
    return tuple(found)
