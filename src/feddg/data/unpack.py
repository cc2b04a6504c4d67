"""Archives with care: no path out of the folder, no link, nothing half-written."""

import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from feddg.checkpoint import unwritable
from feddg.errors import DataError

FOLDER = ".unpacking"
BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError, ValueError)
ZIPS, TARS = (".zip",), (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


class BadArchive(DataError):
    """It cannot be unpacked, now or later."""


def unpack(archive: Path, folder: Path) -> list[str]:
    """Everything in the archive into `folder`, or nothing; the names of what then lies there."""
    beside = folder / FOLDER
    try:
        with unwritable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(beside, ignore_errors=True)  # of a run that was killed
            beside.mkdir()
            try:
                members(archive, beside)
            except BROKEN as why:
                raise BadArchive(f"{archive} is damaged ({why}); get it again") from None
            return moved(beside, folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def members(archive: Path, folder: Path) -> None:
    with opened(archive) as found:
        for name, file in found:
            place = folder / safe(archive, name)
            if file is None:
                place.mkdir(parents=True, exist_ok=True)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            with file, open(place, "wb") as copy:
                shutil.copyfileobj(file, copy, 1 << 20)


@contextmanager
def opened(archive: Path) -> Iterator[Iterator[tuple[str, IO[bytes] | None]]]:
    """Name and content of every member; of a folder no content. Anything else is refused."""
    if archive.name.endswith(ZIPS):
        with zipfile.ZipFile(archive) as packed:
            yield of_zip(archive, packed)
    elif archive.name.endswith(TARS):
        with tarfile.open(archive) as tape:
            yield of_tar(archive, tape)
    else:
        raise BadArchive(f"{archive} is no archive that can be unpacked: {', '.join(ZIPS + TARS)}")


def of_zip(archive: Path, packed: zipfile.ZipFile) -> Iterator[tuple[str, IO[bytes] | None]]:
    for member in packed.infolist():
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise refused(archive, member.filename, "is a link or no file")
        yield member.filename, None if member.is_dir() else packed.open(member)


def of_tar(archive: Path, tape: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes] | None]]:
    for member in tape:
        if not member.isfile() and not member.isdir():
            raise refused(archive, member.name, "is a link or no file")
        yield member.name, tape.extractfile(member) if member.isfile() else None


def safe(archive: Path, name: str) -> PurePosixPath:
    path, foreign = PurePosixPath(name), PureWindowsPath(name)
    if path.is_absolute() or foreign.drive or ".." in {*path.parts, *foreign.parts}:
        raise refused(archive, name, "leads out of the folder")
    return path


def refused(archive: Path, name: str, why: str) -> BadArchive:
    return BadArchive(
        f"{archive} is not unpacked: {name!r} in it {why}, as no data set needs; get it elsewhere"
    )


def moved(beside: Path, folder: Path) -> list[str]:
    found = sorted(path.name for path in beside.iterdir())
    for name in found:
        if (folder / name).exists():
            raise DataError(f"{folder / name} is there already; move it away and try again")
    for name in found:
        os.replace(beside / name, folder / name)
    return found
