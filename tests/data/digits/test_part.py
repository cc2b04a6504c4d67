"""Digits in memory: many are resized at once to the pixels that Pillow gives each."""

import numpy as np
import pytest
import torch
from PIL import Image

from feddg.data.digits import part
from feddg.data.digits.part import Part
from feddg.seeds import generator


@pytest.mark.parametrize(("height", "width"), [(28, 28), (16, 16), (40, 36)])
@pytest.mark.parametrize(("depth", "channels"), [(1, 1), (1, 3), (3, 3), (3, 1)])
def test_as_pillow_resizes_each(height, width, depth, channels, monkeypatch):
    """Noise, where a neighbour's row would be seen; in parts of 3, the last one of a single one."""
    monkeypatch.setattr(part, "TOGETHER", 3)
    shape = (7, height, width, depth)
    noise = torch.randint(256, shape, dtype=torch.uint8, generator=generator("noise")).numpy()
    found = Part(np.arange(7), noise).take(torch.arange(7), 32, channels)
    assert found.shape == (7, channels, 32, 32)
    for given, image in zip(noise, found, strict=True):
        plain = Image.fromarray(given[..., 0] if depth == 1 else given)
        alone = plain.convert("L" if channels == 1 else "RGB").resize(
            (32, 32), Image.Resampling.BILINEAR
        )
        pixels = torch.from_numpy(np.array(alone)).view(32, 32, channels).permute(2, 0, 1)
        assert torch.equal(image, pixels)
