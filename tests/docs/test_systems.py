"""Every row of the papers' ablation tables has a composition, and it runs."""

import re
from pathlib import Path

import pytest

from feddg.catalogue import compose
from feddg.engines.stacked import Stacked
from tests import toy

pytestmark = pytest.mark.filterwarnings("ignore:ppdg:UserWarning")  # λ = 0.5 says so, once

PAGE = Path(__file__).parents[2] / "docs" / "systems.md"
ROW = re.compile(r"^\| (?P<row>[^|`]+) \| `(?P<spec>[^`]+)` \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text("utf-8"))
SPECS = list(dict.fromkeys(spec for _, spec in ROWS))
SMALL = {"federation": toy.tiny(), "recipe": toy.steps(toy.RECIPE, epochs=None, steps=1)}


class Watched(Stacked):
    """Remembers what it could not group with its like."""

    odd = 0

    def number(self, asked):
        found = super().number(asked)
        self.odd += found is None
        return found


@pytest.mark.parametrize("spec", SPECS)
def test_every_row_runs_two_rounds(spec):
    """Two, for CSAC and GA only begin in the second; stacked, and without falling back."""
    engine = Watched(stacking=True)
    done = list(toy.history(toy.run(compose(spec), 2, **SMALL), engine))
    assert done[-1].state.model.vector.isfinite().all()
    assert engine.forms
    assert not engine.slow
    assert not engine.odd


@pytest.mark.parametrize(
    ("heading", "count"),
    [
        ("CSAC, Table 4", 5), ("CSAC, Table 5", 8), ("PPDG, Table 6", 6), ("COPA, Table 6", 8),
        ("COPA, Table 7", 2), ("COPA, Figure 2", 5), ("COPA, Figure 3", 5), ("GA, Table 3", 10),
        ("COPA, Figure 4", 4), ("COPA, Tables 4 and 5", 4),
    ],
)  # fmt: skip
def test_no_row_of_the_papers_is_missing(heading, count):
    """As many as the papers have (and PPDG's λ, COPA's geometric operations); all differ."""
    [part] = re.findall(rf"^### {heading}.*?$(.*?)(?=^##)", PAGE.read_text(), re.M | re.S)
    methods = [compose(spec) for _, spec in ROW.findall(part)]
    assert len(methods) == len({repr(m) for m in methods}) == count


def test_a_row_differs_from_the_full_method():
    """An ablation that switched nothing off would be the method itself."""
    whole = {"csac", "copa", "copa-uda"}
    assert {spec for spec in SPECS if compose(spec) in map(compose, whole)} == whole
