"""Every fault of a reply has its word; an honest reply has none."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from feddg.guard import Guard
from feddg.packets import Inbox, Reply
from feddg.weights import Weights

START = Weights.of(nn.Linear(3, 2))
INBOX = Inbox(round=0, model=START)
HONEST = Reply(site="a", model=replace(START, vector=START.vector + 0.1), weight=4.0)


def fault(declared=(), **changes):
    return Guard().fault(replace(HONEST, **changes), INBOX, frozenset(declared), "a")


def with_vector(vector):
    return replace(START, vector=vector)


def test_an_honest_reply_passes():
    assert fault() is None
    notes = {"x": torch.ones(2), "y": {"z": 1.0, "n": torch.tensor([1])}}
    assert fault({"x", "y"}, notes=notes) is None


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite(bad):
    vector = START.vector.clone()
    vector[-1] = bad
    assert "not finite" in fault(model=with_vector(vector))


def test_another_model():
    assert "other names or shapes" in fault(model=Weights.of(nn.Linear(2, 3)))
    assert "float64" in fault(model=with_vector(START.vector.double()))
    assert "(7,)" in fault(model=with_vector(START.vector[:-1]))


def test_an_update_far_beyond_training():
    """||w|| = 2 in 8 equal numbers; a bound of 10 allows a step of 10 (1 + 2) = 30, and no more."""
    inbox = replace(INBOX, model=with_vector(torch.full((8,), 0.5**0.5)))
    guard = Guard(largest=10.0)
    for length, refused in ((29.9, False), (30.1, True)):
        step = torch.full((8,), length / 8**0.5)
        reply = replace(HONEST, model=with_vector(inbox.model.vector + step))
        assert bool(guard.fault(reply, inbox, frozenset(), "a")) == refused


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_weight(weight):
    assert fault(weight=weight) == f"its weight is {weight}"


def test_no_steps():
    assert fault(steps=0) == "it made 0 steps"


def test_notes_that_were_not_declared_or_are_not_finite():
    assert fault(notes={"x": 1.0}) == "it sent the undeclared note 'x'"
    bad = {"x": {"deep": torch.tensor([0.0, float("nan")])}}
    assert fault({"x"}, notes=bad) == "its note 'x/deep' is not finite"
    assert fault({"x"}, notes={"x": float("inf")}) == "its note 'x#' is not finite"


def test_a_reply_that_speaks_for_another_site():
    assert fault(site="b") == "it speaks for another site, 'b'"


def test_buffers_are_bounded_like_parameters():
    """||running var of 2 ones|| = sqrt 2, the mean is 0: a bound of 10 allows 10 (1 + sqrt 2)."""
    start = Weights.of(nn.BatchNorm1d(2))
    inbox, guard = Inbox(round=0, model=start), Guard(largest=10.0)
    at = start.vector.numel() - 1  # an element of a buffer: they come last
    for far, refused in ((24.1, False), (24.2, True)):
        vector = start.vector.clone()
        vector[at] += far
        found = guard.fault(
            Reply(site="a", model=replace(start, vector=vector)), inbox, frozenset(), "a"
        )
        assert (found is not None and "buffers is too large" in found) == refused
