"""Reference bounds: rows of a table that are not methods but other federations.

They go through the same experiments, records and report as methods do. What shares data says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bound:
    """A row's name, what it changes of the experiment, and whether data would leave a site."""

    line: str
    changes: Mapping[str, Any]
    shares_data: bool


DEEPALL = Bound("all sources' data pooled in one place", {"pooled": True}, shares_data=True)
ORACLE = Bound(
    "trained on 80% of the target, judged on the rest; columns are scaled by all of the target",
    {"oracle": True},
    shares_data=True,
)
SOURCE_ONLY = Bound("each source alone, without the others; a row each", {}, shares_data=False)
BOUNDS = {"deepall": DEEPALL, "oracle": ORACLE, "source-only": SOURCE_ONLY}

Rows = list[tuple[str, dict[str, Any]]]


def rows(name: str, domains: Sequence[str]) -> Rows:
    """(row, what it changes) for one name on the command line: a bound or a method."""
    if name not in BOUNDS:
        return [(name, {"method": name})]
    if BOUNDS[name] is SOURCE_ONLY:
        return [(f"{d} alone", {"method": "fedavg", "sources": (d,)}) for d in domains]
    shared = " (shares data)" if BOUNDS[name].shares_data else ""
    return [(f"{name}{shared}", {"method": "fedavg", **BOUNDS[name].changes})]
