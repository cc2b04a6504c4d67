"""Office-Caltech-Home: what Office-Caltech10 and Office-Home have in common, in seven domains."""

from dataclasses import replace
from pathlib import Path

from feddg.data.layouts import Benchmark
from feddg.data.listed import Found
from feddg.data.sets import office_caltech10, office_home
from feddg.data.sets.office_caltech10 import ALSO, CLASSES, COUNTS, DOMAINS
from feddg.data.sets.photographs import spec
from feddg.errors import DataError

NAME = "office-caltech-home"
SHARED = ("backpack", "bike", "calculator", "keyboard", "laptop", "monitor", "mouse", "mug")
PARTS = ("office-caltech10", "office-home")

CALTECH = Benchmark(
    name=NAME,
    domains={d: DOMAINS[d] for d in ("amazon", "webcam", "caltech")},
    classes=SHARED,
    also={c: ALSO[c] for c in SHARED if c in ALSO},
    part=True,
    published={
        d: {c: COUNTS[d][CLASSES.index(c)] for c in SHARED} for d in ("amazon", "webcam", "caltech")
    },
)
HOME = Benchmark(name=NAME, domains=office_home.OFFICE_HOME.domains, classes=SHARED, part=True)


def survey(root: Path) -> Found:
    """Both sets below one root, in folders of any name or in the two that have the sets' names."""
    places = [root / part if (root / part).is_dir() else root for part in PARTS]
    if not root.is_dir():
        raise DataError(f"{root} is not a folder; name the one with both {' and '.join(PARTS)}")
    first, second = (b.survey(at) for b, at in zip((CALTECH, HOME), places, strict=True))
    bare = {
        d: replace(listing, splits={}) for d, listing in {**first.domains, **second.domains}.items()
    }
    return Found(
        layout=f"{first.layout} and {second.layout}; the 8 shared classes",
        classes=SHARED,
        domains=bare,
        problems=first.problems + second.problems,
        warnings=first.warnings + second.warnings,
        published=CALTECH.published,
    )


def likeness(root: Path) -> float:
    both = (office_caltech10.OFFICE_CALTECH10, office_home.OFFICE_HOME)
    return min(benchmark.likeness(root) for benchmark in both)


SPEC = replace(
    spec(
        CALTECH,
        survey,
        title="Office-Caltech-Home",
        summary="the 8 classes that Office-Caltech10 and Office-Home share, in seven domains",
        size=", ".join(f"{d} {n}" for d, n in CALTECH.counts.items())
        + ", and what Office-Home has of the same classes",
        licence="those of its two sets",
        source="Office-Caltech10 and Office-Home, see there",
        layout="the folders of both sets",
        layouts=("office-caltech10/ and office-home/, each in one of its own layouts",),
        notes="Which classes the paper took is not published; its code's key office-8 and the"
        " class names leave these eight. No official split; dslr is not part of it.",
    ),
    likeness=likeness,
    made_of=PARTS,
)
