"""Rotated MNIST: which way it turns, that domains share digits, and the full set's protocol."""

import gzip
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from feddg.data import rotated_mnist
from feddg.data.domain import leave_one_domain_out, nested_sources
from feddg.data.transforms import prepared
from feddg.errors import ConfigError, DataError
from feddg.seeds import generator

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_rotated_mnist.py"


def centre(image):
    """The centre of mass as (x, y), in units of pixels from the upper left corner."""
    image = image.astype(float)
    place = np.arange(28) + 0.5
    return image.sum(0) @ place / image.sum(), image.sum(1) @ place / image.sum()


@pytest.mark.parametrize("degrees", [15, 30, 45, 60, 75])
@pytest.mark.parametrize(("direction", "side"), [("clockwise", 1), ("counter-clockwise", -1)])
def test_direction_by_hand(degrees, direction, side):
    """A dot at 12 o'clock, 10 above the centre (14, 14), moves like the hand of a clock.

    Turned clockwise by a it stands at (14 + 10 sin a, 14 − 10 cos a); the other way it mirrors.
    """
    image = np.zeros((1, 28, 28), np.uint8)
    image[0, 3:5, 13:15] = 200  # four pixels around (14, 4)
    turned = rotated_mnist.rotate(image, rotated_mnist.TURNS[direction] * degrees)
    a = math.radians(degrees)
    expected = (14 + side * 10 * math.sin(a), 14 - 10 * math.cos(a))
    assert centre(turned[0]) == pytest.approx(expected, abs=0.15)


@pytest.mark.parametrize("count", [0, 1, 4, 7])
def test_as_pillow_turns_each(count):
    noise = np.random.default_rng(0).integers(0, 256, (count, 28, 28), np.uint8)
    turned = rotated_mnist.rotate(noise, 15)
    assert turned.shape == noise.shape
    for given, found in zip(noise, turned, strict=True):
        alone = Image.fromarray(given).rotate(15, Image.Resampling.BILINEAR, fillcolor=0)
        assert np.array_equal(found, np.asarray(alone))


def test_outside_is_0_and_nothing_turns_at_0():
    white = np.full((1, 28, 28), 255, np.uint8)
    turned = rotated_mnist.rotate(white, -45)[0]
    assert turned[0, 0] == turned[27, 27] == turned[0, 27] == 0
    assert turned[14, 14] == 255
    assert np.array_equal(rotated_mnist.rotate(white, 0), white)


def test_domains_use_the_documented_turn():
    """m30 is m0 turned clockwise by PIL's −30; the switch turns the other way."""
    digits, _ = rotated_mnist.embedded_digits()
    for direction, degrees in (("", -30), ("clockwise", -30), ("counter-clockwise", 30)):
        x = rotated_mnist.load(direction=direction)["m30"].examples.x
        assert np.array_equal(x[:, 0].numpy(), rotated_mnist.rotate(digits, degrees))


def test_the_embedded_set():
    data = rotated_mnist.load()
    assert data.names == ("m0", "m15", "m30", "m45", "m60", "m75")
    assert data.protocol == "csac"
    for domain in data.domains:
        assert domain.examples.x.shape == (1000, 1, 28, 28)
        assert domain.examples.x.dtype == torch.uint8
        assert domain.examples.y.bincount().tolist() == [100] * 10
    x = prepared(data["m0"].examples.x, data.prepare)
    assert (x.min().item(), x.max().item()) == (0, 1)
    assert rotated_mnist.load(direction="counter-clockwise").protocol == "csac, counter-clockwise"


def test_the_same_digits_in_every_domain():
    """A turn keeps the ink (but for what leaves the frame): row by row it is the same digit."""
    data = rotated_mnist.load()
    first = data["m0"].examples
    ink = first.x.double().sum((1, 2, 3))
    for domain in data.domains:
        assert torch.equal(domain.examples.y, first.y)
        assert torch.allclose(domain.examples.x.double().sum((1, 2, 3)), ink, rtol=0.08)
    assert len({image.numpy().tobytes() for image in first.x}) == 1000


def test_the_same_rows_are_held_out_in_every_domain():
    held = [d.split(0.2, seed=3).splits["val"] for d in rotated_mnist.load().domains]
    assert all(torch.equal(rows, held[0]) for rows in held)
    assert not torch.equal(rotated_mnist.load()["m0"].split(0.2, seed=4).splits["val"], held[0])


def test_leave_one_out_and_nested_sources():
    data = rotated_mnist.load()
    fed = leave_one_domain_out(data, "m45", share=0.1)
    assert [s.name for s in fed.sites] == ["m0", "m15", "m30", "m60", "m75"]
    assert len(fed.sites[0].train) == 900
    steps = nested_sources(data, ["m0", "m45", "m15"], "m45")
    assert [[s.name for s in f.sites] for f in steps] == [["m0"], ["m0", "m15"]]
    assert all(f.targets[0].name == "m45" for f in steps)


def test_small_and_quick():
    file = Path(rotated_mnist.__file__).parent / "files" / rotated_mnist.EMBEDDED
    assert file.stat().st_size < 400_000
    rotated_mnist._embedded.cache_clear()
    start = time.perf_counter()
    rotated_mnist.load()
    assert time.perf_counter() - start < 5  # 0.3 s alone; others may use the machine


def write_idx(path, array):
    head = bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">u4").tobytes()
    raw = head + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


@pytest.fixture
def mnist(tmp_path):
    """A miniature of the full set: 20 + 4 images, each with its own number in the middle."""
    for part, start, n, end in (("train", 0, 20, ""), ("t10k", 20, 4, ".gz")):
        images = np.zeros((n, 28, 28))
        images[:, 13:15, 13:15] = 10 * (1 + np.arange(start, start + n))[:, None, None]
        write_idx(tmp_path / f"{part}-images-idx3-ubyte{end}", images)
        write_idx(tmp_path / f"{part}-labels.idx1-ubyte{end}", np.arange(n) % 10)
    return tmp_path


def test_domainbed_sixths_are_disjoint_interleaved_and_turned_counter_clockwise(mnist):
    data = rotated_mnist.load("domainbed", root=mnist, seed=5)
    images, labels = rotated_mnist.full_mnist(mnist)
    order = torch.randperm(24, generator=generator(5, "rotated-mnist")).numpy()
    for k, (domain, angle) in enumerate(zip(data.domains, rotated_mnist.ANGLES, strict=True)):
        rows = order[k::6]
        expected = rotated_mnist.rotate(images[rows], angle)
        assert np.array_equal(domain.examples.x[:, 0].numpy(), expected)
        assert domain.examples.y.tolist() == labels[rows].tolist()
    assert data.protocol == "domainbed"
    other = rotated_mnist.load("domainbed", root=mnist, seed=6)
    assert not torch.equal(other["m0"].examples.x, data["m0"].examples.x)


def test_damaged_files_are_named(mnist):
    images = mnist / "train-images-idx3-ubyte"
    whole = images.read_bytes()
    cases = {
        whole[:-1]: "announces 15680 values but holds 15679",
        b"<html>": "not an idx file of 3 dimensions",
        whole[:6]: "announces",
        b"": "not an idx file",
    }
    for raw, sentence in cases.items():
        images.write_bytes(raw)
        with pytest.raises(DataError, match=rf"train-images-idx3-ubyte.*{sentence}"):
            rotated_mnist.full_mnist(mnist)
    images.unlink()
    with pytest.raises(DataError, match="has no file train-images-idx3-ubyte"):
        rotated_mnist.full_mnist(mnist)


def test_damaged_gzip_counts_and_labels(mnist):
    labels = mnist / "t10k-labels.idx1-ubyte.gz"
    labels.write_bytes(labels.read_bytes()[:-6])
    with pytest.raises(DataError, match=r"t10k-labels.*cannot be read"):
        rotated_mnist.mnist_part(mnist, "t10k")
    write_idx(labels, np.array([1, 2, 3]))
    with pytest.raises(DataError, match=r"holds 4 images but .* 3 labels"):
        rotated_mnist.mnist_part(mnist, "t10k")
    write_idx(labels, np.array([1, 2, 3, 10]))
    with pytest.raises(DataError, match="label 10 is out of range"):
        rotated_mnist.mnist_part(mnist, "t10k")


def test_images_that_are_not_mnists(mnist):
    images = mnist / "train-images-idx3-ubyte"
    write_idx(images, np.zeros((20, 28, 27)))
    with pytest.raises(DataError, match=r"ubyte: images are \(28, 27\), MNIST's are 28×28"):
        rotated_mnist.full_mnist(mnist)
    images.write_bytes(b"\0\0\x0d" + images.read_bytes()[3:])  # of floats
    with pytest.raises(DataError, match="ubyte is not an idx file of 3 dimensions"):
        rotated_mnist.full_mnist(mnist)


def test_wrong_choices():
    with pytest.raises(ConfigError, match="did you mean 'domainbed'"):
        rotated_mnist.load("domainbet")
    with pytest.raises(ConfigError, match="did you mean 'clockwise'"):
        rotated_mnist.load(direction="clockwse")
    with pytest.raises(DataError, match="by root="):
        rotated_mnist.load("domainbed")
    with pytest.raises(DataError, match="leave out root="):
        rotated_mnist.load(root="somewhere")


def test_the_build_script_explains_itself():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "usage" in done.stderr


def test_domainbed_looks_where_data_sets_lie(mnist, monkeypatch):
    """torchvision leaves the files in MNIST/raw."""
    monkeypatch.setenv("FEDDG_DATA", str(mnist))
    with pytest.raises(DataError, match=r"neither in .*rotated-mnist nor in .*mnist; name the"):
        rotated_mnist.load(protocol="domainbed")
    raw = mnist / "mnist" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for path in [p for p in mnist.iterdir() if p.is_file()]:
        path.rename(raw / path.name)
    assert rotated_mnist.load(protocol="domainbed").names[:2] == ("m0", "m15")
