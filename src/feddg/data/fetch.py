"""A file by HTTP, gone on with where it broke off, so long as it is still the same file."""

import shutil
from collections.abc import Callable, Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from feddg.checkpoint import unwritable
from feddg.errors import ConfigError

Told = Callable[[str, int, int], None]  # the file, bytes there, bytes in all (0: unknown)
TRIES = 3  # a long download breaks off now and then
SECONDS = 60.0  # without a byte
BLOCK = 1 << 18


class Broken(Exception):
    """The connection ended early; what came is kept."""


def fetch(url: str, part: Path, way: str, told: Told) -> None:
    """All of `url` as the file `part`; `way`: what to do where that cannot be."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise ConfigError(f"{url} is no address of a download (http, https)")
    reason = ""
    for _ in range(TRIES):
        before = size(part)
        try:
            receive(url, part, told)
            mark(part).unlink(missing_ok=True)
            return
        except HTTPError as why:
            why.close()
            if why.code == 416 and before:  # what is here is whole, or of another file
                mark(part).unlink(missing_ok=True)
                if why.headers.get("Content-Range") == f"bytes */{before}":
                    return
                part.unlink()
                reason = "it has changed"
                continue
            raise ConfigError(f"{url} answers {why.code} {why.reason}; {way}") from None
        except Broken as why:
            reason = str(why)
        except (URLError, HTTPException, OSError) as why:
            cause = why.reason if isinstance(why, URLError) else why
            host = urlsplit(url).hostname
            raise ConfigError(f"there is no way to {host} ({cause}); {way}") from None
    raise ConfigError(
        f"the download of {url} broke off at {size(part):,} bytes ({reason}); run the same command"
        " again to go on from there"
    )


def receive(url: str, part: Path, told: Told) -> None:
    before = size(part)
    headers = {"User-Agent": "feddg", "Accept-Encoding": "identity"}
    if before:
        headers["Range"] = f"bytes={before}-"
        if same := read(mark(part)):
            headers["If-Range"] = same
    with urlopen(Request(url, headers=headers), timeout=SECONDS) as answer:
        goes_on = answer.status == 206
        if goes_on and begins(answer) != before:
            part.unlink()
            raise Broken("the server sent another part than was asked for")
        done = before if goes_on else 0
        length = int(answer.headers.get("Content-Length") or 0)
        total = done + length if length else 0
        with unwritable(part):
            room(part, total - done)
            mark(part).write_text(validator(answer), "utf-8")
            with open(part, "ab" if goes_on else "wb") as file:
                told(part.stem, done, total)
                for block in blocks(answer):
                    file.write(block)
                    done += len(block)
                    told(part.stem, done, total)
    if total and done < total:
        raise Broken(f"of {total:,}")


def blocks(answer: HTTPResponse) -> Iterator[bytes]:
    """A broken connection is no fault of the disk that the blocks are written to."""
    try:
        while block := answer.read(BLOCK):
            yield block
    except (HTTPException, OSError) as why:
        raise Broken(str(why) or type(why).__name__) from None


def begins(answer: HTTPResponse) -> int:
    """Content-Range: bytes 500-999/1000"""
    text = str(answer.headers.get("Content-Range") or "").removeprefix("bytes ")
    first = text.partition("-")[0]
    return int(first) if first.isdecimal() else -1


def validator(answer: HTTPResponse) -> str:
    """By which the server can tell whether the file has changed since."""
    tag = str(answer.headers.get("ETag") or "")
    weak = not tag or tag.startswith("W/")
    return str(answer.headers.get("Last-Modified") or "") if weak else tag


def room(part: Path, wanted: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if wanted > free:
        raise ConfigError(
            f"{part.parent} has room for {free / 1e9:.1f} GB, {part.stem} needs"
            f" {wanted / 1e9:.1f} more; make room or name another folder by --root"
        )


def mark(part: Path) -> Path:
    return part.with_name(part.name + ".tag")


def read(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
