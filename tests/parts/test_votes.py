"""Pseudo-labels and agreement weights, worked by hand."""

from math import exp

import pytest
import torch

from feddg.parts.votes import agreement_weights, agreements, pseudo_labels
from feddg.seeds import generator

# Three sites (rows below), four examples, three classes.
A = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.4, 0.3, 0.3], [0.6, 0.3, 0.1]]
B = [[0.6, 0.3, 0.1], [0.1, 0.0, 0.9], [0.4, 0.5, 0.1], [0.1, 0.8, 0.1]]
C = [[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.1, 0.5, 0.4], [0.0, 0.0, 1.0]]
P = torch.tensor([A, B, C])


@pytest.mark.parametrize(
    ("rule", "label", "confidence"),
    [
        # means: x0 (.7 .2 .1), x1 (.2 .433 .367), x2 (.3 .433 .267), x3 (.233 .367 .4)
        ("mean", [0, 1, 1, 2], [0.7, 1.3 / 3, 1.3 / 3, 0.4]),
        # the surest: x0 site A (.8), x1 site B (.9 for class 2), x2 B and C (.5), x3 C (1.)
        ("max", [0, 2, 1, 2], [0.8, 0.9, 0.5, 1.0]),
        # votes: x0 0 0 0; x1 1 2 1; x2 0 1 1; x3 0 1 2, a tie that the greatest mean decides;
        # the surest of those who say it: x0 A .8, x1 A .7, x2 B and C .5, x3 C 1.
        ("most", [0, 1, 1, 2], [0.8, 0.7, 0.5, 1.0]),
    ],
)
def test_reference_of_three_rules(rule, label, confidence):
    found, sure = pseudo_labels(P, rule)
    assert found.tolist() == label
    torch.testing.assert_close(sure, torch.tensor(confidence))


def test_reference_equation_8():
    """Labels by mean: 0 1 1 2; above 0.42 are x0, x1, x2, and x3 is left out.

    A says 0 1 0: 2 of them; B says 0 2 1: 2; C says 0 1 1: 3. ΣZ = 7, so the weights are the
    softmax of (2/7, 2/7, 3/7).
    """
    label, confidence = pseudo_labels(P, "mean")
    agreed = agreements(P, label, confidence > 0.42)
    assert agreed == [2, 2, 3]
    whole = 2 * exp(2 / 7) + exp(3 / 7)
    expected = [exp(2 / 7) / whole, exp(2 / 7) / whole, exp(3 / 7) / whole]
    assert agreement_weights(agreed) == pytest.approx(expected)


def test_a_mean_above_the_threshold_leaves_nobody_to_disagree():
    """n sites whose mean for a class is above 1 − t: each one's is above 1 − n t.

    With t = 0.05 that is above a half for n <= 10, so every sure label is every site's own, and
    Eq. 8 is uniform; over all labels it is not. (Random logits, sharp enough to be sure of some.)
    """
    p = (8 * torch.randn(5, 400, 3, generator=generator("votes"))).softmax(2)
    label, confidence = pseudo_labels(p, "mean")
    sure = confidence > 0.95
    assert 0 < sure.sum() < 400
    assert agreements(p, label, sure) == [int(sure.sum())] * 5
    everywhere = agreements(p, label, torch.ones_like(sure))
    assert len(set(everywhere)) > 1


def test_nobody_agrees_or_one_alone():
    assert agreement_weights([0, 0, 0, 0]) == [0.25] * 4
    low, high = agreement_weights([0, 9])
    assert high / low == pytest.approx(exp(1))  # two weights differ at most by the factor e


def test_one_site_is_its_own_vote():
    for rule in ("mean", "max", "most"):
        label, confidence = pseudo_labels(P[:1], rule)
        assert label.tolist() == P[0].argmax(1).tolist()
        torch.testing.assert_close(confidence, P[0].amax(1))
