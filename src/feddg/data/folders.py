"""The user's own data: a folder tree of images, tensors, or torch data sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from feddg.data.augment import IMAGES, augmentation
from feddg.data.domain import Collection, Domain, Examples
from feddg.data.images import stored
from feddg.data.shelves import files, plain
from feddg.data.transforms import IMAGENET, Impute, Scale, Transform
from feddg.errors import DataError, unknown
from feddg.tasks import Classification, Task

IMAGE_TYPES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
NORMALISE = {"none": Scale(), "imagenet": IMAGENET, "half": Scale((0.5,), (0.5,))}
LAYOUT = "<domain>/<class>/<image>"


@dataclass(frozen=True)
class Tree:
    """What lies in a folder tree of images, readable or not."""

    root: Path
    classes: tuple[str, ...]
    images: Mapping[str, Mapping[str, tuple[Path, ...]]]  # domain, class
    others: tuple[Path, ...]  # files that are no images by their names
    problems: tuple[str, ...]


def from_images(
    root: str | Path,
    size: int = 224,
    channels: int = 3,
    normalise: str = "none",
    least: int = 2,
    augment: str | tuple[Any, ...] = (),
) -> Collection:
    """`root/<domain>/<class>/<image>`, decoded to uint8 N×channels×size×size.

    A class may be missing in a domain. `normalise` is none ([0, 1]), half ([−1, 1]) or
    imagenet; `least` is how
    many domains there must be; `augment` as in `augmentation`.
    """
    check_images(size, channels, normalise)
    drawn = augmentation(augment)
    tree = scan(root, least)
    if tree.problems:
        raise DataError(and_more(tree.problems))
    domains = tuple(_domain(tree, name, size, channels) for name in tree.images)
    task = Classification(tree.classes)
    prepare = (NORMALISE[normalise],)
    return Collection(tree.root.name, domains, task, prepare, drawn, protocol="folder")


def check_images(size: int, channels: int, normalise: str) -> None:
    if normalise not in NORMALISE:
        raise unknown("normalisation", normalise, NORMALISE)
    if channels not in (1, 3) or size < 1:
        raise DataError(f"size={size}, channels={channels}: size is positive, channels 1 or 3")
    if normalise == "imagenet" and channels != 3:
        raise DataError("normalise=imagenet is for channels=3")


def scan(root: str | Path, least: int = 2) -> Tree:
    """Lists the tree without opening an image; what is wrong stands in `problems`."""
    root = Path(root)
    if not root.is_dir():
        raise DataError(f"{root} is not a folder; expected one with {LAYOUT}")
    problems, others = [], []
    images: dict[str, dict[str, tuple[Path, ...]]] = {}
    for domain in plain(root):
        if any(_is_image(path) for path in files(domain)):
            problems.append(f"{domain} holds images beside its folders; expected {LAYOUT}")
        images[domain.name] = {}
        for cls in plain(domain):
            found = files(cls)
            images[domain.name][cls.name] = tuple(p for p in found if _is_image(p))
            others += [p for p in found if not _is_image(p)]
    classes = sorted({c for by_class in images.values() for c in by_class})
    if len(images) < least:
        held = f"one domain only ({next(iter(images))})" if len(images) == 1 else "no domain folder"
        problems.append(f"{root} has {held}; expected {LAYOUT} with at least {least} domains")
    problems += [
        f"domain folder {root / name} holds no image in class folders; add some or remove it"
        for name, by_class in images.items()
        if not any(by_class.values())
    ]
    problems += [
        f"class {c!r} has no image in any domain of {root}; remove its empty folders"
        for c in classes
        if not any(by_class.get(c) for by_class in images.values())
    ]
    problems += [
        f"{name!a} names a folder of {root}, but not in UTF-8; rename it"
        for name in (*images, *classes)
        if any("\ud800" <= c <= "\udfff" for c in name)
    ]
    if len(classes) == 1:
        problems.append(f"{root} has one class only ({classes[0]}); expected {LAYOUT}")
    return Tree(root, tuple(classes), images, tuple(others), tuple(problems))


def from_tensors(
    domains: Mapping[str, Examples | tuple[Tensor, Tensor]],
    task: Task | Sequence[str],
    name: str = "tensors",
    prepare: tuple[Transform, ...] | None = None,
    augment: str | tuple[Any, ...] = (),
) -> Collection:
    """From {domain: (x, y)}; `task` is a task or the names of the classes.

    uint8 images are scaled to [0, 1] unless `prepare` says what else; NaN are allowed where it
    begins with `Impute`. `augment`: transforms, or text as in `augmentation`.
    """
    made: Task = Classification(tuple(task)) if isinstance(task, Sequence) else task
    found = tuple(Domain(key, Examples.of(data)) for key, data in domains.items())
    if not found:
        raise DataError(f"{name}: no domain was given")
    if prepare is None:
        prepare = (Scale(),) if found[0].examples.store.dtype == torch.uint8 else ()
    for domain in found:
        _check_examples(domain, found[0], made)
        _check_finite(domain, filled=bool(prepare) and isinstance(prepare[0], Impute))
    drawn = augmentation(augment)
    if found[0].examples.store.dim() != 4 and any(isinstance(t, IMAGES) for t in drawn):
        raise DataError(f"{name}: augmentations are for images, N×C×H×W; leave out augment=")
    return Collection(name, found, made, prepare, drawn, protocol="own data")


def from_datasets(
    domains: Mapping[str, Dataset[Any]],
    task: Task | Sequence[str],
    name: str = "datasets",
    prepare: tuple[Transform, ...] | None = None,
    augment: str | tuple[Any, ...] = (),
) -> Collection:
    """From {domain: map-style torch data set of (input, label)}, read once into tensors."""
    found = {}
    for key, data in domains.items():
        try:
            found[key] = Examples.of(data)
        except (TypeError, ValueError, RuntimeError) as why:
            raise DataError(
                f"domain {key!r}: its data set cannot be stacked into tensors ({why}); every item"
                " must be a pair (tensor, label) and all inputs of one shape"
            ) from None
    return from_tensors(found, task, name, prepare, augment)


def and_more(problems: Sequence[str]) -> str:
    """One sentence for the first problem; the others are for `feddg data check`."""
    more = len(problems) - 1
    return problems[0] + (f" (and {more} more; see `feddg data check`)" if more else "")


def _domain(tree: Tree, name: str, size: int, channels: int) -> Domain:
    listed = tree.images[name]
    paths = [path for c in tree.classes for path in listed.get(c, ())]
    x = stored(paths, size, channels, tree.root)
    y = torch.tensor([k for k, c in enumerate(tree.classes) for _ in listed.get(c, ())])
    return Domain(name, Examples(x, y))


def _check_examples(domain: Domain, first: Domain, task: Task) -> None:
    data, name = domain.examples, f"domain {domain.name!r}"
    if not len(data):
        raise DataError(f"{name} has no examples; leave it out")
    if len(data.x) != len(data.y):
        raise DataError(f"{name} has {len(data.x)} inputs but {len(data.y)} labels")
    if data.shape != first.examples.shape or data.store.dtype != first.examples.store.dtype:
        shapes = " and ".join(
            f"{tuple(d.examples.shape)} {d.examples.store.dtype} in {d.name!r}"
            for d in (domain, first)
        )
        raise DataError(f"{name} has inputs of another kind: {shapes}; all must be alike")
    if not isinstance(task, Classification):
        return
    if data.y.dtype != torch.int64 or data.y.dim() != 1:
        raise DataError(f"{name}: labels must be int64 numbers of classes, one per example")
    wrong = ((data.y < 0) | (data.y >= task.outputs)).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{name}, example {row}: label {int(data.y[row])} is out of range;"
            f" {task.outputs} classes mean 0…{task.outputs - 1}"
        )


def _check_finite(domain: Domain, filled: bool) -> None:
    """`filled`: whether what prepares the batches fills NaN."""
    x, y = domain.examples.x, domain.examples.y
    for what, values in (("column", x), ("label", y)):
        if not values.is_floating_point():
            continue
        wrong = values.isinf() if filled and values is x else ~values.isfinite()
        if wrong.any():
            row, *at = wrong.nonzero()[0].tolist()
            where = f"{what} {', '.join(map(str, at))}".strip()
            raise DataError(
                f"domain {domain.name!r}, row {row}, {where}: {values[(row, *at)].item()} is not a"
                " finite number; mend it or leave the row out"
            )


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGE_TYPES
