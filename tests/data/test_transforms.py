"""Transforms: arithmetic by hand, the way through JSON, and vmap."""

import json

import pytest
import torch

from feddg import trees
from feddg.data.transforms import (
    IMAGENET,
    Full,
    Impute,
    Scale,
    Standardise,
    prepared,
    transform_from,
)
from feddg.errors import ConfigError, DataError
from feddg.seeds import generator

NAN = float("nan")


def test_scale_by_hand():
    """Pixel 51 is 51/255 = 0.2; (0.2 − 0.1)/0.5 = 0.2 in the first channel, (0.2 − 0.2)/1 = 0."""
    pixels = torch.full((1, 2, 1, 1), 51, dtype=torch.uint8)
    scaled = Scale((0.1, 0.2), (0.5, 1.0)).apply(pixels, {})
    assert scaled.flatten().tolist() == pytest.approx([0.2, 0.0], abs=1e-7)


def test_plain_scale_reaches_0_and_1_exactly_in_float32():
    scaled = Scale().apply(torch.tensor([[0, 255]], dtype=torch.uint8), {})
    assert scaled.dtype == torch.float32
    assert scaled.tolist() == [[0.0, 1.0]]


def test_full_precision_changes_the_type_alone():
    half = torch.tensor([[[[0.1, -2.0]]]]).half()
    out = Full().apply(half, {})
    assert (out.dtype, out.shape) == (torch.float32, half.shape)
    assert out.half().equal(half)


def test_one_number_serves_all_channels():
    pixels = torch.arange(2 * 3 * 4 * 4).view(2, 3, 4, 4).to(torch.uint8)
    one, three = Scale((0.5,), (0.25,)), Scale((0.5,) * 3, (0.25,) * 3)
    assert torch.equal(one.apply(pixels, {}), three.apply(pixels, {}))


@pytest.mark.parametrize("scale", [Scale(), Scale((0.1,), (0.3,)), IMAGENET])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_come_out_in_channels_last(scale, channels):
    if len(scale.mean) > channels:
        return
    out = scale.apply(torch.zeros(2, channels, 5, 4, dtype=torch.uint8), {})
    assert out.stride() == (20 * channels, 1, 4 * channels, channels)


def test_standardise_by_hand_and_constant_columns_are_0():
    """(3 − 1)/2 = 1; the second column has std 0, so even 7 becomes 0."""
    out = Standardise((1.0, 5.0), (2.0, 0.0)).apply(torch.tensor([[3.0, 7.0]]), {})
    assert out.tolist() == [[1.0, 0.0]]


def test_standardise_identity():
    x = torch.randn(5, 3, generator=generator("x"))
    assert torch.equal(Standardise((0.0,) * 3, (1.0,) * 3).apply(x, {}), x)


def test_impute_fills_gaps_only():
    out = Impute((9.0, 8.0)).apply(torch.tensor([[1.0, NAN], [NAN, 2.0]]), {})
    assert out.tolist() == [[1.0, 8.0], [9.0, 2.0]]


TABLES = torch.tensor([[1.0, NAN], [3.0, 4.0]])
CASES = [
    (Scale(), torch.arange(54).view(2, 3, 3, 3).to(torch.uint8)),
    (IMAGENET, torch.arange(54).view(2, 3, 3, 3).to(torch.uint8)),
    (Standardise((1.0, 2.0), (3.0, 0.0)), TABLES.nan_to_num(0.5)),
    (Impute((1.0, 2.0)), TABLES),
    (Full(), TABLES.nan_to_num(0.5).half()),
]


@pytest.mark.parametrize(("transform", "value"), CASES)
def test_survives_json(transform, value):
    again = transform_from(json.loads(json.dumps(transform.describe())))
    assert again == transform
    assert torch.equal(again.apply(value, {}), transform.apply(value, {}))


@pytest.mark.parametrize(("transform", "value"), CASES)
def test_under_vmap_the_same_and_no_input_is_changed(transform, value):
    before = value.clone()
    stacked = torch.stack([value, value.flip(0)])
    out = torch.func.vmap(lambda v: transform.apply(v, {}))(stacked)
    expected = torch.stack([transform.apply(v, {}) for v in stacked])
    assert torch.equal(out, expected)
    assert torch.equal(value.nan_to_num(-1), before.nan_to_num(-1))


@pytest.mark.parametrize(("transform", "value"), CASES)
def test_is_a_part_without_chance(transform, value):
    assert trees.structure(transform) == trees.structure(trees.each(lambda x: x, transform))
    assert transform.draw(generator("d"), 4) == {}
    assert transform.at == ""


def test_prepared_applies_in_order():
    """The gap becomes 4, then (4 − 2)/2 = 1."""
    out = prepared(torch.tensor([[NAN]]), (Impute((4.0,)), Standardise((2.0,), (2.0,))))
    assert out.item() == 1.0


def test_at_survives_json():
    assert transform_from(Scale(at="conv1").describe()).at == "conv1"


def test_bad_descriptions():
    with pytest.raises(ConfigError, match="did you mean 'scale'"):
        transform_from({"kind": "scael"})
    with pytest.raises(DataError, match="wrong fields"):
        transform_from({"kind": "scale", "average": [0.5]})
    with pytest.raises(DataError, match="mean has 2 numbers and std 1"):
        Scale((0.0, 0.0), (1.0,))
    with pytest.raises(DataError, match="must not contain 0"):
        Scale((0.0,), (0.0,))


@pytest.mark.parametrize("scale", [Scale(), IMAGENET])
def test_large_images_are_scaled_one_by_one_to_the_same_bits(scale):
    x = torch.randint(256, (3, 3, 64, 50), dtype=torch.uint8)
    found = scale.apply(x, {})
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(found, scale.scaled(x.float()))
    assert torch.equal(found, torch.func.vmap(lambda v: scale.apply(v, {}))(x[None])[0])
