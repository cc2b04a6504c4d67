"""`feddg data get`: a data set from its official source, checked, resumed and unpacked.

Nothing else in feddg downloads data. What was fetched stands in `downloads.json` in the folder,
with the checksum; where no source publishes one, the first download's is what later ones must have.
"""

import json
import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import new as hasher
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from feddg.checkpoint import unwritable, write_whole
from feddg.data.fetch import Told, fetch
from feddg.data.unpack import BadArchive, unpack
from feddg.errors import ConfigError, DataError, unknown

RECORD = "downloads.json"
Record = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Download:
    """One file; see files/sources.toml for the fields."""

    url: str
    digest: str = ""
    size: int = 0
    file: str = ""
    into: str = ""
    unpack: bool = False

    @property
    def name(self) -> str:
        return self.file or PurePosixPath(urlsplit(self.url).path).name


@dataclass(frozen=True)
class Source:
    """Of a data set: the page for people, what is fetched, and what only a person can get."""

    page: str
    downloads: tuple[Download, ...] = ()
    by_hand: str = ""
    note: str = ""


@cache
def sources() -> Mapping[str, Source]:
    text = (files("feddg.data") / "files" / "sources.toml").read_text("utf-8")
    return {
        name: Source(**{**entry, "downloads": tuple(Download(**d) for d in entry["downloads"])})
        if "downloads" in entry
        else Source(**entry)
        for name, entry in tomllib.loads(text).items()
    }


def find(name: str) -> Source:
    if name not in sources():
        raise unknown("data set to get", name, sources())
    return sources()[name]


def get(name: str, source: Source, root: Path, told: Told) -> list[str]:
    """Everything a program can fetch, into `root`; what is to be known of it, in lines."""
    if not source.downloads:
        raise ConfigError(
            f"no program can fetch {name}: get {source.by_hand}; see {source.page}; and put it"
            f" into {root}"
        )
    with unwritable(root):
        root.mkdir(parents=True, exist_ok=True)
    said = [one(name, source, download, root, told) for download in source.downloads]
    if source.by_hand:
        said.append(f"still to get by hand, into {root}: {source.by_hand}; see {source.page}")
    return said


def one(name: str, source: Source, download: Download, root: Path, told: Told) -> str:
    record = read_record(root)
    known = record.get(download.url, {})
    place = root / download.into
    if known and all((place / made).exists() for made in known["made"]):
        return f"{download.name} is here already"
    target = place / download.name
    wanted = download.digest or known.get("digest", "")
    if target.is_file():  # brought along by hand, or left by a run that was interrupted
        found = checked(target, wanted)
        if wanted and found != wanted:
            raise differs(target, found, wanted, "remove it and try again")
    else:
        found = fetched(name, source, download, root, target, wanted, told)
    made = [download.name]
    if download.unpack:
        made = unpacked(target, place)
    record[download.url] = {
        "digest": found, "published": bool(download.digest), "made": made,
    }  # fmt: skip
    write_whole(root / RECORD, json.dumps(record, indent=1).encode())
    if download.digest:
        return f"{download.name}: {found}, as published"
    if wanted:
        return f"{download.name}: {found}, as at the first download"
    return f"{download.name}: {found}, recorded in {root / RECORD}, for none is published"


def fetched(
    name: str,
    source: Source,
    download: Download,
    root: Path,
    target: Path,
    wanted: str,
    told: Told,
) -> str:
    """The file in its place and its digest; what has another digest is not kept."""
    with unwritable(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    way = (
        f"with a network run `feddg data get {name}` again, or get it elsewhere (see {source.page})"
        f" and put it there as {target}"
    )
    try:
        fetch(download.url, part, way, told)
    except ConfigError:
        for folder in (target.parent, root):  # an empty one would look like the data's
            with suppress(OSError):
                folder.rmdir()
        raise
    found = checked(part, wanted)
    if wanted and found != wanted:
        part.unlink()
        raise differs(part, found, wanted, "nothing of it was kept; try again later")
    os.replace(part, target)
    return found


def unpacked(archive: Path, folder: Path) -> list[str]:
    """The archive is then done with, and so is one that is no good; not so one interrupted."""
    try:
        made = unpack(archive, folder)
    except BadArchive:
        archive.unlink()
        raise
    archive.unlink()
    return made


def checked(path: Path, wanted: str) -> str:
    kind = wanted.partition(":")[0] or "sha256"
    found = hasher(kind, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return f"{kind}:{found.hexdigest()}"


def differs(path: Path, found: str, wanted: str, way: str) -> DataError:
    return DataError(f"{path} has the checksum {found}, not {wanted}; {way}")


def read_record(root: Path) -> Record:
    try:
        found: Record = json.loads((root / RECORD).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as why:
        raise DataError(f"{root / RECORD} cannot be read ({why}); remove it") from None
    return found
