"""Digit-Five in each form that its digits are given away in; sampling; damage by name."""

import gzip
import pickle

import numpy as np
import pytest
import torch
from scipy.io import savemat

from feddg.data.catalogue import open_collection, recognised
from feddg.data.check import check
from feddg.data.digits.part import of_arrays
from feddg.data.digits.sources import digits
from feddg.data.sets.digit_five import load
from feddg.errors import ConfigError, DataError
from tests.data.digits.forms import (
    FORMS,
    GREY,
    TRAIN,
    dann_mnist_m,
    grey,
    house_numbers,
    idx,
    mnist_gz,
    mnist_idx,
    usps_libsvm,
    usps_pickle,
)
from tests.data.wild import STEP, picture


@pytest.mark.parametrize(("domain", "form"), FORMS)
def test_a_form_gives_digits_and_labels(domain, form, tmp_path):
    """The grey of an image says its digit, whatever range or order of axes the file has."""
    if form is mnist_idx or form is mnist_gz:
        form(tmp_path / "mnist")
    else:
        form(tmp_path)
    data = load(tmp_path, (domain,), train=0, test=0, repeat=1)
    assert (data.name, data.names) == ("digit-five", (domain,))
    examples = data[domain].examples
    assert (examples.store.dtype, examples.shape) == (torch.uint8, (3, 32, 32))
    extra = form is usps_libsvm
    splits = data[domain].splits
    assert (len(splits["train"]), len(splits["test"])) == (20 + extra, 10 + extra)
    step = STEP if examples.x.max() < GREY * 8 and not extra else GREY
    seen = examples.x.float().mean((1, 2, 3))
    part = examples.y[splits["train"]]
    assert part[:20].sort()[0].tolist() == sorted(TRAIN.tolist())
    assert examples.y[splits["test"]][:10].sort()[0].tolist() == list(range(10))
    even = examples.x.float().std((1, 2, 3)) < 3
    assert even.sum() == 30
    assert torch.allclose(seen[even], step * examples.y[even].float(), atol=1.5)


@pytest.fixture
def three(tmp_path):
    mnist_idx(tmp_path / "mnist")
    dann_mnist_m(tmp_path)
    usps_pickle(tmp_path)
    return tmp_path


def test_a_part_of_it_is_sampled_by_seed(three):
    options = {"root": str(three), "domains": "mnist,mnist_m,usps", "train": "12", "test": "5"}
    data = open_collection("digit-five", **options)
    assert data.names == ("mnist", "mnist_m", "usps")
    assert [len(d.examples) for d in data.domains] == [17, 17, 30]
    assert [len(d.splits["train"]) for d in data.domains] == [12, 12, 60], "USPS counts thrice"
    assert "usps from a pickle of arrays" in data.protocol
    again = open_collection("digit-five", **options)
    assert torch.equal(again["mnist"].examples.y, data["mnist"].examples.y)
    other = open_collection("digit-five", **options, seed="1")
    assert not torch.equal(other["mnist"].examples.y, data["mnist"].examples.y)
    assert open_collection("digit-five", **options, split="none")["mnist"].splits == {}
    small = open_collection("digit-five", **options, size="16", channels="1")
    assert small["mnist_m"].examples.shape == (1, 16, 16)


def test_what_counts_thrice_is_held_out_as_a_whole(three):
    usps = load(three, ("usps",))["usps"].split(0.2, seed=0)
    assert len(usps.splits["val"]) == 4
    assert len(usps.splits["train"]) == 48
    assert not torch.isin(usps.splits["train"], usps.splits["val"]).any()


def test_it_is_recognised_and_checked(three):
    assert recognised(three).name == "digit-five"
    report = check(str(three), domains="mnist,usps", train="12")
    assert report.ok
    assert [(r.domain, r.examples, r.published) for r in report.rows] == [
        ("mnist", 22, 34000), ("usps", 30, 9298)
    ]  # fmt: skip


def test_a_domain_that_is_not_there(three):
    with pytest.raises(DataError, match=r"has no svhn, syn of .* by domains=mnist,mnist_m,usps"):
        load(three)
    (three / "svhn").mkdir()
    (three / "svhn" / "notes.txt").write_text("not yet here")
    with pytest.raises(
        DataError, match=r"has no digits of svhn in a known form; expected a folder"
    ):
        load(three, ("svhn",))
    with pytest.raises(ConfigError, match="unknown domain of digit-five 'mnits'"):
        load(three, ("mnits",))
    with pytest.raises(ConfigError, match="train=-1"):
        load(three, ("mnist",), train=-1)


def magic(root):
    path = root / "mnist" / "MNIST" / "raw" / "train-images-idx3-ubyte"
    path.write_bytes(b"\0\0\x0d" + path.read_bytes()[3:])
    return "mnist", "train-images-idx3-ubyte is not an idx file of 3 dimensions"


def idx_cut(root):
    path = root / "mnist" / "MNIST" / "raw" / "t10k-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-100])
    return "mnist", "t10k-images-idx3-ubyte announces 7840 values but holds 7740"


def idx_counts(root):
    idx(root / "mnist" / "MNIST" / "raw" / "train-labels-idx1-ubyte", TRAIN[:19])
    return "mnist", "holds 20 images but .*train-labels-idx1-ubyte 19 labels"


def key_gone(root):
    savemat(root / "svhn_train.mat", {"images": grey(TRAIN)})
    return "svhn", r"svhn_train\.mat has none of the arrays .* it has: images"


def matlab_broken(root):
    (root / "svhn_train.mat").write_bytes(b"MATLAB 5.0 MAT-file" + b"\0" * 200)
    return "svhn", r"svhn_train\.mat is no readable \.mat file"


def part_gone(root):
    house_numbers(root)
    (root / "svhn" / "test_32x32.mat").unlink()
    return "svhn", r"has the train part of svhn as \.mat files, but no test part"


def label_out_of_range(root):
    savemat(root / "svhn_train.mat", {"X": grey(TRAIN), "y": TRAIN + 2})
    return "svhn", r"svhn_train\.mat: label 11 is out of range 0…9"


def labels_too_few(root):
    savemat(root / "svhn_train.mat", {"X": grey(TRAIN), "y": TRAIN[:7]})
    return "svhn", r"svhn_train\.mat has 20 images but 7 labels"


def pickle_that_calls(root):
    class Runs:
        def __reduce__(self):
            return print, ("it ran",)

    (root / "usps_28x28.pkl.gz").write_bytes(gzip.compress(pickle.dumps([Runs()])))
    return "usps", r"usps_28x28\.pkl\.gz is a pickle that would call builtins\.print"


def image_not_listed(root):
    (root / "mnist_m" / "mnist_m_train" / "00000007.png").unlink()
    return "mnist_m", r"mnist_m_train_labels\.txt names 00000007\.png, which is not in"


def listed_label(root):
    path = root / "mnist_m" / "mnist_m_test_labels.txt"
    path.write_text(path.read_text().replace("03.png 3", "03.png 33"))
    return "mnist_m", r"mnist_m_test_labels\.txt, line 4: label 33 is out of range"


def image_broken(root):
    (root / "mnist_m" / "mnist_m_train" / "00000007.png").write_bytes(b"\x89PNG")
    return "mnist_m", r"00000007\.png is not a readable image"


def nameless(root):
    picture(root / "svhn" / "train_images" / "three.png", 3)
    return "svhn", r"three\.png says by no name which digit it is"


def not_libsvm(root):
    (root / "usps_28x28.pkl.gz").unlink()
    (root / "usps").mkdir()
    (root / "usps" / "usps").write_text("1 1:0.5 300:1\n")
    return "usps", "usps is not in LIBSVM's form"


def npz_of_objects(root):
    (root / "svhn").mkdir()
    np.savez(root / "svhn" / "a.npz", X=np.array([None]), y=TRAIN, allow_pickle=True)
    return "svhn", r"a\.npz is no readable \.npz"


@pytest.mark.parametrize(
    "damage",
    [magic, idx_cut, idx_counts, key_gone, matlab_broken, part_gone, label_out_of_range,
     labels_too_few, pickle_that_calls, image_not_listed, listed_label, image_broken, nameless,
     not_libsvm, npz_of_objects],
)  # fmt: skip
def test_damage_is_refused_by_name(damage, three):
    domain, sentence = damage(three)
    with pytest.raises(DataError, match=sentence):
        load(three, (domain,))


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        (np.full((3, 4, 4), 300), "pixels from 300 to 300"),
        (np.full((3, 4, 4), -1.0) * [[[1], [-8], [1], [1]]], "pixels from -1 to 8"),
        (np.zeros((3, 7)), r"shape \(3, 7\)"),
        (np.array(["a"] * 3), "images that are no numbers"),
    ],
)
def test_images_of_no_known_kind(images, sentence, tmp_path):
    with pytest.raises(DataError, match=f"a.mat.*{sentence}"):
        of_arrays(images, np.zeros(3), tmp_path / "a.mat")


def test_matlab_7_3_is_said(tmp_path):
    head = b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM"
    (tmp_path / "svhn_train.mat").write_bytes(head + b"\0" * 400)
    with pytest.raises(DataError, match=r"svhn_train\.mat is of MATLAB 7\.3"):
        digits(tmp_path, "svhn")
