"""What data there are and how to open them by name, by path and with options given as text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from feddg.data import image_list
from feddg.data.domain import Collection
from feddg.data.places import home
from feddg.data.sets import (
    camelyon17,
    digit_five,
    digits_dg,
    domainnet,
    embedded,
    fmow,
    office_caltech10,
    office_caltech_home,
    office_home,
    own,
    pacs,
    poverty,
    terra_incognita,
    vlcs,
)
from feddg.data.spec import DataSpec
from feddg.errors import ConfigError, DataError, unknown

SPECS = (
    embedded.ROTATED_MNIST,
    embedded.HEART_DISEASE,
    pacs.SPEC,
    vlcs.SPEC,
    office_home.SPEC,
    office_caltech10.SPEC,
    office_caltech_home.SPEC,
    terra_incognita.SPEC,
    domainnet.SPEC,
    digits_dg.SPEC,
    digit_five.SPEC,
    camelyon17.SPEC,
    poverty.SPEC,
    fmow.SPEC,
    own.FOLDER,
    own.IMAGE_LIST,
    own.CSV,
)


def catalogue() -> dict[str, DataSpec]:
    """All data sets that have a name: the embedded ones first, the user's own last."""
    return {spec.name: spec for spec in SPECS}


def open_collection(name_or_path: str, *, target: str | None = None, **options: str) -> Collection:
    """A data set of the catalogue, or a folder: of CSVs, or of images by domain and class.

    Where columns are scaled by the sources' sums (heart-disease, csv), the sources are all
    domains but `target`. Without a target they are all: none can then be held out.
    """
    spec, values = resolve(name_or_path, options)
    if spec.targeted:
        values["target"] = target
    return spec.open(**values)


def resolve(name_or_path: str, options: Mapping[str, str]) -> tuple[DataSpec, dict[str, Any]]:
    """Which entry is meant, and its options as values, `root` among them for a path."""
    known = catalogue()
    path = Path(name_or_path).expanduser()
    spec = known.get(name_or_path)
    if spec and spec.yours and "root" not in options and path.is_dir():
        spec = None  # somebody's own folder, which happens to be called "csv" or "folder"
    if spec:
        values = spec.parse(options)
        if not spec.embedded and "root" not in values:
            values["root"] = path if path.is_dir() else found_root(spec)
        return spec, values
    if path.is_dir() or image_list.is_list(path):
        spec = recognised(path)
        return spec, {**spec.parse(options), "root": path}
    if path.exists():
        raise DataError(
            f"{path} is a file; name the folder, with one CSV per site or with images, or a CSV"
            " with the columns path,label,domain"
        )
    if len(path.parts) > 1:
        raise DataError(f"there is no folder {path}; give an existing one or: {', '.join(known)}")
    raise unknown("data set", name_or_path, known)


def recognised(path: Path) -> DataSpec:
    """The known set whose layout a folder has, or else what kind of the user's own data it is."""
    if image_list.listed_in(path):
        return own.IMAGE_LIST
    tables = own.CSV if any(path.glob("*.csv")) else own.FOLDER
    return next((spec for spec in SPECS if spec.likeness(path) == 1), tables)


def place(spec: DataSpec) -> Path | None:
    """Where a set lies by its name, if it does."""
    if (home() / spec.name).is_dir():
        return home() / spec.name
    if spec.made_of and all((home() / part).is_dir() for part in spec.made_of):
        return home()
    return None


def found_root(spec: DataSpec) -> Path:
    if spec.yours:
        raise ConfigError(f"data set {spec.name} needs root=, a folder with {spec.layout}")
    found = place(spec)
    if found is None:
        wanted = " and ".join(str(home() / part) for part in spec.made_of)
        raise DataError(
            f"data set {spec.name} was looked for in {home() / spec.name}"
            + (f", and in {wanted}," if wanted else "")
            + f" and is not there; get it from {spec.source}, or by `feddg data get {spec.name}`,"
            " and name its folder by root= or the folder above it by FEDDG_DATA"
        )
    return found
