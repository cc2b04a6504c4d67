from math import exp, log

import pytest
import torch

from feddg.parts.confusion import judged, spread


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


def test_reference_spread():
    """0, 2, 10, 12 in two groups: each has 1 + 1 = 2 about its mean; all have 36 + 16 + 16 + 36."""
    z = torch.tensor([[0.0], [2.0], [10.0], [12.0]])
    assert spread(z, 2) == pytest.approx(4 / 104)
    assert spread(7 * z + 3, 2) == pytest.approx(4 / 104)
    assert spread(z, 1) == pytest.approx(1)
    assert spread(z, 4) == pytest.approx(0)
    assert spread(z, 9) == pytest.approx(0)
