from dataclasses import replace

import pytest

from feddg.catalogue import compose
from feddg.errors import ConfigError
from tests import toy
from tests.methods import quadratic

STEP = replace(quadratic.RECIPE, steps=1)


def test_reference_by_hand():
    """One halving step a round, t = 8 and -4 in turn: 0 -> 4 -> (4 - 4) / 2 = 0 -> 4 -> 0."""
    done = quadratic.history("sequential", 4, recipe=STEP)
    assert quadratic.weights(done) == [4.0, 0.0, 4.0, 0.0]
    assert [[r.site for r in k.replies] for k in done] == [["a"], ["b"], ["a"], ["b"]]


def test_reference_one_visit_each_by_hand():
    """stay = 2: 0 -> 4 -> 6 at the first, (6 - 4) / 2 = 1 -> -3/2 at the second."""
    done = quadratic.history("sequential(stay=2)", 4, recipe=STEP)
    assert quadratic.weights(done) == [4.0, 6.0, 1.0, -1.5]


def test_the_next_site_starts_where_the_last_one_ended():
    for done in toy.history(toy.run(compose("sequential"), 3)):
        [reply] = done.replies
        assert (done.state.model.vector - reply.model.vector).abs().max() < 1e-6


def test_participation_plays_no_part():
    done = quadratic.history("sequential", 4, recipe=STEP, participation=1)
    assert quadratic.weights(done) == [4.0, 0.0, 4.0, 0.0]


def test_wrappers_pass_the_turn_on():
    done = quadratic.history("fedprox+sequential", 2)
    assert [[r.site for r in k.replies] for k in done] == [["a"], ["b"]]


def test_a_late_site_joins_the_circle():
    run = quadratic.run("sequential", 4)
    a, b = run.sites
    late = replace(run.federation, sites=(a, replace(b, joins=2)))
    done = list(toy.history(replace(run, federation=late)))
    assert [k.replies[0].site for k in done] == ["a", "a", "a", "b"]


def test_stay_must_be_a_round():
    with pytest.raises(ConfigError, match="at least 1 round"):
        compose("sequential(stay=0)")
