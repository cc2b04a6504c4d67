"""Images for a deployed model, decoded to the size and channels that it was trained on."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from feddg.data.folders import IMAGE_TYPES
from feddg.data.images import decoded
from feddg.deploy.manifest import Manifest
from feddg.errors import DataError, unknown
from feddg.tasks import Classification

Found = tuple[str, Tensor, Tensor | None, tuple[str, ...]]  # the fields of a Part
LAYOUTS = "<image>, <class>/<image> or <domain>/<class>/<image>"


def fits(meta: Manifest) -> bool:
    """Whether the model's inputs are what an image file is decoded to."""
    shape = meta.shape
    return (
        meta.dtype == torch.uint8
        and len(shape) == 3
        and shape[0] in (1, 3)
        and shape[1] == shape[2]
    )


def read(root: Path, meta: Manifest) -> list[Found]:
    """One image, a flat folder, or a tree with classes; only a tree has labels."""
    if root.is_file():
        if not is_image(root):
            raise DataError(f"{root} is no image; the model takes {', '.join(IMAGE_TYPES)}")
        return [part(root.name, [root], None, meta, root.parent)]
    flat, folders = images(root), [f for f in subfolders(root) if any_image(f)]
    if not flat and not folders:
        raise DataError(f"{root} holds no image; expected {LAYOUTS}")
    if flat and folders:
        raise DataError(
            f"{root} holds images ({flat[0].name}) beside folders of images"
            f" ({folders[0].name}); expected {LAYOUTS}"
        )
    if flat:
        return [part(root.name, flat, None, meta, root)]
    task = meta.task
    if not isinstance(task, Classification):
        raise DataError(f"{root}: a model for regression takes one flat folder of images")
    by_class = [f for f in folders if images(f)]
    if len(by_class) == len(folders):
        return [by_classes(root, task.classes, meta, root)]
    if by_class:
        raise DataError(f"{by_class[0]} holds images, other folders beside it classes; {LAYOUTS}")
    return [by_classes(domain, task.classes, meta, root) for domain in folders]


def by_classes(domain: Path, classes: Sequence[str], meta: Manifest, root: Path) -> Found:
    """<domain>/<class>/<image>; the folders' names are the model's classes."""
    paths, labels = [], []
    for folder in subfolders(domain):
        found = images(folder)
        if found and folder.name not in classes:
            raise DataError(f"{folder}: {unknown('class', folder.name, classes)}")
        paths += found
        labels += [classes.index(folder.name)] * len(found) if found else []
    return part(domain.name, paths, torch.tensor(labels), meta, root)


def part(name: str, paths: Sequence[Path], y: Tensor | None, meta: Manifest, root: Path) -> Found:
    x = torch.empty((len(paths), *meta.shape), dtype=torch.uint8)
    for row, image in zip(x, decoded(paths, meta.shape[-1], meta.shape[0]), strict=True):
        if isinstance(image, DataError):
            raise image
        row.copy_(image)
    return name, x, y, tuple(str(p.relative_to(root)) for p in paths)


def images(folder: Path) -> list[Path]:
    return sorted(p for p in visible(folder) if is_image(p))


def subfolders(folder: Path) -> list[Path]:
    return sorted(p for p in visible(folder) if p.is_dir())


def any_image(folder: Path) -> bool:
    """At most one level down, as the layouts have it."""
    return bool(images(folder)) or any(images(f) for f in subfolders(folder))


def visible(folder: Path) -> Iterator[Path]:
    return (p for p in folder.iterdir() if not p.name.startswith((".", "__")))


def is_image(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in IMAGE_TYPES
