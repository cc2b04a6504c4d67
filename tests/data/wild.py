"""Miniatures of data sets in the layouts of the wild: the grey of an image says its class."""

import io
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from PIL import Image

STEP = 3  # grey levels from class to class: 65 classes fit


@cache
def encoded(kind: str, grey: int, side: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side), (grey, grey, grey)).save(file, kind)
    return file.getvalue()


def picture(path: Path, cls: int, side: int = 8) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = "PNG" if path.suffix == ".png" else "JPEG"
    path.write_bytes(encoded(kind, STEP * cls % 256, side))
    return path


def tree(
    root: Path,
    domains: Iterable[str],
    classes: Iterable[str],
    parts: Iterable[str] = ("",),
    each: int = 2,
    suffix: str = ".jpg",
    numbered: Callable[[str, int], str] = lambda part, n: f"{part or 'pic'}_{n:03}",
) -> Path:
    """root/<domain>/[<part>/]<class>/<name>, `each` images in every class and part."""
    for domain in domains:
        for part in parts:
            for k, cls in enumerate(classes):
                for n in range(each):
                    name = numbered(part, n) + suffix
                    picture(root / domain / part / cls / name, k)
    return root


def write(path: Path, lines: Iterable[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path
