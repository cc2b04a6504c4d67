"""Batch norm by other kernels: when they are asked, and that what they answer is used.

The kernels themselves need a GPU: scripts/equivalence.py compares them with torch's there. Here
something that computes the same in plain torch stands in for them.
"""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from feddg.engines import fast_norms as module
from feddg.engines.fast_norms import Asked, fast_norms, pieces


def forward(x, weight, bias, mean, var, momentum, eps):
    rows = x.movedim(1, -1).flatten(0, -2)
    middle, scatter = rows.mean(0), rows.var(0, correction=0)
    mean.lerp_(middle, momentum)
    var.lerp_(rows.var(0), momentum)
    kept = torch.cat([middle, (scatter + eps).rsqrt()])
    shaped = [v[None, :, None, None] for v in (middle, (scatter + eps).rsqrt(), weight, bias)]
    return (x - shaped[0]) * shaped[1] * shaped[2] + shaped[3], kept


def backward(slope, x, weight, kept):
    channels = len(weight)
    middle, narrow = (v[None, :, None, None] for v in kept.split(channels))
    n = x.numel() / channels
    unit = (x - middle) * narrow
    one, two = slope.sum((0, 2, 3)), (slope * unit).sum((0, 2, 3))
    mean, tilt = (v[None, :, None, None] / n for v in (one, two))
    return (slope - mean - unit * tilt) * narrow * weight[None, :, None, None], two, one


@pytest.fixture
def kernels(monkeypatch):
    stand_in = SimpleNamespace(forward=forward, backward=backward)
    monkeypatch.setattr(module, "kernels", lambda: stand_in)
    monkeypatch.setattr(Asked, "fits", property(lambda asked: asked.training))


def case():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(4, 3, 5, 6, generator=rng).mul(2).add(1)
    weight, bias = torch.randn(3, generator=rng), torch.randn(3, generator=rng)
    return x, weight, bias, torch.zeros(3), torch.ones(3)


def result(training=True):
    x, weight, bias, mean, var = case()
    leaves = [v.requires_grad_() for v in (x, weight, bias)]
    y = F.batch_norm(x, mean, var, weight, bias, training, 0.2, 1e-4)
    return [y, mean, var, *torch.autograd.grad(y.sin().sum(), leaves)]


def test_answers_and_slopes_are_batch_norms(kernels):
    with fast_norms():
        ours = result()
    assert type(ours[0].grad_fn).__name__ == "BatchNormBackward"
    for mine, theirs in zip(ours, result(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_judging_stays_with_torch(kernels):
    with fast_norms():
        assert type(result(training=False)[0].grad_fn).__name__ != "BatchNormBackward"


def test_on_the_cpu_nothing_fits():
    x, weight, bias, mean, var = case()
    assert not Asked(x, mean, var, weight, bias, training=True).fits
    with fast_norms():
        assert result()[0].equal(result()[0])


@pytest.mark.parametrize("rows", [1, 63, 784, 50_176, 802_816])
@pytest.mark.parametrize("channels", [3, 16, 64, 130, 512])
def test_pieces_cover_every_row_once(rows, channels):
    tall, wide, count, steps = pieces(rows, channels)
    assert (count - 1) * steps * tall < rows <= count * steps * tall
    assert count <= 256
    assert wide in (16, 32, 64)
    assert tall * wide == module.TILE
