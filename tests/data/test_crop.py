"""Random resized crop: by hand, and as torchvision's for given rectangles."""

import pytest
import torch

from feddg._torchvision import torchvision
from feddg.data.crop import Crop, at_once, one_by_one, rectangles
from feddg.seeds import generator


def test_reference_by_hand():
    """Columns 1 and 2 of 0, 8, 16, 24 over four pixels: centres at 1/4, 3/4, 5/4, 7/4 of them.

    Within the rectangle 8 and 16 lie at 1/2 and 3/2, so the first and the last repeat the edge
    and the middle ones are a quarter of the way in: 8, 10, 14, 16.
    """
    x = torch.tensor([0, 8, 16, 24], dtype=torch.uint8).expand(1, 1, 4, 4)
    start, size = torch.tensor([[0.0, 1.0]]), torch.tensor([[4.0, 2.0]])
    for sample in (one_by_one, at_once):
        for value in (x, x.double()):
            found = sample(value, start, size)
            assert found.dtype == value.dtype
            assert found[0, 0, 2].round().tolist() == [8, 10, 14, 16]


def test_rectangles_by_hand():
    """Half of 10 rows and all of 20 columns; the rest of 5 rows has 6 places, and 0.99 is the 5th.

    The places count from 0.
    """
    draw = {"extent": torch.tensor([[0.5, 1.0]]), "place": torch.tensor([[0.99, 0.5]])}
    start, size = rectangles(torch.zeros(1, 3, 10, 20), draw)
    assert (start.tolist(), size.tolist()) == ([[5.0, 0.0]], [[5.0, 20.0]])


@pytest.mark.parametrize("shape", [(3, 37, 41), (1, 224, 224)])
def test_reference_is_torchvisions(shape):
    """Antialiased or not: nothing is made smaller. Both ways of ours, to one level."""
    torchvision()
    from torchvision.transforms import functional as tv

    n = 6
    x = torch.randint(256, (n, *shape), dtype=torch.uint8, generator=generator("x"))
    start, size = rectangles(x, Crop(0.2).draw(generator("d"), n))
    loop, batch = one_by_one(x, start, size), at_once(x, start, size)
    for i in range(n):
        (top, left), (high, wide) = start[i].int().tolist(), size[i].int().tolist()
        theirs = tv.resized_crop(x[i], top, left, high, wide, list(shape[1:]), antialias=True)
        for ours in (loop[i], batch[i]):
            assert (ours.int() - theirs.int()).abs().max() <= 1
    assert (loop != x).any()


def test_a_whole_rectangle_changes_nothing():
    x = torch.randint(256, (2, 3, 30, 50), dtype=torch.uint8, generator=generator("x"))
    start, size = torch.zeros(2, 2), torch.tensor([[30.0, 50.0]]).repeat(2, 1)
    assert torch.equal(one_by_one(x, start, size), x)
    assert torch.equal(at_once(x, start, size), x)
