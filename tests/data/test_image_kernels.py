"""A GPU's programs for augmentations beside the plain arithmetic; and when they are taken."""

from types import SimpleNamespace

import pytest
import torch

from feddg.data import colour, crop, levels
from feddg.data.colour import Grayscale, Jitter
from feddg.data.crop import Crop
from feddg.seeds import generator

PLANS = (Crop(0.3), Jitter(), Grayscale(0.5))


def pictures(n=6, channels=3):
    x = torch.randint(256, (n, channels, 37, 61), generator=generator("x")).to(torch.uint8)
    x[0, :, :5] = x[0, :1, :5]
    return x


@pytest.mark.gpu
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("seed", range(3))
def test_on_a_gpu_they_are_the_plain_arithmetic(plan, seed):
    """To one level, in a few pixels: .5 is rounded up."""
    x = pictures()
    draw = plan.draw(generator("d", seed), len(x))
    mapped = torch.func.vmap(plan.apply)(x[None], {k: v[None] for k, v in draw.items()})[0]
    assert levels.fused(x.cuda(), 3) is not None
    found = plan.apply(x.cuda(), {k: v.cuda() for k, v in draw.items()}).cpu()
    assert (found.int() - mapped.int()).abs().max() <= 1
    assert (found != mapped).float().mean() < 0.01
    assert (found != x).any()


@pytest.mark.gpu
@pytest.mark.parametrize("plan", [Crop(1.0, 1.0), Jitter(0.0, 0.0, 0.0, 0.0), Grayscale(0.0)])
def test_on_a_gpu_strength_0_is_the_identity(plan):
    x = pictures().cuda()
    draw = {k: v.cuda() for k, v in plan.draw(generator("d"), len(x)).items()}
    assert torch.equal(plan.apply(x, draw), x)


@pytest.mark.parametrize(
    ("plan", "name", "where"),
    [(PLANS[0], "crop", crop), (PLANS[1], "jitter", colour), (PLANS[2], "grayscale", colour)],
)
def test_each_takes_its_own_with_its_draws(plan, name, where, monkeypatch):
    def program(x, *given):
        return x, given

    monkeypatch.setattr(where, "fused", lambda *_: SimpleNamespace(**{name: program}))
    x = pictures()
    draw = plan.draw(generator("d"), len(x))
    value, given = plan.apply(x, draw)
    assert value is x
    assert [id(v) for v in given] == [id(v) for v in draw.values()]


def test_only_a_gpus_whole_contiguous_images_have_them(monkeypatch):
    monkeypatch.setattr(levels, "kernels", lambda: "programs")
    assert levels.fused(pictures()) is None

    class OnGpu(torch.Tensor):
        is_cuda = True

    x = pictures().as_subclass(OnGpu)
    assert levels.fused(x) == levels.fused(x, 3) == "programs"
    assert levels.fused(x, 1) is None
    assert levels.fused(x.float()) is None
    assert levels.fused(x.transpose(2, 3)) is None


def test_not_under_vmap(monkeypatch):
    monkeypatch.setattr(levels, "kernels", lambda: "programs")
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    assert levels.fused(pictures()) == "programs"

    def seen(x):
        assert levels.fused(x) is None
        return x

    torch.func.vmap(seen)(pictures()[None])
