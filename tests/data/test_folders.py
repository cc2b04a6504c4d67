"""Folder trees of images, tensors and torch data sets; and what is wrong with them."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, TensorDataset

from feddg.data import folders, images
from feddg.data.augment import Flip, Shift
from feddg.data.splits import entry
from feddg.data.transforms import IMAGENET, Impute, Scale
from feddg.errors import ConfigError, DataError
from feddg.tasks import Classification, Regression

COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}


def paint(path, colour="red", size=(6, 4)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, COLOURS[colour]).save(path)


@pytest.fixture
def tree(tmp_path):
    """art: two reds and a green; photo: a red and a blue (a class that art has not)."""
    root = tmp_path / "pictures"
    paint(root / "art" / "red" / "1.png")
    paint(root / "art" / "red" / "2.BMP")
    paint(root / "art" / "green" / "1.png", "green")
    paint(root / "photo" / "red" / "x.webp")
    paint(root / "photo" / "blue" / "y.tif", "blue")
    (root / ".git").mkdir()
    (root / "art" / "red" / "notes.txt").write_text("not an image")
    return root


def test_reads_a_tree(tree):
    data = folders.from_images(tree, size=8)
    assert (data.name, data.names, data.protocol) == ("pictures", ("art", "photo"), "folder")
    assert data.task == Classification(("blue", "green", "red"))
    assert data["art"].examples.y.tolist() == [1, 2, 2]
    assert data["photo"].examples.y.tolist() == [0, 2]
    x = data["art"].examples.x
    assert (x.shape, x.dtype) == ((3, 3, 8, 8), torch.uint8)
    assert x[0, :, 4, 4].tolist() == [0, 255, 0]
    assert data.prepare == (Scale(),)


def test_options(tree):
    grey = folders.from_images(tree, size=5, channels=1)["art"].examples.x
    assert grey.shape == (3, 1, 5, 5)
    assert grey[1].unique().item() == 76  # 0.299 · 255: PIL's weight of red
    assert folders.from_images(tree, size=5, normalise="imagenet").prepare == (IMAGENET,)
    with pytest.raises(ConfigError, match="did you mean 'imagenet'"):
        folders.from_images(tree, normalise="imagnet")
    with pytest.raises(DataError, match="channels=4"):
        folders.from_images(tree, channels=4)
    with pytest.raises(DataError, match="for channels=3"):
        folders.from_images(tree, channels=1, normalise="imagenet")


def test_decode_keeps_pixels_and_orientation(tmp_path):
    """Upper left red, the rest blue; a size that fits is not resampled."""
    image = Image.new("RGB", (3, 3), COLOURS["blue"])
    image.putpixel((2, 0), COLOURS["red"])  # x = 2, y = 0: the upper right
    image.save(tmp_path / "a.png")
    pixels = images.decode(tmp_path / "a.png", 3, 3)
    assert pixels[:, 0, 2].tolist() == [255, 0, 0]
    assert pixels[0].sum() == 255


def test_decodes_palettes_with_transparency_and_greys(tmp_path):
    Image.new("P", (2, 2)).save(tmp_path / "p.gif", transparency=0)
    Image.new("P", (2, 2)).save(tmp_path / "p.png", transparency=bytes([0, 9]))
    Image.new("L", (2, 2), 7).save(tmp_path / "l.png")
    for name in ("p.gif", "p.png", "l.png"):
        assert images.decode(tmp_path / name, 4, 3).shape == (3, 4, 4)
    assert images.decode(tmp_path / "l.png", 2, 3).unique().item() == 7


@pytest.mark.parametrize("keep", [0, 30])
def test_a_broken_image_is_named(tree, keep):
    broken = tree / "photo" / "red" / "x.webp"
    broken.write_bytes(broken.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"x\.webp is not a readable image"):
        folders.from_images(tree, size=4)


def test_a_cut_jpeg_is_named(tmp_path):
    path = tmp_path / "cut.jpg"
    Image.effect_noise((64, 64), 90).save(path)
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(DataError, match=r"cut\.jpg is not a readable image"):
        images.decode(path, 8, 3)


def test_one_domain_only(tmp_path):
    paint(tmp_path / "art" / "red" / "1.png")
    paint(tmp_path / "art" / "blue" / "1.png")
    with pytest.raises(DataError, match=r"one domain only \(art\).*<domain>/<class>/<image>"):
        folders.from_images(tmp_path)
    assert folders.from_images(tmp_path, size=4, least=1).names == ("art",)


def test_a_level_too_few(tmp_path):
    paint(tmp_path / "red" / "1.png")
    paint(tmp_path / "blue" / "1.png")
    with pytest.raises(DataError, match="holds images beside its folders"):
        folders.from_images(tmp_path)


def test_empty_folders(tree, tmp_path):
    (tree / "sketch").mkdir()
    with pytest.raises(DataError, match="sketch holds no image"):
        folders.from_images(tree)
    (tree / "sketch").rmdir()
    (tree / "art" / "violet").mkdir()
    with pytest.raises(DataError, match="class 'violet' has no image in any domain"):
        folders.from_images(tree)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match="no domain folder"):
        folders.from_images(tmp_path / "nothing")
    with pytest.raises(DataError, match="nowhere is not a folder"):
        folders.from_images(tmp_path / "nowhere")


def test_one_class_only(tmp_path):
    paint(tmp_path / "art" / "red" / "1.png")
    paint(tmp_path / "photo" / "red" / "1.png")
    with pytest.raises(DataError, match=r"one class only \(red\)"):
        folders.from_images(tmp_path)


X, Y = torch.zeros(4, 3), torch.tensor([0, 1, 1, 0])


def test_from_tensors():
    data = folders.from_tensors({"a": (X, Y), "b": (X[:2], Y[:2])}, ["no", "yes"])
    assert data.names == ("a", "b")
    assert data.task == Classification(("no", "yes"))
    assert data.prepare == ()
    pixels = torch.zeros(4, 1, 2, 2, dtype=torch.uint8)
    assert folders.from_tensors({"a": (pixels, Y)}, "ab").prepare == (Scale(),)
    real = folders.from_tensors({"a": (X, Y.float())}, Regression())
    assert real.task == Regression()


@pytest.mark.parametrize(
    ("domains", "sentence"),
    [
        ({}, "no domain was given"),
        ({"a": (X, Y), "b": (X[:0], Y[:0])}, "'b' has no examples"),
        ({"a": (X, Y[:3])}, "4 inputs but 3 labels"),
        ({"a": (X, Y), "b": (X[:, :2], Y)}, r"\(2,\) torch.float32 in 'b' and \(3,\)"),
        ({"a": (X, Y + 1)}, r"'a', example 1: label 2 is out of range; 2 classes mean 0…1"),
        ({"a": (X, Y - 1)}, r"'a', example 0: label -1 is out of range"),
        ({"a": (X, Y.float())}, "labels must be int64"),
    ],
)
def test_bad_tensors(domains, sentence):
    with pytest.raises(DataError, match=sentence):
        folders.from_tensors(domains, ["no", "yes"])


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_what_is_not_finite_is_named(value):
    x, y = X.clone(), Y.float()
    x[2, 1] = value
    fine = TensorDataset(X, Y)
    sentence = rf"domain 'b', row 2, column 1: {value} is not a finite number"
    with pytest.raises(DataError, match=sentence):
        folders.from_datasets({"a": fine, "b": TensorDataset(x, Y)}, ["no", "yes"])
    y[3] = value
    with pytest.raises(DataError, match=rf"domain 'a', row 3, label: {value} is not"):
        folders.from_tensors({"a": (X, y)}, Regression())


def test_gaps_that_are_filled_may_be_there():
    x = X.clone()
    x[0, 0] = NAN
    filled = (Impute((0.0,) * 3),)
    assert folders.from_tensors({"a": (x, Y)}, ["no", "yes"], prepare=filled).prepare == filled
    x[1, 2] = INF
    with pytest.raises(DataError, match="row 1, column 2: inf"):
        folders.from_tensors({"a": (x, Y)}, ["no", "yes"], prepare=filled)


def test_augmentations_belong_to_the_data(tree):
    drawn = (Flip(), Shift(2))
    assert folders.from_images(tree, size=4, augment="flip,shift=2").augment == drawn
    pixels = torch.zeros(4, 1, 2, 2, dtype=torch.uint8)
    data = folders.from_datasets({"a": TensorDataset(pixels, Y)}, ["no", "yes"], augment=drawn)
    assert data.augment == drawn
    with pytest.raises(DataError, match="augmentations are for images"):
        folders.from_tensors({"a": (X, Y)}, ["no", "yes"], augment="flip")


class Ragged(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, k):
        return torch.zeros(k + 1), 0


def test_from_datasets_equals_from_tensors():
    data = folders.from_datasets({"a": TensorDataset(X + 1, Y)}, ["no", "yes"])
    assert torch.equal(data["a"].examples.x, X + 1)
    assert torch.equal(data["a"].examples.y, Y)


@pytest.mark.parametrize("bad", [Ragged(), TensorDataset(X[:0], Y[:0]), TensorDataset(X)])
def test_bad_datasets(bad):
    with pytest.raises(DataError, match="domain 'a': its data set cannot be stacked"):
        folders.from_datasets({"a": bad}, ["no", "yes"])


def test_a_link_that_leads_nowhere_is_named(tree):
    (tree / "art" / "red" / "lost.png").symlink_to("/nowhere.png")
    with pytest.raises(DataError, match=r"lost\.png is not a readable image"):
        folders.from_images(tree, size=4)


def test_a_file_may_have_any_name_but_a_class_has_one_in_utf_8(tree):
    """Bytes that are no UTF-8 come from the system as surrogates."""
    red = tree / "art" / "red"
    (red / "1.png").rename(red / "\udcff.png")
    data = folders.from_images(tree, size=4)
    assert entry(data["art"], data.task)["examples"] == 3
    red.rename(tree / "art" / "r\udce9d")
    with pytest.raises(DataError, match=r"'r.udce9d' names a folder of .* not in UTF-8; rename it"):
        folders.from_images(tree, size=4)


def test_of_sixteen_bits_the_higher_eight_count(tmp_path):
    """40000 // 256 = 156."""
    path = tmp_path / "deep.png"
    Image.fromarray(np.full((4, 4), 40000, np.uint16)).save(path)
    assert images.decode(path, 4, 3).unique().tolist() == [156]
