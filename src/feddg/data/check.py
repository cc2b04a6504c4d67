"""`feddg data check`: everything that is wrong or odd about data, not only the first thing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from feddg.data import folders, images, splits, tables
from feddg.data.catalogue import SPECS, resolve
from feddg.data.domain import Collection, Domain
from feddg.data.listed import IMAGE, Found, Listing
from feddg.data.sets.own import READING
from feddg.data.spec import DataSpec
from feddg.errors import DataError
from feddg.tasks import Classification, Task

LIKE = 0.5  # of a known set's domains and of its classes, for it to be named
FEW = 10  # fewer examples of a class at a site are worth a warning


@dataclass(frozen=True)
class Row:
    """One domain: how many examples, of each class (none for regression) and of each split.

    published   how many the papers say there are, by class as far as they say it
    """

    domain: str
    examples: int
    classes: dict[str, int]
    published: int | None = None
    published_classes: dict[str, int] = field(default_factory=dict)
    splits: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """`problems` must be mended before a run; `warnings` are to be known.

    data, layout   the entry of the catalogue that was recognised, and how it lies there
    splits         how the examples and their parts compare with the manifest of splits
    """

    name: str
    rows: tuple[Row, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    data: str = ""
    layout: str = ""
    splits: str = ""

    @property
    def ok(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def check(path_or_name: str, **options: str) -> Report:
    """Reads the data and collects; raises for a name, path or option that does not exist only."""
    spec, values = resolve(path_or_name, options)
    return replace(_report(path_or_name, spec, values), data=spec.name)


def _report(name: str, spec: DataSpec, values: dict[str, Any]) -> Report:
    try:
        if spec.name == "folder":
            return _check_images(name, values)
        if spec.name == "csv":
            return _check_csv(name, values)
        if spec.survey:
            looked = {k: v for k, v in values.items() if k not in IMAGE}
            return _check_found(name, spec, looked, values.get("split", "found"))
        opened = spec.open(**values)
    except DataError as problem:
        return Report(name, (), (str(problem),), ())
    rows = tuple(replace(row, published=spec.counts.get(row.domain)) for row in _rows(opened))
    said, differ = compared(spec.name, opened.protocol, opened.domains, opened.task)
    odd = (*_differences(rows), *differ, *_warnings(rows))
    return Report(name, rows, (), odd, layout=opened.protocol, splits=said)


def _check_found(name: str, spec: DataSpec, looked: dict[str, Any], split: str) -> Report:
    """Known images: every one is decoded, and counted against the published numbers."""
    assert spec.survey is not None
    found: Found = spec.survey(**looked)
    rows = tuple(_row(d, listing, found) for d, listing in found.domains.items())
    paths = [path for listing in found.domains.values() for path in listing.paths]
    broken = [str(e) for e in images.decoded(paths, 8, 3) if isinstance(e, DataError)]
    official = split != "none" and any(listing.splits for listing in found.domains.values())
    said, differ = compared(
        spec.name, splits.of_listings(official, looked),
        splits.undecoded(found.domains, official), Classification(found.classes),
    )  # fmt: skip
    odd = [*_differences(rows), *differ, *_warnings(rows), *found.warnings]
    if found.whole and len(paths) != found.whole:
        odd.insert(0, f"{len(paths)} images in all, where {found.whole} are published")
    unfit = (*found.unfit(split), *broken)
    return Report(name, rows, unfit, tuple(odd), layout=found.layout, splits=said)


def _row(domain: str, listing: Listing, found: Found) -> Row:
    counted = Counter(listing.labels)
    published = found.published.get(domain)
    by_class = {} if published is None or isinstance(published, int) else dict(published)
    return Row(
        domain,
        len(listing.paths),
        {c: counted[k] for k, c in enumerate(found.classes)},
        sum(by_class.values()) if by_class else published if isinstance(published, int) else None,
        by_class,
        {split: len(rows) for split, rows in listing.splits.items()},
    )


def _differences(rows: Sequence[Row]) -> list[str]:
    """Where counts are not the published ones, and in which classes."""
    said = []
    for row in rows:
        if row.published is None or row.examples == row.published:
            continue
        there = ", ".join(
            f"{c} {row.classes.get(c, 0)} of {n}"
            for c, n in row.published_classes.items()
            if row.classes.get(c, 0) != n
        )
        said.append(
            f"domain {row.domain!r} has {row.examples} examples, {row.published} are published"
            + (f": {there}" if there else "")
        )
    return said


def compared(
    name: str, protocol: str, domains: Sequence[Domain], task: Task
) -> tuple[str, tuple[str, ...]]:
    """Beside the manifest of splits: in a few words, and what differs."""
    wanted = splits.known(name, protocol)
    if wanted is None:
        return f"not in the manifest for protocol {protocol!r}: nothing to compare with", ()
    differ = splits.differences(domains, task, wanted)
    others = [d.name for d in domains if d.name not in wanted]
    beside = f"; not in it: {', '.join(others)}" if others else ""
    return f"{'not ' * bool(differ)}as in the manifest{beside}", differ


def _check_images(name: str, values: dict[str, Any]) -> Report:
    tree = folders.scan(values["root"], values.get("least", 2))
    paths = [p for by_class in tree.images.values() for found in by_class.values() for p in found]
    broken = [str(e) for e in images.decoded(paths, 8, 3) if isinstance(e, DataError)]
    rows = tuple(
        Row(domain, sum(map(len, found.values())), {c: len(found.get(c, ())) for c in tree.classes})
        for domain, found in tree.images.items()
    )
    ignored = [f"{path} is not an image by its name and is left out" for path in tree.others]
    warnings = (*_alike(values["root"]), *_warnings(rows), *ignored)
    return Report(name, rows, (*tree.problems, *broken), warnings)


def _alike(root: Path) -> list[str]:
    """A known set that is not whole is not taken for it unasked."""
    like = max(SPECS, key=lambda spec: spec.likeness(root))
    if like.likeness(root) < LIKE:
        return []
    return [
        f"{root} looks like {like.title}, not all of it; see what is missing by `feddg data check"
        f" {like.name} --data-option root={root}`"
    ]


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
