"""KD3A's vote, focus and distillation, worked by hand."""

from math import log

import pytest
import torch

from feddg.parts.alignment import Rows
from feddg.parts.knowledge import (
    DOUBTFUL,
    Distilled,
    consensus_focus,
    focused,
    knowledge_vote,
    quality,
)
from feddg.seeds import generator

# Three sites (rows below), three examples, two classes.
A = [[0.95, 0.05], [0.95, 0.05], [0.6, 0.4]]
B = [[0.92, 0.08], [0.04, 0.96], [0.3, 0.7]]
C = [[0.1, 0.9], [0.09, 0.91], [0.8, 0.2]]
P = torch.tensor([A, B, C], dtype=torch.float64)


def test_reference_knowledge_vote():
    """Gate 0.9. x0: A and B are sure (C's 0.9 is not above), both say 0: their mean, support 2.

    x1: all are sure; the sums are 1.08 and 1.92, so the class is 1: B and C, support 2.
    x2: nobody is sure: the mean of all, support 0.001.
    """
    knowledge, support = knowledge_vote(P, 0.9)
    expected = [[0.935, 0.065], [0.065, 0.935], [1.7 / 3, 1.3 / 3]]
    torch.testing.assert_close(knowledge, torch.tensor(expected, dtype=torch.float64))
    assert support.tolist() == [2, 2, DOUBTFUL]


def test_reference_consensus_focus():
    """Q(all) = 2 · .935 + 2 · .935 + .001 · 1.7/3.

    Without A: x0 B alone, .92; x1 B and C, 2 · .935; x2 mean (.55, .45), .001 · .55.
    Without B: x0 A alone, .95; x1 A and C are sure, sums 1.04 > .96: A alone, .95; x2 (.7, .3).
    Without C: x0 A and B, 2 · .935; x1 sums .99 and 1.01: B alone, .96; x2 (.45, .55).
    """
    whole = 3.74 + 0.0017 / 3
    without = [0.92 + 1.87 + 0.00055, 0.95 + 0.95 + 0.0007, 1.87 + 0.96 + 0.00055]
    assert quality(P, 0.9) == pytest.approx(whole)
    assert consensus_focus(P, 0.9) == pytest.approx([whole - q for q in without])


def test_a_site_that_only_confuses_has_no_say():
    wrong = torch.stack([P[0, :2], P[0, :2], P[0, :2].flip(1)])
    focus = consensus_focus(wrong, 0.9)
    assert focus[2] == 0
    assert focused([10, 20, 30], focus) == pytest.approx([1 / 3, 2 / 3, 0])


def test_shares_by_size_where_no_site_adds_anything():
    assert focused([1, 3], [0.0, 0.0]) == [0.25, 0.75]
    assert consensus_focus(P[:1], 0.9) == [quality(P[:1], 0.9)]


class Seen:
    """What the term reads of a forward pass."""

    def __init__(self, logits, columns, draw):
        self.logits, self.columns, self.draw = logits, columns, draw


def test_reference_distillation():
    """Knowledge (.9, .1) and (.2, .8), support 2 and .001; q is uniform: CE = log 2 for each."""
    rows = Rows(
        knowledge=torch.tensor([[0.9, 0.1], [0.2, 0.8]]), support=torch.tensor([2.0, 0.001])
    )
    term = Distilled(rows, mixup=False)
    cost = term.loss(Seen(torch.zeros(2, 2), rows, {}))  # type: ignore[arg-type]
    assert cost.item() == pytest.approx(2.001 / 2 * log(2))


def test_images_and_knowledge_are_mixed_alike():
    x = torch.arange(6.0).view(3, 2)
    term, draw = Distilled(Rows()), Distilled(Rows()).draw(generator("mix"), 3)
    share, order = draw["share"], draw["order"]
    assert 0 < share < 1
    torch.testing.assert_close(term.apply(x, draw), share * x + (1 - share) * x[order])
    assert torch.equal(Distilled(Rows(), mixup=False).apply(x, {}), x)
