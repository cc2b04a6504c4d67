"""Arrays out of an HDF5 file of the plain kind that h5py writes by default, without h5py.

Groups are symbol tables, arrays contiguous or in chunks, perhaps deflated and shuffled, of whole or
real numbers. Of anything newer it is h5py that reads, where that is installed.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feddg.errors import DataError

SIGNATURE = b"\x89HDF\r\n\x1a\n"
SPACE, TYPE, LAYOUT, FILTERS, CONTINUED, TABLE = 0x01, 0x03, 0x08, 0x0B, 0x10, 0x11
DEFLATE, SHUFFLE, CHECKSUM = 1, 2, 3


class _NewerError(Exception):
    """The file uses a part of the format that is not read here."""


def read(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays by their path in the file, such as `train/data`."""
    data = path.read_bytes()
    if not data.startswith(SIGNATURE):
        raise DataError(f"{path} is no HDF5 file; get it again")
    try:
        return dict(_arrays(_File(data)))
    except _NewerError as newer:
        return _by_h5py(path, str(newer))
    except (struct.error, ValueError, IndexError, zlib.error, KeyError) as why:
        raise DataError(f"{path} is a damaged HDF5 file ({why}); get it again") from None


def _by_h5py(path: Path, why: str) -> dict[str, NDArray[Any]]:
    try:
        import h5py
    except ImportError:
        raise DataError(
            f"{path} is an HDF5 file with {why}, which takes h5py; install it (pip install h5py) or"
            " save its arrays as .npz"
        ) from None
    found: dict[str, NDArray[Any]] = {}

    def visit(name: str, thing: Any) -> None:
        if isinstance(thing, h5py.Dataset):
            found[name] = thing[()]

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return found


@dataclass(frozen=True)
class _File:
    data: bytes

    def take(self, form: str, at: int) -> tuple[Any, ...]:
        return struct.unpack_from("<" + form, self.data, at)

    def expect(self, mark: bytes, at: int) -> None:
        if self.data[at : at + len(mark)] != mark:
            raise ValueError(f"no {mark.decode()} at byte {at}")

    def messages(self, at: int) -> dict[int, bytes]:
        """An object's header: its messages by kind."""
        version, _, count, _, size = self.take("BBHII", at)
        if version != 1:
            raise _NewerError(f"object headers of version {version}")
        blocks, found = [(at + 16, size)], {}
        for start, length in blocks:  # continuations are appended as they are met
            place = start
            while place + 8 <= start + length and count:
                kind, span = self.take("HH", place)
                body = self.data[place + 8 : place + 8 + span]
                if kind == CONTINUED:
                    blocks.append(struct.unpack_from("<QQ", body))
                found[kind] = body
                place, count = place + 8 + span, count - 1
        return found


def _arrays(file: _File) -> Iterator[tuple[str, NDArray[Any]]]:
    if file.data[8] > 1 or file.data[13:15] != b"\x08\x08":
        raise _NewerError(f"a superblock of version {file.data[8]}")
    root = 24 + 4 * (file.data[8] == 1) + 32
    yield from _group(file, file.take("Q", root + 8)[0], "")


def _group(file: _File, at: int, name: str) -> Iterator[tuple[str, NDArray[Any]]]:
    messages = file.messages(at)
    if TABLE in messages:
        tree, heap = struct.unpack_from("<QQ", messages[TABLE])
        file.expect(b"HEAP", heap)
        names = file.take("Q", heap + 24)[0]
        for entry in _entries(file, tree):
            offset, child = file.take("QQ", entry)
            end = file.data.index(b"\0", names + offset)
            own = file.data[names + offset : end].decode()
            yield from _group(file, child, f"{name}/{own}" if name else own)
    elif LAYOUT in messages:
        yield name, _array(file, messages)
    else:
        raise _NewerError("groups of the newer kind")


def _entries(file: _File, at: int) -> Iterator[int]:
    """Where the entries of a group's symbol table begin."""
    if file.data[at : at + 4] == b"SNOD":
        yield from (at + 8 + 40 * k for k in range(file.take("H", at + 6)[0]))
        return
    file.expect(b"TREE", at)
    for k in range(file.take("H", at + 6)[0]):
        yield from _entries(file, file.take("Q", at + 24 + 16 * k + 8)[0])


def _array(file: _File, messages: dict[int, bytes]) -> NDArray[Any]:
    shape, dtype = _shape(messages[SPACE]), _dtype(messages[TYPE])
    layout = messages[LAYOUT]
    if layout[0] != 3:
        raise _NewerError(f"a layout of version {layout[0]}")
    size = int(np.prod(shape)) * dtype.itemsize
    if layout[1] == 0:
        return np.frombuffer(layout[4 : 4 + size], dtype).reshape(shape)
    if layout[1] == 1:
        (start,) = struct.unpack_from("<Q", layout, 2)
        return np.frombuffer(file.data[start : start + size], dtype).reshape(shape)
    rank = layout[2] - 1
    tree, *chunk = struct.unpack_from(f"<Q{rank}I", layout, 3)
    filters = _filters(messages.get(FILTERS, b""))
    out = np.zeros(shape, dtype)
    for raw, mask, corner in _chunks(file, tree, rank):
        part = np.frombuffer(_plain(raw, filters, mask, dtype.itemsize), dtype).reshape(chunk)
        place = tuple(slice(o, o + c) for o, c in zip(corner, chunk, strict=True))
        here = out[place]
        here[...] = part[tuple(slice(n) for n in here.shape)]
    return out


def _shape(body: bytes) -> tuple[int, ...]:
    version, rank = body[0], body[1]
    return struct.unpack_from(f"<{rank}Q", body, 8 if version == 1 else 4)


def _dtype(body: bytes) -> np.dtype[Any]:
    kind, order, (size,) = body[0] & 15, body[1], struct.unpack_from("<I", body, 4)
    if kind not in (0, 1):
        raise _NewerError("arrays that are not of numbers")
    letter = "f" if kind == 1 else "i" if order & 8 else "u"
    return np.dtype(f"{'>' if order & 1 else '<'}{letter}{size}")


def _filters(body: bytes) -> list[int]:
    if not body:
        return []
    found, at = [], 8 if body[0] == 1 else 2
    for _ in range(body[1]):
        (number,) = struct.unpack_from("<H", body, at)
        named = body[0] == 1 or number >= 256
        length = struct.unpack_from("<H", body, at + 2)[0] if named else 0
        _, values = struct.unpack_from("<HH", body, at + 2 + 2 * named)
        at += 6 + 2 * named + (-(-length // 8) * 8 if body[0] == 1 else length) + 4 * values
        at += 4 * (body[0] == 1 and values % 2)
        if number not in (DEFLATE, SHUFFLE, CHECKSUM):
            raise _NewerError(f"the filter {number}")
        found.append(number)
    return found


def _chunks(file: _File, at: int, rank: int) -> Iterator[tuple[bytes, int, tuple[int, ...]]]:
    """A chunk's bytes, which filters it was spared, and its first corner."""
    if at == 2**64 - 1:  # nothing was ever written
        return
    file.expect(b"TREE", at)
    level, count = file.take("BH", at + 5)
    span = 8 + 8 * (rank + 1)
    for k in range(count):
        here = at + 24 + k * (span + 8)
        size, mask, *corner = file.take(f"II{rank}Q", here)
        (child,) = file.take("Q", here + span)
        if level:
            yield from _chunks(file, child, rank)
        else:
            yield file.data[child : child + size], mask, tuple(corner)


def _plain(raw: bytes, filters: list[int], mask: int, size: int) -> bytes:
    """A chunk without its filters, the last one first."""
    for place, number in reversed(list(enumerate(filters))):
        if mask >> place & 1:
            continue
        if number == DEFLATE:
            raw = zlib.decompress(raw)
        elif number == SHUFFLE:
            raw = np.frombuffer(raw, np.uint8).reshape(size, -1).T.tobytes()
        else:
            raw = raw[:-4]
    return raw
