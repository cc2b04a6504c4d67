"""Decoded images kept as one file of raw uint8, mapped into memory instead of read.

NAME-KEY.u8     the images, row after row; there only when it is whole
NAME-KEY.part   the same while it is made, block by block
NAME-KEY.done   a line "block checksum" for every finished block of it
STAMP.is        the digest of the files' bytes, so that they are not read at every start

The key is a digest of what decides the pixels: the files' bytes in their order, the images' size
and channels, and VERSION. The stamp is one of the files' places, sizes and times of change: while
it stays, the bytes are taken for the same. Who is killed goes on from the last finished block; of
two processes one works and the other waits (`docs/adr/0007-decoded-once.md`).
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b, file_digest
from pathlib import Path
from re import finditer, fullmatch, sub
from threading import Lock
from zlib import crc32

import torch
from torch import Tensor

from feddg.checkpoint import write_whole
from feddg.errors import DataError, FeddgError

VERSION = 2  # of the decoding: another one where other pixels come out of the same files
BLOCK = 1 << 25  # bytes that are decoded at a time and held in memory
FOLDER = ".feddg-cache"
WORKING = Lock()  # threads of this process, which a lock of fcntl does not stop

Fill = Callable[[slice, Tensor], None]  # decodes these images into the block
Told = Callable[[int], None]  # so many images more are there


@dataclass(frozen=True)
class Entry:
    """One file of images: what it is called and how it is laid out."""

    name: str
    shape: tuple[int, ...]

    @property
    def each(self) -> int:
        return int(torch.Size(self.shape[1:]).numel())

    @property
    def bytes(self) -> int:
        return self.shape[0] * self.each

    @property
    def blocks(self) -> list[slice]:
        count, step = self.shape[0], max(1, BLOCK // self.each)
        return [slice(at, min(at + step, count)) for at in range(0, count, step)]

    def whole(self, folder: Path) -> Path | None:
        path = folder / f"{self.name}.u8"
        try:
            return path if path.stat().st_size == self.bytes else None
        except OSError:
            return None

    def mapped(self, path: Path) -> Tensor:
        """Nothing is read before it is asked for; what is written to it stays in this process."""
        flat = torch.from_file(str(path), shared=False, size=self.bytes, dtype=torch.uint8)
        return flat.view(self.shape)


def common(paths: Sequence[Path]) -> Path:
    """The folder that holds them all, however deep."""
    return Path(os.path.commonpath([os.path.abspath(d) for d in {path.parent for path in paths}]))


def entry(paths: Sequence[Path], size: int, channels: int, data: Path | None = None) -> Entry:
    """`data` as in `found`; by default the folder that holds the images."""
    base = common(paths)
    what = f"{VERSION} {size} {channels} {content(paths, data or base)}"
    title = sub(r"[^A-Za-z0-9._-]+", "_", base.name)[:40] or "images"
    key = blake2b(what.encode(), digest_size=10).hexdigest()
    return Entry(f"{title}-{size}x{channels}-{key}", (len(paths), channels, size, size))


def content(paths: Sequence[Path], data: Path) -> str:
    """Of the files' bytes in their order: what was read before, where the stamp is known."""
    note = f"{stamp(paths)}.is"
    for folder in folders(data):
        with suppress(OSError, UnicodeDecodeError):
            if fullmatch("[0-9a-f]{32}", known := (folder / note).read_text("ascii")):
                return known
    digest = blake2b(digest_size=16)
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for one in pool.map(bytes_of, paths):
            digest.update(one)
    for folder in folders(data):
        with suppress(OSError, FeddgError):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / note, digest.hexdigest().encode())
            break
    return digest.hexdigest()


def bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file_digest(file, lambda: blake2b(digest_size=16)).digest()
    except OSError as why:
        raise DataError(f"{path} cannot be read ({why.strerror})") from None


def stamp(paths: Sequence[Path]) -> str:
    """Changes whenever a file does, as far as its size and time of change tell."""
    base = common(paths)
    below = {folder: os.path.relpath(folder, base) for folder in {path.parent for path in paths}}
    digest = blake2b(str(base).encode(errors="surrogateescape"), digest_size=10)
    for path in paths:
        try:
            found = path.stat()
        except OSError as why:
            raise DataError(f"{path} cannot be read ({why.strerror})") from None
        name = os.path.normpath(f"{below[path.parent]}/{path.name}")
        line = f"\n{name}\0{found.st_size}\0{found.st_mtime_ns}"
        digest.update(line.encode(errors="surrogateescape"))
    return digest.hexdigest()


def folders(data: Path) -> list[Path]:
    """Where to look and, in this order, where to write: not in the data, which others list."""
    if given := os.environ.get("FEDDG_CACHE"):
        return [Path(given).expanduser()]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "feddg"
    beside = data.absolute().parent
    return [home] if beside == Path(beside.anchor) else [beside / FOLDER, home]


def found(this: Entry, data: Path) -> Tensor | None:
    whole = [path for folder in folders(data) if (path := this.whole(folder))]
    return this.mapped(whole[0]) if whole else None


def made(this: Entry, data: Path, fill: Fill, told: Told) -> Tensor | None:
    """In the first folder that takes it; None: there is none."""
    for folder in folders(data):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with WORKING, alone(folder / f"{this.name}.lock"):
                path = this.whole(folder) or complete(this, folder, fill, told)
        except OSError:  # it is read-only, or full
            continue
        return this.mapped(path)
    if given := os.environ.get("FEDDG_CACHE"):
        raise DataError(
            f"FEDDG_CACHE={given}: nothing can be written there, or there is no room for"
            f" {this.bytes / 2**20:.0f} MiB; name another folder, or unset it"
        )
    return None


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Waits for another process; whoever removes the lock has left the whole file beside it."""
    with open(lock, "a") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield
        lock.unlink(missing_ok=True)


def complete(this: Entry, folder: Path, fill: Fill, told: Told) -> Path:
    path, part, done = (folder / f"{this.name}.{end}" for end in ("u8", "part", "done"))
    part.touch()
    with open(part, "r+b") as file, open(done, "a+") as log:
        os.posix_fallocate(file.fileno(), 0, this.bytes)
        log.seek(0)
        known = checksums(log.read())
        for number, rows in enumerate(this.blocks):
            block = torch.empty((rows.stop - rows.start, *this.shape[1:]), dtype=torch.uint8)
            view = block.numpy().data.cast("B")
            file.seek(rows.start * this.each)
            if number not in known or not file.readinto(view) or crc32(view) != known[number]:
                try:
                    fill(rows, block)
                except DataError:  # mended, it will have another key
                    part.unlink()
                    done.unlink()
                    raise
                file.seek(rows.start * this.each)
                file.write(view)
                file.flush()
                log.write(f"{number} {crc32(view):08x}\n")
                log.flush()
            told(len(block))
        os.fsync(file.fileno())
    os.replace(part, path)
    done.unlink()
    return path


def checksums(log: str) -> dict[int, int]:
    """Of the blocks that are there; a line cut short does not count."""
    return {int(m[1]): int(m[2], 16) for m in finditer(r"(?m)^(\d+) ([0-9a-f]{8})\n", log)}
