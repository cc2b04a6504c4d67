"""TerraIncognita: animals before camera traps at four places, from Caltech Camera Traps."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from feddg.data.layouts import Benchmark, places
from feddg.data.listed import Found, Listing
from feddg.data.sets.photographs import TREE, spec
from feddg.data.shelves import plain
from feddg.errors import DataError

CLASSES = (
    "bird", "bobcat", "cat", "coyote", "dog", "empty", "opossum", "rabbit", "raccoon", "squirrel"
)  # fmt: skip
LOCATIONS = ("100", "38", "43", "46")
PARTS = ("images", "annotations", "categories")

TERRA = Benchmark(
    name="terra-incognita",
    domains={f"location_{n}": (n, f"L{n}") for n in LOCATIONS},
    classes=CLASSES,
    gaps=True,
    whole=24788,
)


def survey(root: Path) -> Found:
    """Folders by location and class, else the camera traps' own images and annotations."""
    if root.is_dir() and not places(TERRA, root) and any(_annotations(root)):
        return _from_annotations(root)
    return TERRA.survey(root)


def _annotations(root: Path) -> Iterator[Path]:
    for folder in (root, *plain(root)):
        yield from sorted(folder.glob("*.json"))


def _from_annotations(root: Path) -> Found:
    """An image stands under every one of its annotated classes, as DomainBed copies it."""
    marked: dict[str, set[tuple[str, str]]] = {n: set() for n in LOCATIONS}
    for file in _annotations(root):
        data = _read(file)
        names = {c["id"]: c["name"] for c in data["categories"]}
        images = {i["id"]: (str(i["location"]), i["file_name"]) for i in data["images"]}
        for annotation in data["annotations"]:
            location, name = images.get(annotation["image_id"], ("", ""))
            cls = names.get(annotation["category_id"], "")
            if location in marked and cls in CLASSES:
                marked[location].add((cls, name))
    at = {p.name: p for folder in (root, *plain(root)) for p in folder.glob("*.jp*g")}
    domains, absent = {}, []
    for location, pairs in marked.items():
        listed = sorted(pairs)
        absent += [name for _, name in listed if name not in at]
        there = [(cls, name) for cls, name in listed if name in at]
        domains[f"location_{location}"] = Listing(
            tuple(at[name] for _, name in there), tuple(CLASSES.index(cls) for cls, _ in there)
        )
    problems = [f"{root} has no image of location {n}" for n, pairs in marked.items() if not pairs]
    if absent:
        problems.append(
            f"{len(absent)} images of the four locations are annotated but not in {root},"
            f" {absent[0]} for one; get the images again"
        )
    layout = "Caltech Camera Traps' images and annotations (JSON)"
    return Found(layout, CLASSES, domains, tuple(problems), whole=TERRA.whole)


def _read(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as why:
        raise DataError(f"{file} is no readable JSON ({why}); get it again") from None
    if not isinstance(data, dict) or not set(PARTS) <= set(data):
        raise DataError(f"{file} is no file of annotations: it lacks {', '.join(PARTS)}")
    return data


SPEC = spec(
    TERRA,
    survey,
    title="TerraIncognita",
    summary="10 kinds of animals (or none) before camera traps at 4 places",
    size="24,788 images, 4 domains, 10 classes; 3.7 GB as uint8 at 224²",
    licence="CDLA Permissive 1.0 (Beery, Van Horn, Perona)",
    source="https://lila.science/datasets/caltech-camera-traps (eccv_18_all_images_sm)",
    layout=TREE,
    layouts=(
        "location_{38,43,46,100}/<class> (DomainBed)",
        "with location_<n>_img_label_list.txt (GA): all images, no split",
        "eccv_18_all_images_sm/ with its annotations, *.json (the archive)",
    ),
    notes="The published number is of all four places together. GA holds out 20%, PPDG 10%.",
)
