"""Miniatures of WILDS' three folders, written as its archives unpack."""

import csv
from pathlib import Path

import numpy as np
from PIL import Image

SHAPE = (8, 4, 4)  # of PovertyMap's images here


def write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def camelyon17(root: Path, each: int = 5) -> Path:
    """Five hospitals with one slide each; the last patch of a slide is held out."""
    place = root / "camelyon17_v1.0"
    rows: list[list[object]] = []
    for center in range(5):
        patient = f"{20 * center + 4:03d}"
        for k in range(each):
            tumor = k % 2
            held = int(k == each - 1)
            rows.append([len(rows), patient, 4, 32 * k, 64, tumor, center, center, held])
            slide = f"patient_{patient}_node_4"
            path = place / "patches" / slide / f"patch_{slide}_x_{32 * k}_y_64.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGBA", (96, 96), (50 * center, 200 * tumor, k)).save(path)
    header = ["", "patient", "node", "x_coord", "y_coord", "tumor", "slide", "center", "split"]
    write(place / "metadata.csv", header, rows)
    (place / "RELEASE_v1.0.txt").write_text("")
    return place


# country, how many urban and rural villages: three lots of fold A's sources, then val, then test
VILLAGES = {"ghana": (3, 4), "kenya": (4, 2), "togo": (1, 0), "benin": (2, 1), "mali": (1, 3)}


def poverty(root: Path) -> Path:
    place = root / "poverty_v1.1"
    rows: list[list[object]] = []
    (place / "images").mkdir(parents=True)
    for country, counts in VILLAGES.items():
        for area, count in zip(("True", "False"), counts, strict=True):
            for _ in range(count):
                k = len(rows)
                rows.append([1.5, 2.5, k / 4 - 2, country, 2011, area, 0.1, 0.2, 20])
                x = np.full(SHAPE, k + 1 / 3, np.float32)
                np.savez_compressed(place / "images" / f"landsat_poverty_img_{k}.npz", x=x)
    header = ["lat", "lon", "wealthpooled", "country", "year", "urban", "nl_mean", "nl_center"]
    write(place / "dhs_metadata.csv", [*header, "households"], rows)
    return place


# split, category, country, timestamp
VIEWS = [
    ("train", "zoo", "KEN", "2002-05-01T09:00:00Z"),
    ("val", "zoo", "FRA", "2002-06-01T09:00:00Z"),
    ("seq", "zoo", "FRA", "2002-07-01T09:00:00Z"),
    ("test", "airport", "JPN", "2012-12-31T23:30:00Z"),
    ("train", "airport", "XKX", "2012-01-01T00:00:00.5Z"),
    ("train", "barn", "BRA", "2013-01-01T00:00:00Z"),  # an unseen year: used nowhere
    ("val", "barn", "BRA", "2013-01-01T00:00:00Z"),
    ("val", "dam", "FJI", "2015-01-01T00:00:00Z"),
    ("test", "dam", "ATA", "2016-01-01T00:00:00Z"),
    ("test", "barn", "KEN", "2017-01-01T00:00:00Z"),
    ("val", "barn", "KEN", "2017-01-01T00:00:00Z"),  # not for the test: used nowhere
]
CODES = [
    ("Kenya", "KEN", "Africa"), ("France", "FRA", "Europe"), ("Japan", "JPN", "Asia"),
    ("Brazil", "BRA", "Americas"), ("Fiji", "FJI", "Oceania"), ("Antarctica", "ATA", ""),
]  # fmt: skip


def fmow(root: Path) -> Path:
    place = root / "fmow_v1.1"
    (place / "images").mkdir(parents=True)
    for k in range(len(VIEWS)):
        Image.new("RGB", (224, 224), (k, 0, 0)).save(place / "images" / f"rgb_img_{k}.png")
    rows: list[list[object]] = [
        [split, f"{k}.jpg", category, country, when]
        for k, (split, category, country, when) in enumerate(VIEWS)
    ]
    header = ["split", "img_filename", "category", "country_code", "timestamp"]
    write(place / "rgb_metadata.csv", header, rows)
    codes: list[list[object]] = [list(code) for code in CODES]
    write(place / "country_code_mapping.csv", ["name", "alpha-3", "region"], codes)
    return place
