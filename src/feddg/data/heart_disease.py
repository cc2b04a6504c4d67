"""Heart Disease (UCI): 920 patients of four hospitals, of whom one hospital stays unseen.

Who is ill: cleveland 139 of 303, hungarian 106 of 294, switzerland 115 of 123, va 149 of 200.
"""

import csv
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import torch

from feddg.data.domain import Collection, Domain, Examples
from feddg.data.scaling import PROTOCOLS, scaled, with_indicators
from feddg.errors import DataError
from feddg.tasks import Classification

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
FEATURES = (
    *("age", "sex", "chest_pain", "blood_pressure", "cholesterol", "fasting_sugar", "ecg"),
    *("max_heart_rate", "angina", "st_depression", "st_slope", "vessels", "thal"),
)
COLUMNS = (*FEATURES, *(f"{name}_missing" for name in FEATURES))
NEVER_ZERO = ("blood_pressure", "cholesterol")  # a 0 was written for "not measured"
MISSING = ("?", "NaN", "")
TASK = Classification(("healthy", "disease"), metric="balanced_accuracy")
NOTES = (
    "Switzerland has 8 healthy patients among 123: its balanced accuracy moves by 6 points"
    " with each of them, so show it with a bootstrap interval."
)


def load(
    scaling: str = "sources", target: str | None = None, sources: Sequence[str] | None = None
) -> Collection:
    """Four domains of 26 columns: 13 raw values (NaN where missing) and 13 indicators.

    scaling   "sources": fill and scale by the pooled sums of `sources`, by default of all
              hospitals but `target`; without a target of all four, and then none of them can
              be held out
              "site": every hospital by its own sums; the target's unlabelled values take part
              "none": raw values; gaps get the mean by the sources' sums
    """
    domains = tuple(Domain(name, _read(name)) for name in HOSPITALS)
    domains, prepare, seen = scaled(domains, scaling, target, sources, indicators=True)
    return Collection(
        "heart-disease", domains, TASK, prepare, protocol=PROTOCOLS[scaling], columns=FEATURES,
        scaled_on=seen,
    )  # fmt: skip


@cache
def _read(hospital: str) -> Examples:
    name = f"processed.{hospital}.data"
    text = (files("feddg.data") / "files" / "heart-disease" / name).read_text("ascii")
    return parse(text, name)


def parse(text: str, name: str) -> Examples:
    """UCI's processed format: 13 features and the diagnosis, of which > 0 is disease."""
    rows = [row for row in csv.reader(text.splitlines()) if row]
    for number, row in enumerate(rows, 1):
        if len(row) != len(FEATURES) + 1:
            raise DataError(f"{name}, row {number}: {len(row)} columns where 14 are expected")
    x = torch.tensor([[_number(cell) for cell in row[:-1]] for row in rows])
    for column in NEVER_ZERO:
        values = x[:, FEATURES.index(column)]
        values[values == 0] = torch.nan
    y = torch.tensor([int(float(row[-1]) > 0) for row in rows])
    return Examples(with_indicators(x), y)


def _number(cell: str) -> float:
    return float("nan") if cell.strip() in MISSING else float(cell)
