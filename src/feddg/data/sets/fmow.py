"""FMoW-WILDS: what a building or a piece of land is for, from satellite images of 2002 to 2017.

Domains are years: 2002-2012 train (with images of theirs held out), 2013-2015 are for validation,
2016-2017 for the test. Groups are five regions of the world: the worst one is looked at.
"""

from datetime import UTC, datetime
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
from feddg.errors import DataError
from feddg.tasks import Classification

VERSION = "1.1"
COLUMNS = ("split", "category", "country_code", "timestamp")
SPLITS = {"train": "train", "val": "id_val", "test": "id_test", "seq": ""}
YEARS = tuple(map(str, range(2002, 2018)))
VALIDATION, TEST = "2013", "2016"  # the first years that no training sees, that are judged
REGIONS = ("Africa", "Americas", "Asia", "Europe", "Oceania")
OTHER = -1  # a country in none of them; it is in no group

NAMES = """
    airport airport_hangar airport_terminal amusement_park aquaculture archaeological_site barn
    border_checkpoint burial_site car_dealership construction_site crop_field dam debris_or_rubble
    educational_institution electric_substation factory_or_powerplant fire_station flooded_road
    fountain gas_station golf_course ground_transportation_station helipad hospital
    impoverished_settlement interchange lake_or_pond lighthouse military_facility
    multi-unit_residential nuclear_powerplant office_building oil_or_gas_facility park
    parking_lot_or_garage place_of_worship police_station port prison race_track railway_bridge
    recreational_facility road_bridge runway shipyard shopping_mall single-unit_residential
    smokestack solar_farm space_facility stadium storage_tank surface_mine swimming_pool toll_booth
    tower tunnel_opening waste_disposal water_treatment_facility wind_farm zoo
"""
CATEGORIES = tuple(NAMES.split())
TASK = Classification(CATEGORIES)


def load(
    root: str | Path,
    size: int = 224,
    normalise: str = "imagenet",
    unseen: str = "domains",
    augment: str | tuple[Any, ...] = (),
) -> Collection:
    """uint8 N×3×size×size, from `fmow_v1.1`: two CSVs and `images/rgb_img_<row>.png`.

    normalise   imagenet, as WILDS does, or none ([0, 1])
    unseen      domains | pooled: see `wilds.domains`; the worst region is over pooled years
    """
    place = folder(root, "fmow", VERSION)
    prepare = normalisation(normalise)
    drawn = augmentation(augment)
    found = domains(
        place, metadata(place), YEARS, unseen, partial(stored, size=size, channels=3, data=place)
    )
    return Collection("fmow", found, TASK, prepare, drawn, protocol=protocol("WILDS", unseen))


def metadata(place: Path) -> Rows:
    """Of the unseen years only what was set apart for validation or test is used, as in WILDS."""
    path = place / "rgb_metadata.csv"
    columns = table(path, COLUMNS)
    inner = values(path, columns, "split", SPLITS)
    labels = {name: k for k, name in enumerate(CATEGORIES)}
    y = torch.tensor(values(path, columns, "category", labels))
    year = [_year(path, row, text) for row, text in enumerate(columns["timestamp"], 2)]
    split = [_split(y, s) for y, s in zip(year, inner, strict=True)]
    region = _regions(place / "country_code_mapping.csv")
    groups = []
    for row, code in enumerate(columns["country_code"], 2):
        if not code:
            raise DataError(f"{path}, row {row}: no country_code; fetch it again")
        groups.append(region.get(code, OTHER))
    files = [f"images/rgb_img_{k}.png" for k in range(len(y))]
    return Rows(files, y, year, split, torch.tensor(groups))


def _split(year: str, split: str) -> str:
    if year < VALIDATION:
        return split
    first, wanted = ("test", "id_test") if year >= TEST else ("val", "id_val")
    return first if split == wanted else ""


def _year(path: Path, row: int, text: str) -> str:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise DataError(
            f"{path}, row {row}: timestamp {text!r} is no date; fetch it again"
        ) from None
    year = str((at if at.tzinfo is None else at.astimezone(UTC)).year)
    if year not in YEARS:
        raise DataError(f"{path}, row {row}: {text!r} is not in {YEARS[0]}-{YEARS[-1]}")
    return year


def _regions(path: Path) -> dict[str, int]:
    """Region by three-letter code; WILDS' mapping leaves it empty for a few countries."""
    columns = table(path, ("alpha-3", "region"))
    known = {name: k for k, name in enumerate(REGIONS)} | {"": OTHER, "Other": OTHER}
    return dict(zip(columns["alpha-3"], values(path, columns, "region", known), strict=True))


SPEC = DataSpec(
    name="fmow",
    title="FMoW (WILDS)",
    summary="satellite images of 2002 to 2017 by what is built there, in five regions of the world",
    size="141,696 images 3×224×224, 62 classes, 16 years; train 76,863, held out 11,483 + 11,327,"
    " validation 19,915, test 22,108",
    licence="FMoW Challenge Public License",
    source="https://wilds.stanford.edu/datasets/#fmow",
    layout="<root>/fmow_v1.1/rgb_metadata.csv, country_code_mapping.csv and images/, or that"
    " folder itself",
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
    notes="The `seq` images are left out. Early years lack classes: --allow-missing-classes.",
    layouts=("WILDS",),
    lacking=lacking("fmow", "rgb_metadata.csv", "country_code_mapping.csv"),
    likeness=likeness("fmow", "rgb_metadata.csv", "country_code_mapping.csv"),
)
