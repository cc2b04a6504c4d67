from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from feddg.catalogue import compose
from feddg.data import randaugment
from feddg.data.domain import Examples, Site
from feddg.data.randaugment import PHOTOMETRIC, RANGES, RandAugment, extremes, fitted, moved
from feddg.data.transforms import IMAGENET, Scale
from feddg.errors import ConfigError
from tests import toy


def picture(channels: int = 3, side: int = 24) -> np.ndarray:
    """Smooth, with a bright and a dark region, not filling 0 … 255."""
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(20, 230, (side, side, 3), dtype=np.uint8))
    smooth = np.asarray(noise.filter(ImageFilter.GaussianBlur(2)))
    stretched = np.clip((smooth.astype(float) - 125) * 2.5 + 125, 5, 245).astype(np.uint8)
    return stretched if channels == 3 else stretched[..., 0]


def tensor(image) -> torch.Tensor:
    array = np.asarray(image).astype(np.float32) / 255
    array = array[..., None] if array.ndim == 2 else array
    return torch.from_numpy(array).permute(2, 0, 1)[None]


PIL = {
    "autocontrast": lambda im, v: ImageOps.autocontrast(im),
    "brightness": lambda im, v: ImageEnhance.Brightness(im).enhance(v),
    "colour": lambda im, v: ImageEnhance.Color(im).enhance(v),
    "contrast": lambda im, v: ImageEnhance.Contrast(im).enhance(v),
    "equalise": lambda im, v: ImageOps.equalize(im),
    "identity": lambda im, v: im,
    "invert": lambda im, v: ImageOps.invert(im),
    "posterise": lambda im, v: ImageOps.posterize(im, int(v)),
    "sharpness": lambda im, v: ImageEnhance.Sharpness(im).enhance(v),
    "solarise": lambda im, v: ImageOps.solarize(im, v),
}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("share", [0.1, 0.8])
@pytest.mark.parametrize("operation", range(len(PHOTOMETRIC)))
def test_reference_photometric_operations_are_pils(operation, share, channels):
    """PIL rounds to 256 levels after each step: equal to within two of them."""
    f, low, high = PHOTOMETRIC[operation]
    v = low + share * (high - low)
    image = Image.fromarray(picture(channels))
    ours = f(tensor(image), torch.full((1, 1, 1, 1), v))
    torch.testing.assert_close(ours, tensor(PIL[f.__name__](image, v)), atol=2.01 / 255, rtol=0)


def test_reference_equalise_to_the_bit():
    image = Image.fromarray(picture(3, 40))
    ours = randaugment.equalise(tensor(image), torch.zeros(1))
    assert torch.equal((255 * ours).round(), (255 * tensor(ImageOps.equalize(image))).round())


W, H = 30, 20
ANGLE, SHARE = 20.0, 0.2
BILINEAR = Image.Resampling.BILINEAR
MATRICES = {
    "shear x": ((0.0, (SHARE, 0.0), (0.0, 0.0)), (1, SHARE, 0, 0, 1, 0)),
    "shear y": ((0.0, (0.0, SHARE), (0.0, 0.0)), (1, 0, 0, SHARE, 1, 0)),
    "shift x": ((0.0, (0.0, 0.0), (SHARE, 0.0)), (1, 0, SHARE * W, 0, 1, 0)),
    "shift y": ((0.0, (0.0, 0.0), (0.0, SHARE)), (1, 0, 0, 0, 1, SHARE * H)),
}


def inside(image: torch.Tensor) -> torch.Tensor:
    return image[..., 4:-4, 4:-4]


@pytest.mark.parametrize("name", [*MATRICES, "rotate"])
def test_reference_geometric_operations_are_pils(name):
    """By PIL's affine matrices on an image that is not square.

    Compared where both find all four neighbours: at the border PIL does not mix with black.
    """
    image = Image.fromarray(picture(1, 40)[:H, :W]).convert("F")
    if name == "rotate":
        given, other = (ANGLE, (0.0, 0.0), (0.0, 0.0)), image.rotate(ANGLE, BILINEAR)
    else:
        given, matrix = MATRICES[name]
        other = image.transform(image.size, Image.Transform.AFFINE, matrix, BILINEAR)
    ours = moved(tensor(image), *(torch.tensor([v]) for v in given))
    near = torch.ones(1, 1, H, W)
    covered = moved(near, *(torch.tensor([v]) for v in given)) > 0.999
    gap = (ours - tensor(other)).abs()
    assert gap[covered].max() < 2 / 255
    assert covered.float().mean() > 0.5


def one(operation: int, n: int = 4, applied: bool = True, magnitude: float = 0.9):
    return {
        "operation": torch.full((n, 1), operation),
        "applied": torch.full((n, 1), applied),
        "magnitude": torch.full((n, 1), magnitude),
        "centre": torch.full((n, 2), 0.5),
    }


KNOWN = RandAugment(n=1, low=(0.0,), high=(1.0,))


def test_identity_nothing_applied_is_the_same_to_the_bit():
    x = torch.randn(4, 1, 9, 9) * 3  # outside of black and white, too
    for operation in range(len(RANGES)):
        assert torch.equal(KNOWN.apply(x, one(operation, applied=False)), x)
    unknown = RandAugment(n=1)
    assert torch.equal(unknown.apply(x, one(5)), x)


@pytest.mark.parametrize("operation", [i for i in range(len(RANGES)) if i not in (2, 5)])
def test_effect_every_operation_does_something(operation):
    """But for identity, and colour on grey images."""
    x = tensor(picture(1)).repeat(4, 1, 1, 1)
    assert (KNOWN.apply(x, one(operation, magnitude=0.1)) - x).abs().amax((1, 2, 3)).min() > 0.01


def test_images_are_independent():
    """Each image by its own draw: the batch at once is the images one by one."""
    x = torch.stack([tensor(picture(3))[0].roll(i, 1) for i in range(12)])
    augment = RandAugment(cutout=6, low=(0.0,) * 3, high=(1.0,) * 3)
    draw = augment.draw(torch.Generator().manual_seed(3), 12)
    whole = augment.apply(x, draw)
    for i in range(12):
        alone = augment.apply(x[i : i + 1], {k: v[i : i + 1] for k, v in draw.items()})
        torch.testing.assert_close(whole[i : i + 1], alone, atol=1e-6, rtol=0)
    assert ((whole - x).abs().amax((1, 2, 3)) > 0.01).sum() >= 8


def test_normalised_images_are_augmented_as_the_pixels_are():
    """black = -mean / std and white = (1 - mean) / std, as pushed through `prepare`."""
    raw = torch.from_numpy(picture(3)).permute(2, 0, 1)[None].repeat(6, 1, 1, 1)
    black, white = extremes(raw, (Scale(),))
    plain = RandAugment(low=black, high=white)
    assert plain.low == (0.0, 0.0, 0.0)
    assert plain.high == (1.0, 1.0, 1.0)
    low, high = extremes(raw, (IMAGENET,))
    assert low[0] == pytest.approx(-0.485 / 0.229)
    assert high[2] == pytest.approx((1 - 0.406) / 0.225)
    draw = plain.draw(torch.Generator().manual_seed(1), 6)
    expected = plain.apply(raw / 255, draw)
    ours = RandAugment(low=low, high=high).apply(IMAGENET.apply(raw, {}), draw)
    mean = torch.tensor(IMAGENET.mean)[:, None, None]
    std = torch.tensor(IMAGENET.std)[:, None, None]
    torch.testing.assert_close(ours * std + mean, expected, atol=1e-4, rtol=0)


def test_unknown_range_is_the_batchs():
    x = torch.tensor([[-2.0, 0.0], [1.0, 4.0]]).view(1, 1, 2, 2)
    inverted = RandAugment(n=1).apply(x, one(6, n=1))
    torch.testing.assert_close(inverted, 2.0 - x)


def test_cutout_by_hand():
    """A 4-pixel square around pixel (5, 0) of 10 x 10: rows 3 to 6, columns 0 and 1; black."""
    augment = RandAugment(n=0, cutout=4, low=(-1.0,), high=(1.0,))
    after = augment.apply(torch.ones(1, 1, 10, 10), {
        "applied": torch.zeros(1, 0, dtype=torch.bool), "centre": torch.tensor([[0.55, 0.05]]),
    })  # fmt: skip
    expected = torch.ones(10, 10)
    expected[3:7, :2] = -1.0
    assert torch.equal(after[0, 0], expected)


def test_draws_are_two_of_fifteen_at_six_tenths():
    draw = RandAugment().draw(torch.Generator().manual_seed(0), 5000)
    counts = torch.bincount(draw["operation"].flatten(), minlength=15)
    assert len(counts) == 15
    assert counts.min() > 550  # of an expected 667
    assert draw["applied"].float().mean().item() == pytest.approx(0.6, abs=0.02)
    few = RandAugment(geometric=False).draw(torch.Generator().manual_seed(0), 5000)
    assert few["operation"].max() == 9


def test_the_global_stream_is_left_alone():
    before = torch.get_rng_state()
    RandAugment().draw(torch.Generator().manual_seed(0), 8)
    assert torch.equal(before, torch.get_rng_state())


def test_photos_lose_a_square_digits_do_not():
    """COPA's settings; a table has no augmentation."""
    job = toy.run(compose("fedavg")).job(toy.federation().sites[0], 0)
    given = RandAugment()
    digits = fitted(given, None, job)
    assert digits is not None
    assert digits.cutout == 0
    photo = job.train.x.repeat(1, 1, 6, 6)
    job = replace(job, site=Site("photos", Examples(photo, job.train.y)))
    found = fitted(given, None, job)
    assert found is not None
    assert found.cutout == 16
    table = Site("table", Examples(photo.flatten(1), job.train.y))
    assert fitted(given, None, replace(job, site=table)) is None


@pytest.mark.parametrize("wrong", [{"n": -1}, {"p": 1.5}, {"cutout": -2}])
def test_nonsense_is_refused(wrong):
    with pytest.raises(ConfigError, match="RandAugment"):
        RandAugment(**wrong)
