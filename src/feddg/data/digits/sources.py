"""Where a domain's digits lie in a folder, and in which of the forms that they are given away."""

import bz2
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feddg.data import plain_pickle
from feddg.data.digits import hdf5
from feddg.data.digits.part import CLASSES, Part, of_arrays
from feddg.data.folders import IMAGE_TYPES
from feddg.data.rotated_mnist import mnist_part
from feddg.data.shelves import key, plain
from feddg.errors import DataError

NAMES = {  # of a domain's folder, or what its files begin with
    "mnist": ("mnist",),
    "mnist_m": ("mnistm",),
    "svhn": ("svhn",),
    "syn": ("syn", "synth", "syndigits", "synthdigits", "syntheticdigits"),
    "usps": ("usps",),
}
SETS = ("digit5", "digitfive")  # what the folder of all of them is called
KEYS = (  # training images and labels, test images and labels
    ("train_32", "label_train", "test_32", "label_test"),
    ("train", "label_train", "test", "label_test"),
    ("train_data", "train_label", "test_data", "test_label"),
    ("x_train", "y_train", "x_test", "y_test"),
    ("train/data", "train/target", "test/data", "test/target"),
)
NAMED = re.compile(r".+_(\d)")  # Dassl: 00012_7.jpg is a seven
FORM = re.compile(r"(^|_)(train|test|t10k)|\.(mat|npz|h5|hdf5|pkl|pkl\.gz|t|bz2)$")
Parts = dict[str, Part]


def digits(root: Path, domain: str) -> tuple[str, Parts]:
    """In which form a domain lies below `root`, in words, and its "train" and "test" parts."""
    entries = around(root, domain)
    for words, reader in READERS.items():
        parts = reader(entries)
        if parts:
            gone = [p for p in ("train", "test") if p not in parts]
            if gone:
                raise DataError(
                    f"{root} has the {next(iter(parts))} part of {domain} as {words}, but no"
                    f" {gone[0]} part; get it again"
                )
            return words, parts
    raise DataError(
        f"{root} has no digits of {domain} in a known form; expected a folder {domain}/ with"
        f" {', or '.join(READERS)}"
    )


def around(root: Path, domain: str) -> list[Path]:
    """What lies in a domain's own folder, or in `root` under a name that begins like its own."""
    if not root.is_dir():
        raise DataError(f"{root} is not a folder; name the one with the digits' folders")
    for inner in (p for p in plain(root) if key(p.name) in SETS):
        root = inner
    own = [p for p in plain(root) if _domain(p, exactly=True) == domain]
    if own:
        raw = [own[0] / "raw", own[0] / "MNIST" / "raw"]
        return [q for p in (own[0], *raw) if p.is_dir() for q in sorted(p.iterdir())]
    return [p for p in sorted(root.iterdir()) if _domain(p, exactly=False) == domain]


def here(root: Path) -> list[str]:
    """The domains of which something lies in a folder that looks like one of the forms."""
    return [d for d in NAMES if any(FORM.search(p.name.lower()) for p in around(root, d))]


def _domain(path: Path, exactly: bool) -> str:
    """The one whose name, the longest, the path's has or begins with."""
    name = key(path.name)
    fits = [
        (len(alias), domain)
        for domain, aliases in NAMES.items()
        for alias in aliases
        if name == alias or (not exactly and name.startswith(alias))
    ]
    return max(fits)[1] if fits else ""


def _idx(entries: Sequence[Path]) -> Parts:
    homes = [p.parent for p in entries if p.name.startswith(("train-images", "t10k-images"))]
    if not homes:
        return {}
    parts = {}
    for part, name in (("train", "train"), ("test", "t10k")):
        images, labels = mnist_part(homes[0], name)
        parts[part] = Part(labels.astype(np.int64), images[..., None])
    return parts


def _files(*suffixes: str) -> Callable[[Sequence[Path]], Parts]:
    """A reader of all files that end so, whose arrays are then known by their names."""

    def read(entries: Sequence[Path]) -> Parts:
        parts: Parts = {}
        for path in entries:
            if path.name.lower().endswith(suffixes) and "extra" not in path.name.lower():
                parts |= _named(_arrays(path), path)
        return parts

    return read


def _arrays(path: Path) -> Mapping[str, Any]:
    if path.suffix == ".npz":
        try:
            with np.load(path, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (OSError, ValueError, EOFError) as why:
            raise DataError(f"{path} is no readable .npz ({why}); get it again") from None
    if path.suffix in (".h5", ".hdf5"):
        return hdf5.read(path)
    return _matlab(path)


def _matlab(path: Path) -> Mapping[str, Any]:
    from scipy.io import loadmat

    try:
        found: dict[str, Any] = loadmat(path)
    except NotImplementedError:  # what scipy says of version 7.3, which is HDF5
        raise DataError(f"{path} is of MATLAB 7.3; save it as version 7 or as .npz") from None
    except Exception as why:  # a damaged file breaks scipy's reader in many ways
        raise DataError(f"{path} is no readable .mat file ({why}); get it again") from None
    return {k: v for k, v in found.items() if not k.startswith("__")}


def _named(arrays: Mapping[str, Any], path: Path) -> Parts:
    for a, b, c, d in KEYS:
        if {a, b, c, d} <= set(arrays):
            return {
                "train": of_arrays(arrays[a], arrays[b], path),
                "test": of_arrays(arrays[c], arrays[d], path),
            }
    if {"X", "y"} <= set(arrays):
        part = "test" if "test" in path.name.lower() else "train"
        return {part: of_arrays(arrays["X"], arrays["y"], path)}
    cells = arrays.get("dataset")
    if cells is not None and cells.shape == (2, 2):
        rows = zip(("train", "test"), cells, strict=True)
        return {part: of_arrays(row[0], row[1], path) for part, row in rows}
    has = ", ".join(arrays) or "nothing"
    raise DataError(
        f"{path} has none of the arrays that digits come in (X and y, or such as"
        f" {', '.join(KEYS[2])}); it has: {has}"
    )


def _pickled(entries: Sequence[Path]) -> Parts:
    for path in entries:
        if path.name.lower().endswith((".pkl", ".pkl.gz")):
            pairs = plain_pickle.read(path)
            if not isinstance(pairs, list | tuple) or not all(len(p) == 2 for p in pairs):
                raise DataError(f"{path} holds no pairs of images and labels; get it again")
            return {
                "train": of_arrays(pairs[0][0], pairs[0][1], path),
                "test": of_arrays(pairs[-1][0], pairs[-1][1], path),
            }
    return {}


def _libsvm(entries: Sequence[Path]) -> Parts:
    """LIBSVM's usps: the label, from 1 for a zero, then place:value for every pixel."""
    parts = {}
    for path in entries:
        name = path.name.lower().removesuffix(".bz2")
        if path.is_dir() or name not in ("usps", "usps.t"):
            continue
        try:
            text = bz2.decompress(path.read_bytes()) if path.suffix == ".bz2" else path.read_bytes()
            rows = [line.split() for line in text.decode("ascii").splitlines() if line.strip()]
            labels = np.array([int(float(row[0])) - 1 for row in rows])
            x = np.full((len(rows), 256), -1.0)
            for k, row in enumerate(rows):
                for cell in row[1:]:
                    place, _, value = cell.partition(":")
                    x[k, int(place) - 1] = float(value)
        except (OSError, ValueError, IndexError, EOFError) as why:
            raise DataError(f"{path} is not in LIBSVM's form ({why}); get it again") from None
        parts["test" if name.endswith(".t") else "train"] = of_arrays(x, labels, path)
    return parts


def _listed(entries: Sequence[Path]) -> Parts:
    """`<any>_train/` beside `<any>_train_labels.txt`, whose lines are a file and its digit."""
    parts = {}
    for path in entries:
        stem = path.stem.lower()
        part = next((p for p in ("train", "test") if p in stem), "")
        if path.suffix != ".txt" or not part or "label" not in stem:
            continue
        folder = path.with_name(re.sub(r"_?labels?$", "", path.stem, flags=re.IGNORECASE))
        lines = [t.rsplit(maxsplit=1) for t in path.read_text("utf-8").splitlines() if t.strip()]
        for number, cells in enumerate(lines, 1):
            if len(cells) != 2 or not cells[1].isdecimal():
                raise DataError(f"{path}, line {number} is not a file and its digit")
            if int(cells[1]) >= CLASSES:
                raise DataError(f"{path}, line {number}: label {cells[1]} is out of range 0…9")
        there = {p.name for p in folder.iterdir()} if folder.is_dir() else set()
        gone = [name for name, _ in lines if Path(name).name not in there]
        if gone:
            raise DataError(
                f"{path} names {gone[0]}, which is not in {folder} ({len(gone)} of"
                f" {len(lines)} are not); get the images again"
            )
        labels = np.array([int(label) for _, label in lines])
        parts[part] = Part(labels, paths=tuple(folder / Path(name).name for name, _ in lines))
    return parts


def _images(entries: Sequence[Path]) -> Parts:
    """`train_images/<name>_<digit>.jpg` as Dassl's, or `train/<digit>/<image>`."""
    parts = {}
    for folder in entries:
        part = {"train": "train", "test": "test"}.get(re.split(r"[^a-z]", folder.name.lower())[0])
        if not folder.is_dir() or not part:
            continue
        pairs = []
        for path in sorted(p for p in folder.rglob("*") if p.suffix.lower() in IMAGE_TYPES):
            match = NAMED.fullmatch(path.stem) if path.parent == folder else None
            label = match[1] if match else path.parent.name
            if not label.isdecimal() or int(label) >= CLASSES:
                raise DataError(
                    f"{path} says by no name which digit it is; expected <name>_<digit>.jpg or"
                    f" {folder.name}/<digit>/<image>"
                )
            pairs.append((path, int(label)))
        if not pairs:
            raise DataError(f"{folder} holds no image; get it again")
        parts[part] = Part(np.array([k for _, k in pairs]), paths=tuple(p for p, _ in pairs))
    return parts


READERS: dict[str, Callable[[Sequence[Path]], Parts]] = {
    "MNIST's idx files (.gz or not)": _idx,
    ".mat files": _files(".mat"),
    ".npz files": _files(".npz"),
    "an HDF5 file": _files(".h5", ".hdf5"),
    "LIBSVM's usps and usps.t (.bz2 or not)": _libsvm,
    "a pickle of arrays (.pkl or .pkl.gz)": _pickled,
    "image folders with lists of labels": _listed,
    "folders of images by digit": _images,
}
