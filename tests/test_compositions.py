"""Any two methods work together or say in a sentence why not."""

import re

import pytest

from feddg.catalogue import ENTRIES, compose
from feddg.errors import ConfigError, FeddgError
from tests import toy

NAMES = [e.name for e in ENTRIES]
EVERY = [f"{a}+{b}" for a in NAMES for b in NAMES if a != b]
ONCE_WRONG = ["fediir+copa", "copa+ind-average", "copa+ind-ensemble", "csac+harmofl", "rsc+fedadg"]
SPECS = sorted({*EVERY[::7], *ONCE_WRONG})  # for time; 7 and the 30 pairs a name begins are coprime
SMALL = {"federation": toy.tiny(), "recipe": toy.steps(toy.RECIPE, epochs=None, steps=1)}


def outcome(spec: str) -> str:
    """Of two rounds, for some methods only begin in the second."""
    try:
        method = compose(spec)
    except ConfigError:
        return "refused"
    try:
        toy.final(method, 2, **SMALL)
    except FeddgError as error:
        return str(error)
    return "ran"


def raw(text: str) -> bool:
    """Whether a site's failure has the name of an exception in it: `RuntimeError: ...`."""
    return re.search(r"\b[A-Z]\w*(Error|Exception)\b", text) is not None


def test_a_pair_runs_or_is_refused():
    found = {spec: outcome(spec) for spec in SPECS}
    assert not {k: v for k, v in found.items() if raw(v)}
    assert {"ran", "refused"} <= set(found.values())


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("fediir+copa", "FedIIR and COPA cannot be combined: both decide what becomes of"),
        ("copa+ind-average", "COPA and IndependentAverage cannot be combined: both decide from"),
        ("copa+ind-ensemble", "COPA and IndependentEnsemble cannot be combined: both decide from"),
        ("csac(alignment='logits')+copa", "one classifier, but COPA keeps one per site"),
        ("csac:official+fedprox+copa", "one classifier, but COPA keeps one per site"),
    ],
)
def test_what_copa_cannot_do(spec, why):
    with pytest.raises(ConfigError, match=why):
        compose(spec)


def test_csac_around_harmofl_calibrates_the_bare_network():
    done = toy.final(compose("csac+harmofl"), 2, **SMALL)
    assert all(r.notes["csac"][0] > 0 for r in done.replies)  # of the fused side
