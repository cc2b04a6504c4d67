"""The user's own data: image folders, lists of images, tables."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from feddg.data import folders, image_list, scaling, tables
from feddg.data.augment import augmentation
from feddg.data.domain import Collection
from feddg.data.listed import image_options, opener
from feddg.data.spec import DataSpec, Parser, names, one_of


def _open_csv(root: Path, target: str | None = None, **values: Any) -> Collection:
    reading = {k: values.pop(k) for k in list(values) if k in READING}
    return tables.from_csv(root, tables.Reading(**reading), target=target, **values)


READING: dict[str, Parser] = {
    f.name: names if f.name in ("classes", "ignore") else str for f in fields(tables.Reading)
}
SCALING: dict[str, Parser] = {
    "scaling": one_of("scaling", scaling.SCALINGS),
    "sources": names,
}

FOLDER = DataSpec(
    name="folder",
    title="Your own images",
    summary="a folder tree of images by domain and class",
    size="what lies there",
    licence="yours",
    source="yours",
    layout=folders.LAYOUT,
    protocols=("folder",),
    embedded=False,
    open=folders.from_images,
    options={
        "root": Path,
        "size": int,
        "channels": int,
        "normalise": one_of("normalisation", folders.NORMALISE),
        "least": int,
        "augment": augmentation,
    },
    notes="A class missing at a site is refused without --allow-missing-classes.",
    yours=True,
)
IMAGE_LIST = DataSpec(
    name="image-list",
    title="Your own list of images",
    summary="a CSV with a row per image: path, label, domain and, where there are any, split",
    size="what is listed",
    licence="yours",
    source="yours",
    layout="<root>.csv, or <root>/<any name>.csv, with the columns path,label,domain[,split]",
    protocols=("official split", "seeded split"),
    embedded=False,
    open=opener("image-list", image_list.survey, normalise="none"),
    options={**image_options(), "images": Path, "least": int},
    notes="Paths go on from the CSV's folder, or from images=.",
    survey=image_list.survey,
    yours=True,
)
CSV = DataSpec(
    name="csv",
    title="Your own tables",
    summary="one CSV per site with named feature columns and a label column",
    size="what lies there",
    licence="yours",
    source="yours",
    layout="<root>/<site>.csv",
    protocols=tuple(scaling.SCALINGS),
    embedded=False,
    open=_open_csv,
    options={"root": Path, "least": int, **READING, **SCALING},
    targeted=True,
    yours=True,
)
