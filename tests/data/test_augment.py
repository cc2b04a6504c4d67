"""Augmentations of images: by hand, where they do nothing, and that they are drawn by seed."""

from dataclasses import replace

import pytest
import torch

from feddg.catalogue import compose
from feddg.data.augment import Flip, Jitter, Shift, augmentation
from feddg.errors import ConfigError
from feddg.seeds import generator
from feddg.training import all_parts, draws
from tests import toy

TYPES = (torch.uint8, torch.float32)
ALL = (Flip(), Shift(2), Jitter(0.5, 0.5))


def images(dtype, n=6):
    x = torch.randint(256, (n, 3, 5, 4), generator=generator("images"))
    return x.to(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_flip_by_hand(dtype):
    x = torch.tensor([[1, 2, 3], [4, 5, 6]]).view(2, 1, 1, 3).to(dtype)
    out = Flip().apply(x, {"flipped": torch.tensor([True, False])})
    assert out.dtype == dtype
    assert out.flatten().tolist() == [3, 2, 1, 4, 5, 6]


@pytest.mark.parametrize("dtype", TYPES)
def test_shift_by_hand(dtype):
    """One down and none to the right; none down and one to the left; further than the side."""
    x = torch.tensor([[1, 2], [3, 4]]).view(1, 1, 2, 2).repeat(3, 1, 1, 1).to(dtype)
    out = Shift().apply(x, {"by": torch.tensor([[1, 0], [0, -1], [2, 0]])})
    assert out.dtype == dtype
    assert out.flatten(1).tolist() == [[0, 0, 1, 2], [2, 0, 4, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("dtype", TYPES)
def test_jitter_by_hand(dtype):
    """10, 30 become 20, 60 with mean 40, and half as far from it: 30, 50.

    100, 200 become 150, 300 with mean 225, and 1.5 times as far: 112.5, 337.5; uint8 has the
    even of the two nearest, 112, and no more than 255.
    """
    x = torch.tensor([[10, 30], [100, 200]]).view(2, 1, 1, 2).to(dtype)
    draw = {"brightness": torch.tensor([2.0, 1.5]), "contrast": torch.tensor([0.5, 1.5])}
    out = Jitter().apply(x, draw)
    assert out.dtype == dtype
    last = [112, 255] if dtype == torch.uint8 else [112.5, 337.5]
    assert out.flatten().tolist() == [30, 50, *last]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("nothing", [Flip(0.0), Shift(0), Jitter(0.0, 0.0)])
def test_strength_0_is_the_identity(nothing, dtype):
    x = images(dtype)
    assert torch.equal(nothing.apply(x, nothing.draw(generator("d"), len(x))), x)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("augment", ALL)
def test_every_image_has_its_own_draw_also_under_vmap(augment, dtype):
    x = images(dtype)
    before, draw = x.clone(), augment.draw(generator("d"), len(x))
    out = augment.apply(x, draw)
    assert torch.equal(x, before)
    changed = [not torch.equal(a, b) for a, b in zip(out, x, strict=True)]
    assert any(changed)
    assert len({str(v) for v in next(iter(draw.values())).tolist()}) > 1
    for i in range(len(x)):
        alone = augment.apply(x[i : i + 1], {k: v[i : i + 1] for k, v in draw.items()})
        torch.testing.assert_close(alone, out[i : i + 1])
    stacked = torch.stack([x, x.flip(0)])
    both = {k: torch.stack([v, v]) for k, v in draw.items()}
    mapped = torch.func.vmap(augment.apply)(stacked, both)
    for i in range(2):
        torch.testing.assert_close(mapped[i], augment.apply(stacked[i], draw))


def test_draws_cover_their_ranges():
    n = 4000
    assert Flip(0.25).draw(generator("d"), n)["flipped"].double().mean() == pytest.approx(
        0.25, abs=0.03
    )
    by = Shift(2).draw(generator("d"), n)["by"]
    assert set(by.flatten().tolist()) == {-2, -1, 0, 1, 2}
    drawn = Jitter(0.2, 0.6).draw(generator("d"), n)
    for name, width in (("brightness", 0.2), ("contrast", 0.6)):
        low, high = drawn[name].aminmax()
        assert low.item() == pytest.approx(1 - width, abs=0.01)
        assert high.item() == pytest.approx(1 + width, abs=0.01)


def federation(augment):
    fed = toy.federation(share=0.0)
    return replace(fed, collection=replace(fed.collection, augment=augment))


def test_chance_is_that_of_seed_site_and_round():
    fed = federation(ALL)

    def drawn(seed=0, site=0, round=0):
        run = toy.run(compose("fedavg"), 2, federation=fed, seed=seed)
        job = run.job(run.sites[site], round)
        request = job.training(run.method.init(run.model, run.names).model)
        assert all_parts(request)[:3] == ALL
        first = next(iter(draws(request, [torch.arange(16)])))
        return torch.cat([v.double().flatten() for i in range(3) for v in first[i].values()])

    assert torch.equal(drawn(), drawn())
    for other in ({"seed": 1}, {"site": 1}, {"round": 1}):
        assert not torch.equal(drawn(), drawn(**other))


def test_training_repeats_to_the_bit_and_sees_them():
    plain, same, once, again = (
        toy.vector(compose("fedavg"), 1, federation=federation(a))
        for a in ((), (Flip(0.0), Shift(0), Jitter(0.0, 0.0)), ALL, ALL)
    )
    assert torch.equal(once, again)
    assert torch.equal(plain, same)
    assert not torch.equal(plain, once)


def test_text():
    assert augmentation("") == ()
    assert augmentation("flip, shift=4,jitter=0.4") == (Flip(0.5), Shift(4), Jitter(0.4, 0.4))
    assert augmentation("jitter,flip=1") == (Jitter(), Flip(1.0))
    assert augmentation(ALL) == ALL


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("flipp", "unknown augmentation 'flipp'; did you mean 'flip'"),
        ("shift=a", "augmentation 'shift=a': 'a' is not a fit number"),
        ("shift=1.5", "'1.5' is not a fit number"),
        ("flip=2", "p must be a probability, not 2"),
        ("shift=-1", "must not be negative"),
        ("jitter=1.5", "must be in 0…1, not 1.5 and 1.5"),
    ],
)
def test_bad_text(text, sentence):
    with pytest.raises(ConfigError, match=sentence):
        augmentation(text)
