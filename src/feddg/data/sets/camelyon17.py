"""Camelyon17-WILDS: is there tumour in the middle of a patch of tissue? Five hospitals.

Hospitals 0, 3 and 4 train (with a tenth of theirs held out), 1 is for validation, 2 for the test.
"""

from functools import partial
from pathlib import Path
from typing import Any

import torch

from feddg.data.augment import augmentation
from feddg.data.domain import Collection
from feddg.data.images import stored
from feddg.data.spec import DataSpec
from feddg.data.wilds import (
    WAYS,
    Rows,
    domains,
    folder,
    lacking,
    likeness,
    normalisation,
    protocol,
    table,
    values,
)
from feddg.tasks import Classification

VERSION = "1.0"
COLUMNS = ("patient", "node", "x_coord", "y_coord", "tumor", "center", "split")
HOSPITALS = {str(k): f"hospital{k}" for k in range(5)}
UNSEEN = {"hospital1": "val", "hospital2": "test"}
SPLITS = {"0": "train", "1": "id_val"}
TASK = Classification(("normal", "tumor"))


def load(
    root: str | Path,
    size: int = 96,
    normalise: str = "imagenet",
    unseen: str = "domains",
    augment: str | tuple[Any, ...] = (),
) -> Collection:
    """uint8 N×3×size×size, from `camelyon17_v1.0/metadata.csv` and `patches/`.

    normalise   imagenet, as WILDS does, or none ([0, 1])
    unseen      domains | pooled: see `wilds.domains`; here it changes names only
    """
    place = folder(root, "camelyon17", VERSION)
    prepare = normalisation(normalise)
    drawn = augmentation(augment)
    found = domains(
        place, metadata(place), tuple(HOSPITALS.values()), unseen,
        partial(stored, size=size, channels=3, data=place),
    )  # fmt: skip
    return Collection("camelyon17", found, TASK, prepare, drawn, protocol=protocol("WILDS", unseen))


def metadata(place: Path) -> Rows:
    path = place / "metadata.csv"
    columns = table(path, COLUMNS)
    hospital = values(path, columns, "center", HOSPITALS)
    inner = values(path, columns, "split", SPLITS)
    split = [UNSEEN.get(h, s) for h, s in zip(hospital, inner, strict=True)]
    y = torch.tensor(values(path, columns, "tumor", {"0": 0, "1": 1}))
    slides = zip(columns["patient"], columns["node"], strict=True)
    names = [f"patient_{patient.zfill(3)}_node_{node}" for patient, node in slides]
    corners = zip(names, columns["x_coord"], columns["y_coord"], strict=True)
    files = [f"patches/{name}/patch_{name}_x_{x}_y_{y}.png" for name, x, y in corners]
    return Rows(files, y, hospital, split)


SPEC = DataSpec(
    name="camelyon17",
    title="Camelyon17 (WILDS)",
    summary="patches of lymph nodes from five hospitals, half of them with tumour in the middle",
    size="455,954 patches 3×96×96, 2 classes; train 302,436, held out 33,560, validation 34,904,"
    " test 85,054",
    licence="CC0 (Bándi et al., 2018)",
    source="https://wilds.stanford.edu/datasets/#camelyon17",
    layout="<root>/camelyon17_v1.0/metadata.csv and patches/, or that folder itself",
    protocols=tuple(protocol("WILDS", way) for way in WAYS),
    embedded=False,
    open=load,
    options={
        "root": Path,
        "size": int,
        "normalise": str,
        "unseen": str,
        "augment": augmentation,
    },
    notes="hospital1 is for validation and hospital2 for the test.",
    counts={
        "hospital0": 59_436,
        "hospital1": 34_904,
        "hospital2": 85_054,
        "hospital3": 129_838,
        "hospital4": 146_722,
    },
    layouts=("WILDS",),
    lacking=lacking("camelyon17", "metadata.csv", "patches"),
    likeness=likeness("camelyon17", "metadata.csv", "patches"),
)
