from dataclasses import replace

import pytest
import torch

from feddg.catalogue import compose
from feddg.data.domain import Domain, Examples, Federation, Site
from feddg.data.transforms import Scale
from feddg.errors import FeddgError
from feddg.local import Outcome
from feddg.methods.elcfs import ELCFS
from feddg.parts.episodes import Episode
from feddg.training import func_grad, tape_grad
from tests import toy
from tests.methods import stacked


def episode(**changes):
    bank, chance = torch.full((1, 1, 1, 1), 6.0), torch.ones(1)
    plain = Episode(bank, chance, 0.1, 100.0, 1.0, True, False, (0.0,), (1.0,))
    return replace(plain, **changes)


def square(theta, *, change=None):
    """L(w; c) = (w - c)^2 / 2, c = the mean of an image of ones, unless it is changed."""
    x = torch.ones(1, 1, 2, 2)
    w, c = theta["model"], (change[""](x) if change else x).mean()
    value = (w - c).square().sum() / 2
    return value, Outcome(w.detach(), w.detach(), value.detach()[None])


@pytest.mark.parametrize("grad", [tape_grad, func_grad])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, -1.2),
        ({"second_order": True}, -0.88),
        ({"clip": 0.5}, -1.05),
        ({"clip": 0.5, "second_order": True}, -1.05),
        ({"meta": 0.5}, 0.4),
        ({"meta": 0.0}, 2.0),
    ],
)
def test_reference_a_parabola(grad, changes, expected):
    """An episode by hand.

    The gradient is w - c, with c = 1 on the image and c = 6 in the other style. At w = 3 it is 2,
    and the trial step goes to 3 - .1 * 2 = 2.8, where in the other style it is 2.8 - 6 = -3.2:
    together -1.2. Second order: times d(w - .1 (w - 1))/dw = .9, so 2 - 2.88 = -.88. Clipped at
    .5 the trial goes to 2.95, where it is -3.05: together -1.05, in both orders, for a clipped
    gradient is constant. Half of the meta term: 2 - 1.6 = .4.
    """
    step = episode(**changes)
    theta = {"model": torch.tensor([3.0])}
    draw = step.draw(torch.Generator().manual_seed(0), 1)
    g, _ = step(square, theta, grad, draw)
    assert g["model"].item() == pytest.approx(expected, abs=1e-5)


def test_styles_go_all_the_way_or_part_of_it():
    """The style of brightness 6 for an image of brightness 1: 6 if hard, else 1 + 5 l."""
    x = torch.ones(500, 1, 2, 2)
    rng = torch.Generator().manual_seed(0)
    hard, soft = episode(), episode(hard=False)
    torch.testing.assert_close(hard.styled(x, hard.draw(rng, 500)), 6 * x)
    draw = soft.draw(rng, 500)
    torch.testing.assert_close(soft.styled(x, draw), 1 + 5 * draw["share"].expand_as(x))
    assert draw["share"].mean().item() == pytest.approx(0.5, abs=0.05)


def test_styles_are_of_pixels_not_of_normalised_values():
    """A brightness across the mean, by hand.

    Pixels of .2 normalised by (v - .5)/.25 are -1.2; the style of .8 is +1.2. As amplitudes of
    normalised values the two would be equal, and nothing would change.
    """
    step = episode(bank=torch.full((1, 1, 1, 1), 0.8), mean=(0.5,), std=(0.25,))
    x = torch.full((3, 1, 4, 4), -1.2)
    draw = step.draw(torch.Generator().manual_seed(0), 3)
    torch.testing.assert_close(step.styled(x, draw), -x)


def test_another_site_first_then_one_of_its_images():
    """One image of site a, nine of b: each site is drawn half of the time."""
    bank = torch.cat([torch.zeros(1, 1, 1, 1), torch.ones(9, 1, 1, 1)])
    chance = torch.tensor([1.0, *[1 / 9] * 9])
    low = episode(bank=bank, chance=chance).draw(torch.Generator().manual_seed(0), 4000)["low"]
    assert low.mean().item() == pytest.approx(0.5, abs=0.03)


def test_only_the_window_leaves_a_site_and_only_once():
    done = list(toy.history(toy.run(compose("elcfs(window=0.2, bank=0.5)"))))
    sent = [{r.site: r.notes for r in k.replies} for k in done]
    assert not any(notes for k in sent[1:] for notes in k.values())
    sizes = {site: tuple(notes["elcfs"].shape) for site, notes in sent[0].items()}
    assert sizes == {"dawn": (18, 1, 5, 5), "noon": (24, 1, 5, 5), "dusk": (30, 1, 5, 5)}
    assert set(done[-1].state.notes["elcfs"]) == set(sizes)


def test_the_amplitude_of_a_site_is_its_images_brightness_in_pixels():
    x = torch.randint(0, 256, (7, 3, 4, 5), dtype=torch.uint8)
    site = Site("a", Examples(x, torch.zeros(7, dtype=torch.long)))
    scale = Scale((0.5, 0.4, 0.3), (0.2, 0.2, 0.1))
    run = toy.run(compose("elcfs"))
    job = replace(run.job(site, 0), prepare=(scale,))
    got = ELCFS().amplitudes(job, scale.mean, scale.std)[:, :, 0, 0]
    expected = x.float().mean((2, 3)) / 255
    torch.testing.assert_close(got.sort(0)[0], expected.sort(0)[0], atol=1e-5, rtol=1e-5)


def test_the_first_round_is_plain_and_so_is_a_lonely_site():
    assert torch.equal(toy.vector(compose("elcfs"), 1), toy.vector(compose("fedavg"), 1))
    fed = toy.balanced(1)
    one, plain = (toy.vector(compose(m), 3, federation=fed) for m in ("elcfs", "fedavg"))
    assert torch.equal(one, plain)


def test_the_official_preset():
    method = compose("elcfs:official")
    assert isinstance(method, ELCFS)
    assert (method.hard, method.bank, method.second_order) == (True, 0.125, False)


@pytest.mark.parametrize("spec", ["elcfs", "elcfs:official"])
def test_runs_under_vmap(spec):
    stacked.check(spec)


def test_says_what_leaves():
    assert "mean brightness of each image" in compose("elcfs").reveals.notes["elcfs"]
    assert "window 0.1" in compose("elcfs(window=0.1)").reveals.notes["elcfs"]


def test_refuses_tables():
    data = Examples(torch.randn(20, 5), torch.arange(20) % 3)
    fed = Federation((Site("clinic", data),), (Domain("elsewhere", data),), toy.collection())
    with pytest.raises(FeddgError, match="elcfs needs images"):
        toy.final(compose("elcfs"), 1, federation=fed)
