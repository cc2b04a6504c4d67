from math import exp, log

import pytest
import torch

from feddg.parts.confusion import Confusion, judged, spread


def judge(slope):
    """The verdict is `slope` times the first feature, where that is positive."""
    return {
        "in": torch.tensor([[1.0, 0.0]]), "in_bias": torch.zeros(1),
        "out": torch.tensor([[slope]]), "out_bias": torch.zeros(1),
    }  # fmt: skip


def test_reference_verdicts():
    """Verdict 2: "source" costs log(1 + e^-2), "target" log(1 + e^2)."""
    z = torch.tensor([[1.0, 5.0]])
    assert judged(judge(2.0), z, True).item() == pytest.approx(log(1 + exp(-2)))
    assert judged(judge(2.0), z, False).item() == pytest.approx(log(1 + exp(2)))


class Seen:
    """What the term reads of a forward pass."""

    def __init__(self, judge, z, rows):
        self.theta, self.taps, self.draw = {"fada": {"a": judge}}, {"z": z}, {"a": rows}


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_each_party_is_trained_by_its_own_part(weight):
    """Verdict 2 z of a positive z. The target's z = 1: −log D = log(1 + e^-2), of slope −2 s(−2).

    The judge: at the source's z = 3 the slope of its last weight is −3 s(−6), at the target's
    s(2), whatever the weight.
    """
    z = torch.tensor([[1.0, 5.0]], requires_grad=True)
    mine = {k: v.requires_grad_() for k, v in judge(2.0).items()}
    term = Confusion({"a": mine}, {"a": torch.tensor([[0.0, 0.0], [3.0, 0.0]])}, "z", weight)
    loss = term.loss(Seen(mine, z, torch.tensor([1])))  # type: ignore[arg-type]
    slope, last = torch.autograd.grad(loss, [z, mine["out"]])
    s = [1 / (1 + exp(-v)) for v in (-2, -6, 2)]
    torch.testing.assert_close(slope, torch.tensor([[-2 * weight * s[0], 0.0]]))
    assert last.item() == pytest.approx(-3 * s[1] + s[2])


def test_reference_spread():
    """0, 2, 10, 12 in two groups: each has 1 + 1 = 2 about its mean; all have 36 + 16 + 16 + 36."""
    z = torch.tensor([[0.0], [2.0], [10.0], [12.0]])
    assert spread(z, 2) == pytest.approx(4 / 104)
    assert spread(7 * z + 3, 2) == pytest.approx(4 / 104)
    assert spread(z, 1) == pytest.approx(1)
    assert spread(z, 4) == pytest.approx(0)
    assert spread(z, 9) == pytest.approx(0)
    assert spread(torch.full((4, 1), 3.0), 2) == 0


def test_features_that_hardly_differ_have_a_spread_of_their_own():
    z = torch.tensor([[0.0], [2.0], [10.0], [12.0]]).repeat(20, 3)
    assert spread(100 + z / 256, 2) == pytest.approx(4 / 104)
