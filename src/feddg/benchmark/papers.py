"""Every table and figure of the papers, as experiments/<paper>/<item>.toml says.

An item is one bench: one data set and one network. A table over two data sets is two items, whose
names begin alike (table4-pacs, table4-vlcs).
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal
from warnings import catch_warnings

import feddg
from feddg.benchmark.bounds import BOUNDS
from feddg.benchmark.config import made
from feddg.benchmark.protocols import protocol
from feddg.benchmark.published import PaperRow, paper_rows
from feddg.benchmark.selection import rule
from feddg.catalogue import compose
from feddg.data.adaptation import adapted
from feddg.errors import ConfigError, unknown
from feddg.recipe import Recipe

PAPERS = ("csac", "csac-v1", "ppdg", "copa", "ga")
KINDS = Literal["table", "figure", "cost", "significance"]


@dataclass(frozen=True, kw_only=True)
class ItemRow:
    """A method that we run, under the name that the paper prints.

    sources    the sites, where they are not all the other domains
    pooled     their data in one place, as of a centralised method
    targets    the domains to hold out, where they are not the item's
    local      not the merged model, but this site's own after the first round (from the curves)
    stand_in   the method on the embedded digits, where `method` names layers of another network
    """

    label: str
    variant: str = ""
    method: str
    sources: tuple[str, ...] = ()
    pooled: bool = False
    targets: tuple[str, ...] = ()
    local: str = ""
    stand_in: str = ""

    def __post_init__(self) -> None:
        with catch_warnings(action="ignore"):  # what a method warns of is said where it runs
            for spec in (self.method, self.stand_in or self.method):
                if spec not in BOUNDS:
                    compose(spec)

    @property
    def key(self) -> tuple[str, str]:
        return self.label, self.variant

    @property
    def name(self) -> str:
        return f"{self.label} {self.variant}".rstrip()


@dataclass(frozen=True, kw_only=True)
class Column:
    """A score that is not one target's: over all parts of a kind, or their worst group."""

    name: str
    part: Literal["test", "validation"]
    worst: bool = False


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Which rows of published.csv are this item's."""

    item: str
    backbone: str = ""


@dataclass(frozen=True, kw_only=True)
class Item:
    """`unstated`: what the paper leaves open, and what is taken; `chart`: the figure it feeds."""

    title: str
    paper: str
    item: str
    kind: KINDS = "table"
    chart: str = ""
    data: str
    data_options: Mapping[str, str] = field(default_factory=dict)
    task: str = "dg"
    model: str
    weights: str = ""
    rounds: int
    share: float
    selection: str
    participation: float | int = 1.0
    targets: tuple[str, ...] = ()
    seeds: int
    diagnostics: str | None = None
    allow_missing_classes: bool = False
    recipe: Recipe
    rows: tuple[ItemRow, ...]
    columns: tuple[Column, ...] = ()
    numbers: Numbers | None = None
    against: str = ""
    unstated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        adapted(self.task)
        rule(self.selection)
        if not self.rows:
            raise ConfigError(f"{self.name} has no row to run")
        if not self.targets and not self.official:
            raise ConfigError(f"{self.name} names no targets, and {self.data} has none of its own")
        if (self.kind == "significance") != bool(self.against):
            raise ConfigError(f"{self.name}: 'against' goes with the kind significance, and only")

    @property
    def name(self) -> str:
        return f"{self.paper} {self.item}"

    @property
    def official(self) -> bool:
        return protocol(self.data).official

    def published(self) -> tuple[PaperRow, ...]:
        """What the paper prints: rows that we run and rows that only it has."""
        of = self.numbers
        return paper_rows(self.paper, of.item, self.data, of.backbone) if of else ()


@cache
def items() -> tuple[Item, ...]:
    """All of them, paper by paper."""
    found = []
    for paper in PAPERS:
        for path in sorted((home() / paper).iterdir(), key=lambda p: natural(p.name)):
            if path.name.endswith(".toml"):
                found.append(read(path.read_text("utf-8"), f"{paper}/{path.name}"))
    return tuple(found)


def home() -> Traversable:
    """In an installed package beside this file; in a checkout, editable or not, at its top."""
    package = files("feddg.benchmark") / "experiments"
    return package if package.is_dir() else Path(feddg.__file__).parents[2] / "experiments"


def read(text: str, where: str) -> Item:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not TOML: {error}") from None
    return made(Item, values, where)


def natural(name: str) -> tuple[bool, int, str]:
    """Tables before figures, table2 before table10."""
    digits = re.search(r"\d+", name)
    return not name.startswith("table"), int(digits[0]) if digits else 0, name


def find(paper: str, item: str | None = None) -> tuple[Item, ...]:
    """`csac table2` is both its parts, `csac table2-alexnet` one; `csac` alone is all of CSAC."""
    if paper not in PAPERS:
        raise unknown("paper", paper, PAPERS)
    of = [i for i in items() if i.paper == paper]
    if item is None:
        return tuple(of)
    exact = [i for i in of if i.item == item]
    found = exact or [i for i in of if i.item.startswith(f"{item}-")]
    if not found:
        raise unknown(f"table or figure of {paper}", item, names(of))
    return tuple(found)


def names(of: Sequence[Item]) -> list[str]:
    return list(dict.fromkeys(n for i in of for n in (i.item.partition("-")[0], i.item)))
