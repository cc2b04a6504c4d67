"""Rotated MNIST: handwritten digits at six angles, of which one stays unseen.

csac        the embedded default: 1,000 digits, the *same* ones in every domain, clockwise
domainbed   from the user's full MNIST: 70,000 digits, disjoint sixths, counter-clockwise

Numbers of the two protocols, or of the two directions, are not comparable.
"""

import gzip
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from feddg.data.augment import augmentation
from feddg.data.domain import Collection, Domain, Examples
from feddg.data.places import home
from feddg.data.transforms import Scale
from feddg.errors import DataError, unknown
from feddg.seeds import generator
from feddg.tasks import Classification

Bytes = NDArray[np.uint8]

ANGLES = (0, 15, 30, 45, 60, 75)
TASK = Classification(tuple("0123456789"))
EMBEDDED = "rotated_mnist_digits.npz"
PARTS, KINDS = ("train", "t10k"), (("images", 3), ("labels", 1))  # of MNIST; with dimensions
TURNS = {"clockwise": -1, "counter-clockwise": 1}  # PIL counts angles counter-clockwise


def load(
    protocol: str = "csac",
    direction: str = "",
    root: str | Path | None = None,
    seed: int = 0,
    augment: str | tuple[Any, ...] = (),
) -> Collection:
    """Domains m0 … m75, uint8 N×1×28×28, scaled to [0, 1] by `prepare`.

    protocol    csac | domainbed
    direction   clockwise | counter-clockwise; by default the protocol's own (CSAC's text says
                clockwise, though the paper's rows look as if it had turned the other way)
    root        domainbed: the folder with MNIST's four idx files, plain or .gz; by default
                rotated-mnist/ or mnist/ where data sets are looked for
    seed        domainbed: of the shuffle
    augment     as in `augmentation`; neither protocol has any
    """
    if protocol not in PROTOCOLS:
        raise unknown("protocol", protocol, PROTOCOLS)
    own, make = PROTOCOLS[protocol]
    if direction and direction not in TURNS:
        raise unknown("direction", direction, TURNS)
    domains = make(direction or own, root, seed)
    label = protocol if direction in ("", own) else f"{protocol}, {direction}"
    drawn = augmentation(augment)
    return Collection("rotated-mnist", domains, TASK, (Scale(),), drawn, protocol=label)


def rotate(images: Bytes, degrees: float) -> Bytes:
    """N×28×28 turned counter-clockwise about the centre: bilinear, 0 outside (PIL's rotate)."""
    from PIL import Image

    if degrees == 0 or not len(images):
        return images
    # four at once, as the colours of one picture that have nothing to do with each other
    full = np.resize(images, (-(-len(images) // 4) * 4, *images.shape[1:]))
    turned = []
    height, width = images.shape[1:]
    for four in full.reshape(-1, 4, height, width).transpose(0, 2, 3, 1):
        canvas = Image.frombytes("CMYK", (width, height), four.tobytes())
        turned.append(np.asarray(canvas.rotate(degrees, Image.Resampling.BILINEAR)))
    return np.stack(turned).transpose(0, 3, 1, 2).reshape(full.shape)[: len(images)]


def embedded_digits() -> tuple[Bytes, Bytes]:
    """The 1,000 packaged digits, upright, and their labels."""
    with (files("feddg.data") / "files" / EMBEDDED).open("rb") as file:
        stored = np.load(file, allow_pickle=False)
        return stored["images"], stored["labels"]


def _csac(direction: str, root: str | Path | None, seed: int) -> tuple[Domain, ...]:
    if root is not None:
        raise DataError("protocol csac uses the packaged digits; leave out root=")
    return _embedded(direction)


@cache
def _embedded(direction: str) -> tuple[Domain, ...]:
    images, labels = embedded_digits()
    return tuple(_domain(images, labels, angle, direction) for angle in ANGLES)


def _domainbed(direction: str, root: str | Path | None, seed: int) -> tuple[Domain, ...]:
    if gone := lacking({"protocol": "domainbed", "root": root}):
        raise DataError(gone)
    return _sixths(direction, _mnist(root).resolve(), seed)


def _homes() -> tuple[Path, Path]:
    return home() / "rotated-mnist", home() / "mnist"


def _mnist(root: str | Path | None) -> Path:
    return Path(root) if root else next((p for p in _homes() if p.is_dir()), _homes()[0])


def lacking(values: Mapping[str, Any]) -> str:
    """What the options would open and is not there: the full MNIST, or a file of it."""
    root = values.get("root")
    if values.get("protocol") != "domainbed":
        return ""
    if root is None and not any(map(Path.is_dir, _homes())):
        return (
            "protocol domainbed needs the full MNIST, which is neither in"
            f" {' nor in '.join(map(str, _homes()))}; name the folder with its four idx files by"
            " root="
        )
    files = [(f"{part}-{kind}", dims) for part in PARTS for kind, dims in KINDS]
    return next((why for f in files if isinstance(why := _place(_mnist(root), *f), str)), "")


@cache
def _sixths(direction: str, root: Path, seed: int) -> tuple[Domain, ...]:
    images, labels = full_mnist(root)
    order = torch.randperm(len(labels), generator=generator(seed, "rotated-mnist")).numpy()
    rows = [order[k :: len(ANGLES)] for k in range(len(ANGLES))]
    return tuple(
        _domain(images[r], labels[r], angle, direction, tuple(map(str, r.tolist())))
        for angle, r in zip(ANGLES, rows, strict=True)
    )


Maker = Callable[[str, str | Path | None, int], tuple[Domain, ...]]
PROTOCOLS: dict[str, tuple[str, Maker]] = {
    "csac": ("clockwise", _csac),
    "domainbed": ("counter-clockwise", _domainbed),
}


def _domain(
    images: Bytes, labels: Bytes, angle: int, direction: str, numbers: tuple[str, ...] = ()
) -> Domain:
    """`numbers`: the digits' positions in the full MNIST, which name them in the manifest."""
    x = torch.from_numpy(rotate(images, TURNS[direction] * angle))[:, None]
    return Domain(f"m{angle}", Examples(x, _labels(labels)), files=numbers)


def _labels(labels: Bytes) -> Tensor:
    return torch.from_numpy(labels.astype(np.int64))


def full_mnist(root: str | Path) -> tuple[Bytes, Bytes]:
    """All 70,000 images and labels, training set first, from a folder of idx files."""
    parts = [mnist_part(root, part) for part in PARTS]
    images, labels = zip(*parts, strict=True)
    return np.concatenate(images), np.concatenate(labels)


def mnist_part(root: str | Path, part: str) -> tuple[Bytes, Bytes]:
    """The `train` or the `t10k` images and labels."""
    image_file, images = _idx(Path(root), f"{part}-images", 3)
    label_file, labels = _idx(Path(root), f"{part}-labels", 1)
    if images.shape[1:] != (28, 28):
        raise DataError(f"{image_file}: images are {images.shape[1:]}, MNIST's are 28×28")
    if len(images) != len(labels):
        raise DataError(
            f"{image_file} holds {len(images)} images but {label_file} {len(labels)} labels;"
            " fetch both again"
        )
    if len(labels) and labels.max() > 9:
        raise DataError(f"{label_file}: label {labels.max()} is out of range 0…9")
    return images, labels


def _idx(root: Path, stem: str, dims: int) -> tuple[Path, Bytes]:
    found = _place(root, stem, dims)
    if isinstance(found, str):
        raise DataError(found)
    return found, read_idx(found, dims)


def _place(root: Path, stem: str, dims: int) -> Path | str:
    """The file, or the sentence that there is none."""
    names = [f"{stem}{mark}idx{dims}-ubyte{end}" for mark in "-." for end in ("", ".gz")]
    for folder in (root, root / "raw", root / "MNIST" / "raw"):  # as torchvision leaves them
        for name in names:
            if (folder / name).is_file():
                return folder / name
    return (
        f"{root} has no file {names[0]} (or {names[1]}); the four files of MNIST are needed there"
    )


def read_idx(path: Path, dims: int) -> Bytes:
    """An idx file of unsigned bytes: 0, 0, 8, dims; then big-endian sizes; then the values."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as why:
        raise DataError(f"{path} cannot be read ({why}); fetch it again") from None
    if raw[:4] != bytes((0, 0, 8, dims)):
        raise DataError(
            f"{path} is not an idx file of {dims} dimensions (it starts with {raw[:4].hex()});"
            " fetch it again"
        )
    start = 4 + 4 * dims
    sizes = np.frombuffer(raw[4:start].ljust(4 * dims, b"\0"), ">u4").astype(int)
    if len(raw) - start != sizes.prod():
        raise DataError(
            f"{path} announces {sizes.prod()} values but holds {len(raw) - start};"
            " it is cut short or damaged, fetch it again"
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(sizes).copy()
