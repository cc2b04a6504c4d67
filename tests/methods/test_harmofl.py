from dataclasses import replace

import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.data.domain import Examples
from feddg.engines.inprocess import InProcess
from feddg.errors import ConfigError, SiteFailure
from feddg.methods.harmofl import Normalised, mean_amplitude, normalised
from feddg.packets import State
from tests import toy
from tests.methods import quadratic, stacked

ONE_STEP = toy.steps(toy.RECIPE, steps=1)
IMAGE = torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]])  # its mean is 4


def brightness(value):
    return torch.full((1, 1, 1), value)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (IMAGE, [[7.0, 9.0], [11.0, 13.0]]),
        (-IMAGE, [[-7.0, -9.0], [-11.0, -13.0]]),  # its phase is pi: the mean becomes -10
        (0 * IMAGE, [[10.0, 10.0], [10.0, 10.0]]),
    ],
)
def test_reference_low_0_sets_the_mean(image, expected):
    """|mean| becomes 10 and its sign stays: 4 -> 10 is a shift by 6, -4 -> -10 one by -6."""
    torch.testing.assert_close(normalised(image, brightness(10.0))[0, 0], torch.tensor(expected))


@pytest.mark.parametrize("size", [(6, 6), (5, 7), (6, 8), (8, 6)])
@pytest.mark.parametrize("low", [0.0, 0.2, 0.34, 0.5])
def test_reference_against_the_full_shifted_spectrum(size, low):
    """The textbook way: fft2, shift, replace a centred square of amplitudes, shift back, ifft2."""
    x, others = torch.randn(3, 2, *size), torch.randn(4, 2, *size)
    half, (h, w) = int(low * min(size)), size
    amplitude = torch.fft.fft2(others, norm="forward").abs().mean(0)
    spectrum = torch.fft.fft2(x, norm="forward")
    mixed, new = (torch.fft.fftshift(v, dim=(-2, -1)) for v in (spectrum.abs(), amplitude))
    box = (..., *(slice(max(n // 2 - half, 0), n // 2 + half + 1) for n in (h, w)))
    mixed[box] = new[box]
    mixed = torch.fft.ifftshift(mixed, dim=(-2, -1))
    expected = torch.fft.ifft2(torch.polar(mixed, spectrum.angle()), norm="forward").real
    fed = toy.federation()
    site = replace(fed.sites[0], train=Examples(others, torch.zeros(4, dtype=torch.long)))
    job = toy.run(compose("harmofl")).job(site, 0)
    mine = mean_amplitude(job, low)
    torch.testing.assert_close(normalised(x, mine), expected, atol=1e-5, rtol=1e-4)


def rounds(spec, n=2, **options):
    run = toy.run(compose(spec), n, **options)
    return run, list(toy.history(run))


def test_the_server_averages_the_first_rounds_means_and_keeps_them():
    """Uniformly, whatever the sites' sizes; from then on it is what every site uses."""
    run, done = rounds("harmofl(weights='size')")
    means = [s.train.x.mean((2, 3)).abs().mean(0) for s in run.sites]
    for reply, mean in zip(done[0].replies, means, strict=True):
        torch.testing.assert_close(reply.notes["harmofl"][:, 0, 0], mean)
    first, then = (k.state.notes["harmofl"] for k in done)
    torch.testing.assert_close(first[:, 0, 0], torch.stack(means).mean(0))
    assert torch.equal(first, then)
    assert all(torch.equal(r.notes["harmofl"], first) for r in done[1].replies)


def test_after_the_first_round_no_site_can_change_the_mean():
    run, [done] = rounds("harmofl", 1)
    replies = [r.noting("harmofl", r.notes["harmofl"] + 5) for r in done.replies]
    visit = run.method.aggregate(done.state, replies, run.job(None, 1))
    [after] = InProcess().work([visit])
    assert isinstance(after, State), after
    assert torch.equal(after.notes["harmofl"], done.state.notes["harmofl"])


def test_a_late_site_uses_the_servers_mean():
    fed = toy.federation()
    late = replace(fed.sites[2], joins=1)
    _, done = rounds("harmofl", federation=replace(fed, sites=(*fed.sites[:2], late)))
    assert torch.equal(done[1].replies[2].notes["harmofl"], done[0].state.notes["harmofl"])


def test_the_predictor_normalises():
    """Of a state, of a reply and of an inbox; before the first round nothing is known."""
    run, done = rounds("harmofl", 1)
    method, x = run.method, run.sites[0].train.x[:4]
    for packet in (done[0].state, done[0].replies[0], method.broadcast(done[0].state, 1)):
        net = compose("fedavg").predictor(packet, run.model).eval()
        wrapped = method.predictor(packet, run.model).eval()
        assert torch.equal(wrapped(x), net(normalised(x, packet.notes["harmofl"])))
        assert not torch.allclose(wrapped(x), net(x), atol=1e-4)
    start = method.init(run.model, run.names)
    assert not isinstance(method.predictor(start, run.model), Normalised)


def test_a_shift_of_brightness_is_invisible():
    """What low = 0 is for: images that differ in brightness alone are one image to the network."""
    net = Normalised(nn.Identity(), brightness(1.0))
    torch.testing.assert_close(net(IMAGE), net(IMAGE + 3))


def test_reference_the_perturbation_is_alpha_long():
    """As FedSAM by hand with rho = 1: 0 -> 9/2 -> 27/4; uniform say: (27/4 - 27/4) / 2 = 0."""
    spec = "harmofl(alpha=1, amplitude=False)"
    done = quadratic.history(spec, 1, sites={"a": (1, 8.0), "b": (3, -8.0)})
    assert [r.model.vector.item() for r in done[0].replies] == [6.75, -6.75]
    assert quadratic.weights(done) == [0.0]


@pytest.mark.parametrize("more", ["", ", amplitude=False"])
def test_only_the_plain_batchs_first_forward_updates_batch_norm(more):
    """One step: the statistics are those of the same images without perturbation, bit for bit."""
    (_, [far]), (_, [near]) = (
        rounds(f"harmofl(alpha={a}{more})", 1, recipe=ONE_STEP) for a in (0.5, 0)
    )
    for mine, theirs in zip(far.replies, near.replies, strict=True):
        assert torch.equal(mine.model.buffers, theirs.model.buffers)
        assert not torch.allclose(mine.model.parameters, theirs.model.parameters)


def test_tables_have_no_amplitude():
    with pytest.raises(SiteFailure, match="harmofl needs images"):
        quadratic.history("harmofl", 1)


def test_no_amplitude_nothing_leaves():
    assert not compose("harmofl(amplitude=False)").reveals.notes
    run = toy.run(compose("harmofl(amplitude=False)"), 1)
    [done] = toy.history(run, InProcess())
    assert not done.state.notes


@pytest.mark.parametrize("options", ["low=0.7", "weights='sizes'"])
def test_bad_options(options):
    with pytest.raises(ConfigError, match="harmofl"):
        compose(f"harmofl({options})")


def test_stacked():
    stacked.check("harmofl(low=0.1)")
