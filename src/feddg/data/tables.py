"""One CSV per site: `root/<site>.csv`, named feature columns and a label column."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from feddg.data.domain import Collection, Domain, Examples
from feddg.data.folders import and_more
from feddg.data.scaling import PROTOCOLS, scaled, with_indicators
from feddg.errors import DataError, unknown
from feddg.tasks import Classification, Regression, Task

LABELS = ("label", "target", "y", "class")
MISSING = ("", "?", "na", "nan", "null", "none")
SPLITS = ("train", "val", "test")
TASKS = {
    "classification": ("accuracy", "balanced_accuracy", "auc", "worst_group"),
    "regression": ("pearson_r", "worst_group"),
}


@dataclass(frozen=True)
class Reading:
    """How the files are to be read; see `from_csv`."""

    label: str = ""
    task: str = "classification"
    metric: str = ""
    classes: tuple[str, ...] = ()
    missing: str = "error"
    group: str = ""
    split: str = "split"
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise unknown("task", self.task, TASKS)
        if self.metric and self.metric not in TASKS[self.task]:
            raise unknown("metric", self.metric, TASKS[self.task])
        if self.missing not in ("error", "mean"):
            raise unknown("way with missing values", self.missing, ("error", "mean"))
        if self.metric == "worst_group" and not self.group:
            raise DataError("metric worst_group needs group=, the name of the group column")


@dataclass
class Sheet:
    """One site's file as it was read; filled line by line, NaN where nothing usable stood."""

    path: Path
    features: list[str] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    repeats: dict[str, int] = field(default_factory=dict)

    def complain(self, line: int, column: str, what: str) -> None:
        """Once per column and file; a whole broken column is one problem."""
        if column not in self.repeats:
            self.problems.append(f"{self.path.name}, row {line}, column {column!r}: {what}")
        self.repeats[column] = self.repeats.get(column, 0) + 1


def from_csv(
    root: str | Path,
    reading: Reading | None = None,
    scaling: str = "sources",
    target: str | None = None,
    sources: Sequence[str] | None = None,
    least: int = 2,
) -> Collection:
    """Every `root/<site>.csv` is a domain. Of the columns (rows count from 1, the header):

    label      its name; by default `label`, `target`, `y` or `class`. Text or whole numbers;
               `classes` fixes their names and order, otherwise all sites' are sorted
    group      optional, for worst-group metrics;  split  optional: train, val or test per row
    ignore     not used (an identifier, say); every other column is a number
    missing    "error", or "mean": filled, with an indicator column per feature

    scaling, target, sources: as in `heart_disease.load`.
    """
    reading = reading or Reading()
    sheets, problems = read(root, reading, least)
    if problems:
        raise DataError(and_more(problems))
    task = _task(reading, class_names(sheets, reading))
    groups = sorted({g for s in sheets for g in s.groups})
    columns = sheets[0].features
    domains = tuple(_domain(sheet, columns, reading, task, groups) for sheet in sheets)
    indicators = reading.missing == "mean"
    domains, prepare, seen = scaled(domains, scaling, target, sources, indicators)
    return Collection(
        Path(root).name, domains, task, prepare, protocol=PROTOCOLS[scaling],
        columns=tuple(columns), scaled_on=seen,
    )  # fmt: skip


def read(root: str | Path, reading: Reading, least: int = 2) -> tuple[list[Sheet], list[str]]:
    """All sites' files, and whatever is wrong with them."""
    root = Path(root)
    paths = sorted(p for p in root.glob("*.csv") if not p.name.startswith("."))
    problems = []
    if len(paths) < least:
        count = f"one CSV only ({paths[0].name})" if len(paths) == 1 else "no CSV"
        problems.append(f"{root} has {count}; expected <site>.csv for at least {least} sites")
    sheets = [_sheet(path, reading) for path in paths]
    for sheet in sheets:
        problems += [_counted(sheet, problem) for problem in sheet.problems]
        problems += _column_problems(sheet, sheets[0])
    if not problems and sheets and reading.task == "classification":
        problems += _label_problems(sheets, reading)
    return sheets, problems


def class_names(sheets: Sequence[Sheet], reading: Reading) -> tuple[str, ...]:
    """As given, else sorted over all sites; numbers by size."""
    if reading.classes or reading.task == "regression":
        return reading.classes
    names = {name for sheet in sheets for name in sheet.labels}
    numbers = all(_number(name) is not None for name in names)
    return tuple(sorted(names, key=lambda n: (float(n) if numbers else 0.0, n)))


def _sheet(path: Path, reading: Reading) -> Sheet:
    sheet = Sheet(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            _fill(sheet, csv.reader(file), reading)
    except (OSError, UnicodeDecodeError, csv.Error) as why:
        sheet.problems.append(f"{path.name} is no readable CSV in UTF-8 ({why}); save it as one")
    return sheet


def _fill(sheet: Sheet, lines: Iterator[list[str]], reading: Reading) -> None:
    header = [cell.strip() for cell in next(lines, [])]
    label, problem = _header(header, reading)
    if problem:
        sheet.problems.append(f"{sheet.path.name}: {problem}")
        return
    special = {label, reading.group, reading.split, *reading.ignore}
    sheet.features.extend(name for name in header if name not in special)
    for line, cells in enumerate(lines, 2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            what = f"{len(cells)} cells where the header has {len(header)}"
            sheet.problems.append(f"{sheet.path.name}, row {line}: {what}")
            continue
        row = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        sheet.lines.append(line)
        sheet.values.append([_feature(sheet, line, f, row[f], reading) for f in sheet.features])
        sheet.labels.append(_label(sheet, line, label, row[label], reading))
        if reading.group:
            sheet.groups.append(row[reading.group])
        if reading.split in row:
            sheet.splits.append(row[reading.split])
            if row[reading.split] not in SPLITS:
                what = f"{row[reading.split]!r} is none of {', '.join(SPLITS)}"
                sheet.complain(line, reading.split, what)
    if not sheet.lines and not sheet.problems:
        sheet.problems.append(f"{sheet.path.name} has no rows; add some or remove the file")


def _header(header: list[str], reading: Reading) -> tuple[str, str]:
    """The label column's name, and what is wrong with the header."""
    wanted = [reading.label] if reading.label else LABELS
    label = next((name for name in wanted if name in header), "")
    twice = sorted({name for name in header if header.count(name) > 1})
    if not header:
        return label, "is empty; the first row must name the columns"
    if len(header) == 1 and ";" in header[0]:
        return label, "columns are separated by ';'; save it with commas"
    if "" in header:
        return label, f"column {header.index('') + 1} has no name in the first row"
    if twice:
        return label, f"two columns are called {twice[0]!r}; rename one"
    if not label:
        has = f"it has: {', '.join(header)}"
        return label, f"no label column {' or '.join(map(repr, wanted))}; name it by label= ({has})"
    if reading.group and reading.group not in header:
        return label, f"no group column {reading.group!r}; it has: {', '.join(header)}"
    if not set(header) - {label, reading.group, reading.split, *reading.ignore}:
        return label, "no feature column besides the label"
    return label, ""


def _feature(sheet: Sheet, line: int, column: str, cell: str, reading: Reading) -> float:
    if cell.lower() in MISSING:
        if reading.missing == "error":
            way = "missing=mean fills gaps and marks them by indicator columns"
            sheet.complain(line, column, f"the value is missing; {way}")
        return math.nan
    value = _number(cell)
    if value is None:
        way = f"write a number, or leave the column out by ignore={column}"
        sheet.complain(line, column, f"{cell!r} is not a finite number; {way}")
    return math.nan if value is None else value


def _label(sheet: Sheet, line: int, column: str, cell: str, reading: Reading) -> str:
    """Whole numbers are written alike (1.0 is 1), so that sites agree."""
    value = _number(cell)
    if cell.lower() in ("", "?", "nan"):
        sheet.complain(line, column, "the label is missing; remove the row")
    elif reading.task == "regression" and value is None:
        sheet.complain(line, column, f"{cell!r} is not a finite number")
    whole = value is not None and value == int(value) and reading.task == "classification"
    return str(int(value)) if whole and value is not None else cell


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _counted(sheet: Sheet, problem: str) -> str:
    for column, times in sheet.repeats.items():
        if times > 1 and f", column {column!r}: " in problem:
            return f"{problem} (and {times - 1} more in this column)"
    return problem


def _column_problems(sheet: Sheet, first: Sheet) -> list[str]:
    if not sheet.features or not first.features:
        return []
    differ = set(sheet.features) ^ set(first.features)
    return [
        f"{(sheet if name in first.features else first).path.name} has no column {name!r}, but "
        f"{(first if name in first.features else sheet).path.name} has; all sites need the same"
        for name in sorted(differ)
    ]


def _label_problems(sheets: list[Sheet], reading: Reading) -> list[str]:
    names = class_names(sheets, reading)
    if len(names) < 2:
        return [f"all sites have one class only ({', '.join(names)}); there is nothing to learn"]
    found = []
    for sheet in sheets:
        for line, label in zip(sheet.lines, sheet.labels, strict=True):
            number = _number(label)
            if not reading.classes and number is not None and number != int(number):
                way = "use task=regression, or whole numbers or text as classes"
                return [f"{sheet.path.name}, row {line}: label {label} is not a class; {way}"]
            if label not in names:
                known = f"the classes are: {', '.join(names)}"
                found.append(f"{sheet.path.name}, row {line}: label {label!r} is unknown; {known}")
    if reading.metric == "auc" and len(names) != 2:
        found.append(f"metric auc needs two classes, the data have {len(names)}")
    return found


def _task(reading: Reading, classes: tuple[str, ...]) -> Task:
    metric = reading.metric or TASKS[reading.task][0]
    if reading.task == "regression":
        return Regression(metric=metric)
    return Classification(classes, metric=metric)


def _domain(
    sheet: Sheet, columns: list[str], reading: Reading, task: Task, groups: list[str]
) -> Domain:
    order = [sheet.features.index(name) for name in columns]
    x = torch.tensor(sheet.values)[:, order]
    x = with_indicators(x) if reading.missing == "mean" else x
    y: Tensor
    if isinstance(task, Classification):
        y = torch.tensor([task.classes.index(label) for label in sheet.labels])
    else:
        y = torch.tensor([float(label) for label in sheet.labels])
    group = torch.tensor([groups.index(g) for g in sheet.groups]) if sheet.groups else None
    rows = {
        name: torch.tensor([k for k, s in enumerate(sheet.splits) if s == name], dtype=torch.int64)
        for name in SPLITS
    }
    used = {name: r for name, r in rows.items() if len(r) or name == "train"}
    return Domain(sheet.path.stem, Examples(x, y, group), used if sheet.splits else {})
