"""Colour jitter and grayscale: by hand, and as torchvision's for given factors and orders."""

from itertools import permutations

import pytest
import torch

from feddg._torchvision import torchvision
from feddg.data.colour import Grayscale, Jitter, turned
from feddg.seeds import generator

PLAIN = [1.0, 1.0, 1.0, 0.0]
ORDER = [0, 1, 2, 3]


def pictures(n=5, channels=3, side=24):
    """Noise over all levels, with pure colours, greys and a flat image among them."""
    x = torch.randint(256, (n, channels, side, side), generator=generator("x")).to(torch.uint8)
    x[:, :, :4] = x[:, :1, :4]
    x[:, 0, 4:8] = 255
    x[:, channels - 1, 6:10] = 0
    x[-1] = 77
    return x


def jitter(x, factors, order=ORDER, plan=Jitter()):  # noqa: B008 (frozen)
    n = len(x)
    given = torch.tensor([factors]).repeat(n, 1), torch.tensor([order] * n)
    return plan.one_by_one(x, *given), plan.at_once(x, *given)


def near(a, b, levels=1):
    assert a.dtype == b.dtype
    assert (a.int() - b.int()).abs().max() <= levels


def test_reference_by_hand():
    """100, 200 become 150 and, kept below 255, 255; half as far from their mean 202.5: 176.25, …

    … 228.75. The other way round: 125 and 175 are half as far from 150; 187.5 and 262.5, so 255.
    """
    x = torch.tensor([[100, 200]], dtype=torch.uint8).view(1, 1, 1, 2)
    for out in jitter(x, [1.5, 0.5, 1.0, 0.0]):
        assert out.flatten().tolist() == [176, 229]
    for out in jitter(x, [1.5, 0.5, 1.0, 0.0], [3, 1, 2, 0]):
        assert out.flatten().tolist() == [188, 255]
    for out in jitter(x.double(), [1.5, 0.5, 1.0, 0.0]):  # no white is known: 150 and 300
        assert out.flatten().tolist() == [187.5, 262.5]


def test_reference_hue_by_hand():
    """A third of the circle: red becomes green becomes blue becomes red, darker ones too."""
    red = torch.tensor([200.0, 50.0, 50.0]).view(1, 3, 1, 1)
    for steps in range(-2, 4):
        expected = red.roll(steps, 1)
        torch.testing.assert_close(turned(red, steps / 3), expected, atol=1e-3, rtol=0)
    yellow = turned(red, 1 / 6)
    torch.testing.assert_close(yellow.flatten(), torch.tensor([200.0, 200.0, 50.0]))


NAMES = ("brightness", "contrast", "saturation", "hue")


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("strength", [-0.4, -0.13, 0.27, 0.4])
def test_reference_each_is_torchvisions(kind, strength):
    torchvision()
    from torchvision.transforms import functional as tv

    x, factors = pictures(), list(PLAIN)
    factors[kind] += strength
    theirs = getattr(tv, f"adjust_{NAMES[kind]}")(x, factors[kind])
    for ours in jitter(x, factors):
        near(ours, theirs)
    assert (ours != x).any()


@pytest.mark.parametrize("order", [*permutations(ORDER)])
def test_reference_all_four_in_order_are_torchvisions(order):
    """Of floats, which it does not round after each of the four."""
    torchvision()
    from torchvision.transforms import functional as tv

    factors = [1.3, 1.2, 0.7, 0.31]
    x = pictures()
    theirs = x / 255
    for k in order:
        theirs = getattr(tv, f"adjust_{NAMES[k]}")(theirs, factors[k])
    for ours in jitter(x, factors, list(order)):
        near(ours, (255 * theirs).round().to(torch.uint8))
    assert (ours.float() - x.float()).abs().mean() > 20


def test_both_ways_agree_on_floats_and_every_image_has_its_order():
    x, plan = pictures(24).double(), Jitter()
    draw = plan.draw(generator("d"), 24)
    given = draw["factors"], draw["order"]
    loop, batch = plan.one_by_one(x, *given), plan.at_once(x, *given)
    torch.testing.assert_close(loop, batch, atol=1e-4, rtol=0)  # factors are of float32
    whole = x.to(torch.uint8)
    near(plan.one_by_one(whole, *given), plan.at_once(whole, *given))


@pytest.mark.parametrize("channels", [1, 2, 8])
def test_without_three_channels_there_is_no_colour(channels):
    x = pictures(3, channels)
    for out in jitter(x, [1.0, 1.0, 0.3, 0.4]):
        assert torch.equal(out, x)
    for out in jitter(x, [0.5, 1.0, 1.0, 0.0]):
        near(out, (x / 2).round().to(torch.uint8))
    assert Grayscale(1.0).apply(x, {"grey": torch.ones(3, dtype=torch.bool)}) is x


def made(widths):
    brightness, contrast, saturation, hue = widths
    return Jitter(brightness, contrast, saturation, hue)


@pytest.mark.parametrize("without", range(4))
def test_effect_of_each_width(without):
    """With a width of 0 the draws of that kind are its identity, to the bit."""
    widths = [0.4] * 4
    widths[without] = 0.0
    drawn = made(widths).draw(generator("d"), 50)["factors"]
    assert drawn[:, without].unique().tolist() == [PLAIN[without]]
    x = pictures()
    only = [0.0] * 4
    only[without] = 0.4
    plan = made(only)
    assert not torch.equal(plan.apply(x, plan.draw(generator("d"), len(x))), x)


def test_grayscale_by_hand():
    """0.299·100 + 0.587·50 + 0.114·200 = 82.05, in every channel of the image drawn."""
    x = torch.tensor([100, 50, 200]).view(1, 3, 1, 1).repeat(2, 1, 1, 1)
    draw = {"grey": torch.tensor([False, True])}
    out = Grayscale().apply(x.to(torch.uint8), draw)
    assert out.flatten(1).tolist() == [[100, 50, 200], [82, 82, 82]]
    floats = Grayscale().apply(x.double(), draw)
    torch.testing.assert_close(floats[1].flatten(), torch.full((3,), 82.05, dtype=torch.float64))
