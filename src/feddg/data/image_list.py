"""The user's own images by a CSV of `path,label,domain[,split]`, one row per image."""

import csv
from collections.abc import Mapping
from pathlib import Path

from feddg.data.listed import Found, Listing, ordered
from feddg.data.shelves import SPLITS
from feddg.errors import DataError

COLUMNS = ("path", "label", "domain")
WAY = "expected the columns path,label,domain and, if there are splits, split"


def is_list(path: Path) -> bool:
    """Whether a CSV's first row names the columns of a list of images."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return set(COLUMNS) <= set(next(csv.reader(file), ()))
    except (OSError, UnicodeDecodeError, csv.Error):
        return False


def listed_in(root: Path) -> Path | None:
    """The list that `root` is, or that lies alone in it."""
    if root.is_file():
        return root
    lists = [p for p in sorted(root.glob("*.csv")) if is_list(p)] if root.is_dir() else []
    return lists[0] if len(lists) == 1 else None


def survey(root: Path, images: Path | None = None, least: int = 2) -> Found:
    """`images`: the folder from which paths go on that are not absolute; the CSV's own if None."""
    file = listed_in(Path(root))
    if file is None:
        raise DataError(f"{root} is, or has, no CSV that lists images; {WAY}")
    rows, problems = _rows(file)
    base = Path(images) if images else file.parent
    classes = ordered([row["label"] for row in rows])
    domains: dict[str, Listing] = {}
    for name in ordered([row["domain"] for row in rows]):
        own = [row for row in rows if row["domain"] == name]
        domains[name] = Listing(
            tuple(base / row["path"] for row in own),
            tuple(classes.index(row["label"]) for row in own),
            {s: tuple(k for k, row in enumerate(own) if row.get("split") == s) for s in SPLITS}
            if "split" in own[0]
            else {},
        )
    absent = [
        f"{file.name}, row {row['']}: there is no file {base / row['path']}"
        for row in rows
        if not (base / row["path"]).is_file()
    ]
    if rows and len(classes) < 2:
        problems.append(f"{file} has one class only ({classes[0]}); there is nothing to learn")
    if rows and len(domains) < least:
        problems.append(f"{file} has {len(domains)} domain where at least {least} are needed")
    return Found(f"images listed in {file.name}", classes, domains, (*problems, *absent))


def _rows(file: Path) -> tuple[list[Mapping[str, str]], list[str]]:
    """Rows that can be used, with their number under ""; and what is wrong with the others."""
    rows: list[Mapping[str, str]] = []
    problems = []
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines)
            header = [cell.strip() for cell in next(reader, [])]
            for name in COLUMNS:
                if name not in header:
                    has = ", ".join(header) or "nothing"
                    return [], [f"{file} has no column {name!r}, it has: {has}; {WAY}"]
            for number, cells in enumerate(reader, 2):
                if not any(cell.strip() for cell in cells):
                    continue
                row = {k: v.strip() for k, v in zip(header, cells, strict=False)}
                if "\\" in row.get("path", ""):  # a list made on Windows
                    row["path"] = row["path"].replace("\\", "/")
                wrong = _wrong(row, header)
                if wrong:
                    problems.append(f"{file.name}, row {number}: {wrong}")
                else:
                    rows.append({**row, "": str(number)})
    except (OSError, UnicodeDecodeError, csv.Error) as why:
        return [], [f"{file} is no readable CSV in UTF-8 ({why}); save it as one"]
    if not rows and not problems:
        problems.append(f"{file} lists no image; {WAY}")
    return rows, problems


def _wrong(row: Mapping[str, str], header: list[str]) -> str:
    if len(row) != len(header):
        return f"{len(row)} cells where the header has {len(header)}"
    empty = next((name for name in COLUMNS if not row[name]), "")
    if empty:
        return f"{empty} is empty"
    if "/" in row["domain"]:
        return f"{row['domain']!r} cannot name a domain; leave '/' out"
    if "split" in row and row["split"] not in (*SPLITS, ""):
        return f"split {row['split']!r} is none of {', '.join(SPLITS)}"
    return ""
