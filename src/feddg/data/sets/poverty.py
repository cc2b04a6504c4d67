"""PovertyMap-WILDS: how wealthy a village is, from eight bands of satellite images.

Domains are 23 countries, urban and rural apart. Of each of five folds some countries train (in
fold A 13, so 26 domains), some are for validation, some for the test. Groups are rural and urban.
"""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from feddg.data.augment import augmentation
from feddg.data.domain import Collection
from feddg.data.floats import DTYPES, stored_floats
from feddg.data.spec import DataSpec
from feddg.data.transforms import Full
from feddg.data.wilds import WAYS, Rows, domains, folder, lacking, likeness, protocol, table, values
from feddg.errors import DataError, unknown
from feddg.tasks import Regression

VERSION = "1.1"
COLUMNS = ("wealthpooled", "country", "urban")
BANDS = ("blue", "green", "red", "swir1", "swir2", "temp1", "nir", "nightlights")
SHAPE = (len(BANDS), 224, 224)
AREAS = ("rural", "urban")  # the numbers of the groups
URBAN = {"True": 1, "1": 1, "1.0": 1, "False": 0, "0": 0, "0.0": 0}
HELD = 2000  # of the source countries, for validation and test in equal parts
SEED = 541_433  # WILDS adds the fold's letter
TASK = Regression(("wealth",))

# The countries in five lots. Fold A is judged on the first and validated on the second, fold B on
# the second and the third, and so round; the other three lots train.
LOTS = (
    ("angola", "cote_d_ivoire", "ethiopia", "mali", "rwanda"),
    ("benin", "burkina_faso", "guinea", "sierra_leone", "tanzania"),
    ("cameroon", "ghana", "malawi", "zimbabwe"),
    ("democratic_republic_of_congo", "mozambique", "nigeria", "togo", "uganda"),
    ("kenya", "lesotho", "senegal", "zambia"),
)
FOLDS = "ABCDE"
COUNTRIES = tuple(sorted(name for lot in LOTS for name in lot))


def load(
    root: str | Path,
    fold: str = "A",
    unseen: str = "domains",
    precision: str = "half",
    augment: str | tuple[Any, ...] = (),
) -> Collection:
    """N×8×224×224, standardised as it comes, from `poverty_v1.1`: a CSV and an .npz per village.

    fold        A … E
    unseen      domains | pooled: see `wilds.domains`; the papers' correlations are pooled
    precision   half | full: of the store (16 or 32 GB); training is in float32
    """
    if fold not in FOLDS or len(fold) != 1:
        raise unknown("fold", fold, FOLDS)
    if precision not in DTYPES:
        raise unknown("precision", precision, DTYPES)
    place = folder(root, "poverty", VERSION)
    drawn = augmentation(augment)
    order = [f"{country}-{area}" for country in COUNTRIES for area in reversed(AREAS)]
    read = partial(stored_floats, shape=SHAPE, precision=precision, data=place)
    found = domains(place, metadata(place, fold), order, unseen, read)
    label = protocol(f"WILDS, fold {fold}", unseen)
    return Collection("poverty", found, TASK, (Full(),), drawn, protocol=label)


def metadata(place: Path, fold: str) -> Rows:
    path = place / "dhs_metadata.csv"
    columns = table(path, COLUMNS)
    country = values(path, columns, "country", {name: name for name in COUNTRIES})
    urban = values(path, columns, "urban", URBAN)
    y = torch.tensor([_wealth(path, k, v) for k, v in enumerate(columns["wealthpooled"], 2)])
    domain = [f"{c}-{AREAS[u]}" for c, u in zip(country, urban, strict=True)]
    files = [f"images/landsat_poverty_img_{k}.npz" for k in range(len(y))]
    return Rows(files, y, domain, _splits(path, country, fold), torch.tensor(urban))


def _splits(path: Path, country: list[str], fold: str) -> list[str]:
    """By country; what is held out of the source countries is drawn as WILDS draws it."""
    k = FOLDS.index(fold)
    lots = {"test": LOTS[k], "val": LOTS[(k + 1) % len(LOTS)]}
    by_country = {name: split for split, lot in lots.items() for name in lot}
    found = [by_country.get(name, "train") for name in country]
    rows = np.array([k for k, split in enumerate(found) if split == "train"])
    if len(rows) <= HELD:
        raise DataError(
            f"{path} has {len(rows)} rows of fold {fold}'s source countries, of which WILDS holds"
            f" out {HELD:,}; it is cut short, fetch it again"
        )
    np.random.default_rng(SEED + ord(fold)).shuffle(rows)  # the official split, not our chance
    for number, row in enumerate(rows[:HELD].tolist()):
        found[row] = "id_val" if number < HELD // 2 else "id_test"
    return found


def _wealth(path: Path, row: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{path}, row {row}: wealthpooled {text!r} is no number; fetch it again")
    return value


SPEC = DataSpec(
    name="poverty",
    title="PovertyMap (WILDS)",
    summary="the wealth of 19,669 African villages from satellite images of eight bands",
    size="19,669 images 8×224×224, a real value each, 23 countries × urban or rural; fold A: train"
    " 9,797, held out 1,000 + 1,000, validation 3,909, test 3,963",
    licence="satellite images: US public domain; survey data: DHS (Yeh et al., 2020)",
    source="https://wilds.stanford.edu/datasets/#povertymap",
    layout="<root>/poverty_v1.1/dhs_metadata.csv and images/, or that folder itself",
    protocols=tuple(protocol(f"WILDS, fold {fold}", way) for fold in FOLDS for way in WAYS),
    embedded=False,
    open=load,
    options={
        "root": Path,
        "fold": str,
        "unseen": str,
        "precision": str,
        "augment": augmentation,
    },
    notes="Scores are Pearson's r, and that of the worse of urban and rural (worst_group); with"
    " unseen=pooled over all test countries at once, as published.",
    layouts=("WILDS",),
    lacking=lacking("poverty", "dhs_metadata.csv", "images"),
    likeness=likeness("poverty", "dhs_metadata.csv", "images"),
)
