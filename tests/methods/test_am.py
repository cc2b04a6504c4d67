import pytest
import torch

from feddg.catalogue import compose
from feddg.data.domain import Domain, Examples, Federation, Site
from feddg.errors import FeddgError
from feddg.parts.spectra import AmplitudeMix, low_amplitude, mixed, with_low_amplitude
from tests import toy
from tests.methods import stacked


def test_reference_two_constant_images_swap_their_brightness():
    """Frequency 0 by hand.

    A constant image c has one amplitude, |c| H W at frequency 0, with phase 0 (c > 0). So the
    mix of 2 and 6 with share 1/4 is the constant 3/4*2 + 1/4*6 = 3, and with share 1 it is 6.
    """
    x, other = torch.full((2, 1, 4, 5), 2.0), torch.full((2, 1, 4, 5), 6.0)
    share = torch.tensor([0.25, 1.0]).view(2, 1, 1, 1)
    expected = torch.stack([torch.full((1, 4, 5), 3.0), torch.full((1, 4, 5), 6.0)])
    torch.testing.assert_close(mixed(x, other, share), expected)


def test_reference_a_wave_keeps_its_place_and_takes_the_others_height():
    """One frequency by hand.

    sin(2 pi t/8) and 3 cos(2 pi t/8) share one frequency; phases differ, amplitudes are 1 : 3.
    With share 1/2 the sine gets the amplitude (1 + 3)/2 = 2 and stays a sine.
    """
    t = 2 * torch.pi * torch.arange(8) / 8
    wave, tall = t.sin().expand(1, 1, 8, 8), 3 * t.cos().expand(1, 1, 8, 8)
    torch.testing.assert_close(mixed(wave, tall, torch.full((1, 1, 1, 1), 0.5)), 2 * wave)


def test_is_the_full_transform_for_odd_and_even_sizes():
    """Half a spectrum is enough: it equals Re F^-1 of the full one."""
    for size in ((6, 6), (5, 7), (6, 5)):
        x, other = torch.randn(2, 3, 2, *size)
        share = torch.rand(3, 1, 1, 1)
        f, g = torch.fft.fft2(x), torch.fft.fft2(other)
        a = (1 - share) * f.abs() + share * g.abs()
        full = torch.fft.ifft2(torch.polar(a, f.angle())).real
        torch.testing.assert_close(mixed(x, other, share), full, atol=1e-5, rtol=1e-4)


def test_a_low_window_moves_the_mean_alone_at_width_one():
    """A shift of brightness by hand.

    The middle of a 1-wide window is frequency 0, the sum of the pixels. Moving an image of
    mean 2 half-way to one of mean 6 adds 2 everywhere and changes nothing else.
    """
    x, other = torch.rand(2, 1, 5, 6), torch.rand(2, 1, 5, 6)
    x, other = (v - v.mean((2, 3), keepdim=True) + m for v, m in ((x, 2), (other, 6)))
    moved = with_low_amplitude(x, low_amplitude(other, 0), torch.full((2, 1, 1, 1), 0.5))
    torch.testing.assert_close(moved, x + 2, atol=1e-5, rtol=1e-5)


def test_a_wide_window_at_share_one_is_the_full_swap():
    x, other = torch.randn(2, 3, 1, 5, 5)
    whole = with_low_amplitude(x, low_amplitude(other, 2), torch.ones(3, 1, 1, 1))
    torch.testing.assert_close(whole, mixed(x, other, torch.ones(3, 1, 1, 1)), atol=1e-5, rtol=1e-4)


def test_never_on_is_the_batch_itself_and_always_on_is_not():
    rng, x = torch.Generator().manual_seed(0), torch.randn(16, 1, 12, 12)
    for p, same in ((0.0, True), (1.0, False)):
        mix = AmplitudeMix(p, 1.0)
        assert torch.equal(mix.apply(x, mix.draw(rng, 16)), x) == same


def test_is_on_for_half_of_the_batches():
    mix, rng = AmplitudeMix(0.5, 1.0), torch.Generator().manual_seed(0)
    on = torch.stack([mix.draw(rng, 2)["on"] for _ in range(400)]).float().mean()
    assert 0.4 < on < 0.6


def test_runs_under_vmap():
    stacked.check("am(p=0.7)")


def test_refuses_tables():
    data = Examples(torch.randn(20, 5), torch.arange(20) % 3)
    fed = Federation((Site("clinic", data),), (Domain("elsewhere", data),), toy.collection())
    with pytest.raises(
        FeddgError, match=r"am needs images .*clinic's data has the shape \(20, 5\)"
    ):
        toy.final(compose("am"), 1, federation=fed)
