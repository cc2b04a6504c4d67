"""Augmentations of images: by hand, where they do nothing, and that they are drawn by seed."""

from dataclasses import replace

import pytest
import torch

from feddg.catalogue import compose
from feddg.data.augment import (
    IMAGES,
    KINDS,
    Crop,
    Flip,
    Grayscale,
    Jitter,
    Shift,
    augmentation,
)
from feddg.data.levels import singly
from feddg.data.randaugment import RandAugment
from feddg.errors import ConfigError
from feddg.parts.spectra import AmplitudeMix
from feddg.seeds import generator
from feddg.training import all_parts, draws
from tests import toy

TYPES = (torch.uint8, torch.float32)
ALL = (Flip(), Shift(2), Jitter(0.5, 0.5))
EVERY = (*ALL, Crop(0.3), Grayscale(0.5), RandAugment(2, p=1.0, low=(0.0,), high=(255.0,)))
WHOLE = Crop(1.0, 1.0)


SIDES = ((5, 4), (48, 60))  # the larger ones are taken one by one on a CPU


def images(dtype, sides=SIDES[0], n=6):
    x = torch.randint(256, (n, 3, *sides), generator=generator("images"))
    assert singly(x) == (sides == SIDES[1])
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
@pytest.mark.parametrize(
    "nothing",
    [Flip(0.0), Shift(0), Jitter(0.0, 0.0, 0.0, 0.0), WHOLE, Grayscale(0.0), RandAugment(0)],
)
@pytest.mark.parametrize("sides", SIDES)
def test_strength_0_is_the_identity(nothing, dtype, sides):
    x = images(dtype, sides)
    assert torch.equal(nothing.apply(x, nothing.draw(generator("d"), len(x))), x)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("augment", EVERY)
@pytest.mark.parametrize("sides", SIDES)
def test_every_image_has_its_own_draw_also_under_vmap(augment, dtype, sides):
    x = images(dtype, sides)
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
        assert mapped[i].dtype == dtype
        looped = augment.apply(stacked[i], draw).float()
        rounded = 1 if dtype == torch.uint8 else 5e-3  # .5 may go either way
        torch.testing.assert_close(mapped[i].float(), looped, atol=rounded, rtol=0)


def test_draws_cover_their_ranges():
    n = 4000
    assert Flip(0.25).draw(generator("d"), n)["flipped"].double().mean() == pytest.approx(
        0.25, abs=0.03
    )
    by = Shift(2).draw(generator("d"), n)["by"]
    assert set(by.flatten().tolist()) == {-2, -1, 0, 1, 2}
    drawn = Jitter(0.2, 0.6, 0.4, 0.1).draw(generator("d"), n)
    for i, (middle, width) in enumerate(((1, 0.2), (1, 0.6), (1, 0.4), (0, 0.1))):
        low, high = drawn["factors"][:, i].aminmax()
        assert low.item() == pytest.approx(middle - width, abs=0.01)
        assert high.item() == pytest.approx(middle + width, abs=0.01)
    assert len(drawn["order"].unique(dim=0)) == 24
    assert Grayscale(0.1).draw(generator("d"), n)["grey"].float().mean().item() == pytest.approx(
        0.1, abs=0.02
    )


def test_crops_cover_their_range():
    """Area 0.7 … 1 and ratio 3/4 … 4/3; a rectangle that never fits is the whole image."""
    extent = Crop(0.7).draw(generator("d"), 4000)["extent"].double()
    assert extent.max() <= 1
    area, ratio = extent.prod(1), extent[:, 1] / extent[:, 0]
    assert area.min().item() == pytest.approx(0.7, abs=0.01)
    assert area.max().item() > 0.97
    assert ratio.min().item() == pytest.approx(0.75, abs=0.05)
    assert ratio.max().item() == pytest.approx(4 / 3, abs=0.05)
    assert ratio.log().mean().item() == pytest.approx(0, abs=0.01)
    assert set(Crop(1.0, 100.0).draw(generator("d"), 99)["extent"].flatten().tolist()) == {1.0}


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
        for a in ((), (Flip(0.0), Shift(0), Jitter(0.0, 0.0, 0.0, 0.0)), EVERY, EVERY)
    )
    assert torch.equal(once, again)
    assert torch.equal(plain, same)
    assert not torch.equal(plain, once)


def test_text():
    assert augmentation("") == ()
    assert augmentation("flip, shift=4,jitter=0.4") == (Flip(0.5), Shift(4), Jitter())
    assert augmentation("jitter,flip=1") == (Jitter(), Flip(1.0))
    assert augmentation("crop=0.8,grayscale=0.2") == (Crop(0.8), Grayscale(0.2))
    assert augmentation("jitter=0.3/0.2") == (Jitter(0.3, 0.2, 0.0, 0.0),)
    found = augmentation("randaugment=3,cutout=8,amplitude-mix=0.6")
    assert found == (RandAugment(3), RandAugment(0, cutout=8), AmplitudeMix(0.5, 0.6))
    assert augmentation(ALL) == ALL


def test_what_text_makes_is_for_images():
    given = ",".join(KINDS)
    assert all(isinstance(t, IMAGES) for t in augmentation(given))
    x = torch.randint(256, (4, 3, 20, 20), dtype=torch.uint8, generator=generator("images"))
    for transform in augmentation(given):
        out = transform.apply(x, transform.draw(generator("d"), 4))
        assert (out.shape, out.dtype) == (x.shape, torch.uint8)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("flipp", "unknown augmentation 'flipp'; did you mean 'flip'"),
        ("shift=a", "augmentation 'shift=a': 'a' is not a fit number"),
        ("shift=1.5", "'1.5' is not a fit number"),
        ("flip=2", "p must be a probability, not 2"),
        ("shift=-1", "must not be negative"),
        ("jitter=1.5/0.4", "must be in 0…1 and hue in 0…0.5, not 1.5, 0.4, 0, 0"),
        ("jitter=0.6", "hue in 0…0.5, not 0.6, 0.6, 0.6, 0.6"),
        ("jitter=1/1/1/0/0", "'1/1/1/0/0' is not a fit number"),
        ("crop=0", "crop: the least share must be above 0"),
        ("grayscale=2", "p must be a probability, not 2"),
    ],
)
def test_bad_text(text, sentence):
    with pytest.raises(ConfigError, match=sentence):
        augmentation(text)
