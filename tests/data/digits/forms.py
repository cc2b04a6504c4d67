"""Digits in miniature, in the files that they are given away in: the grey says the digit."""

import bz2
import gzip
import pickle
import struct

import numpy as np
from scipy.io import savemat

from tests.data.wild import picture, write

TRAIN, TEST = np.arange(20) % 10, np.arange(10) % 10
GREY = 20  # of a digit d: 20 d


def grey(labels, shape=(28, 28), scale=1.0, offset=0.0, kind="u1"):
    """A picture of one grey per label, stretched as a file of the kind has it."""
    x = np.ones((len(labels), *shape)) * (GREY * labels).reshape(-1, *[1] * len(shape))
    return (x * scale + offset).astype(kind)


def idx(path, array, zipped=False):
    head = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    raw = head + array.astype("u1").tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(raw) if zipped else raw)


def mnist_idx(root, zipped=False):
    end = ".gz" if zipped else ""
    for part, labels in (("train", TRAIN), ("t10k", TEST)):
        idx(root / "MNIST" / "raw" / f"{part}-images-idx3-ubyte{end}", grey(labels), zipped)
        idx(root / "MNIST" / "raw" / f"{part}-labels-idx1-ubyte{end}", labels, zipped)


def mnist_gz(root):
    mnist_idx(root, zipped=True)


def mnist_npz(root):
    (root / "mnist").mkdir()
    np.savez(root / "mnist" / "mnist.npz", x_train=grey(TRAIN), y_train=TRAIN,
             x_test=grey(TEST), y_test=TEST)  # fmt: skip


def kd3a_mnist(root):
    """Side by side in one folder; 32×32, one-hot labels."""
    hot = np.eye(10)
    savemat(root / "mnist_data.mat", {
        "train_32": grey(TRAIN, (32, 32)), "test_32": grey(TEST, (32, 32)),
        "label_train": hot[TRAIN], "label_test": hot[TEST],
    })  # fmt: skip


def kd3a_mnist_m(root):
    hot = np.eye(10)
    savemat(root / "mnistm_with_label.mat", {
        "train": grey(TRAIN, (28, 28, 3)), "test": grey(TEST, (28, 28, 3)),
        "label_train": hot[TRAIN], "label_test": hot[TEST],
    })  # fmt: skip


def dann_mnist_m(root):
    home = root / "mnist_m"
    for part, labels in (("train", TRAIN), ("test", TEST)):
        for k, label in enumerate(labels.tolist()):
            picture(home / f"mnist_m_{part}" / f"{k:08}.png", label, 32)
        lines = [f"{k:08}.png {label}" for k, label in enumerate(labels.tolist())]
        write(home / f"mnist_m_{part}_labels.txt", lines)


def dassl_mnist_m(root):
    for part, labels in (("train", TRAIN), ("test", TEST)):
        for k, label in enumerate(labels.tolist()):
            picture(root / "digit5" / "mnist_m" / f"{part}_images" / f"{k:03}_{label}.jpg", label)


def syn_folders(root):
    for part, labels in (("train", TRAIN), ("test", TEST)):
        for k, label in enumerate(labels.tolist()):
            picture(root / "syn" / part / str(label) / f"{k}.png", label)


def house_numbers(root, stem=""):
    """SVHN's own: height, width, colour, number; a zero is a ten."""
    for part, labels in (("train", TRAIN), ("test", TEST)):
        x = grey(labels, (32, 32, 3)).transpose(1, 2, 3, 0)
        path = root / "svhn" / f"{part}_32x32.mat" if not stem else root / f"{stem}_{part}.mat"
        path.parent.mkdir(exist_ok=True)
        savemat(path, {"X": x, "y": np.where(labels == 0, 10, labels)[:, None]})


def synth_mat(root):
    house_numbers(root, "synth")


def syn_number(root):
    savemat(root / "syn_number.mat", {
        "train_data": grey(TRAIN, (32, 32, 3)), "train_label": TRAIN[:, None],
        "test_data": grey(TEST, (32, 32, 3)), "test_label": TEST[:, None],
    })  # fmt: skip


def usps_cells(root):
    """KD3A's: a 2×2 cell array, N×1×28×28 in 0…1."""
    cells = np.empty((2, 2), object)
    for k, labels in enumerate((TRAIN, TEST)):
        cells[k, 0] = grey(labels, (1, 28, 28), 1 / 255, kind="f4")
        cells[k, 1] = np.where(labels == 0, 10, labels)[:, None]
    savemat(root / "usps_28x28.mat", {"dataset": cells})


def usps_libsvm(root):
    """−1…1 at 256 places that count from 1; the label of a digit d is d + 1."""
    (root / "usps").mkdir()
    for name, labels in (("usps.bz2", TRAIN), ("usps.t.bz2", TEST)):
        lines = [
            f"{d + 1} " + " ".join(f"{k + 1}:{GREY * d / 127.5 - 1:.6f}" for k in range(256))
            for d in labels
        ]
        text = "\n".join([*lines, "1 1:1.0"])  # a zero that is not even
        (root / "usps" / name).write_bytes(bz2.compress(text.encode()))


def usps_pickle(root):
    pairs = [[grey(p, (1, 28, 28), 1 / 255, kind="f4"), p] for p in (TRAIN, TEST)]
    (root / "usps_28x28.pkl.gz").write_bytes(gzip.compress(pickle.dumps(pairs, 2)))


FORMS = [
    ("mnist", mnist_idx), ("mnist", mnist_gz), ("mnist", mnist_npz), ("mnist", kd3a_mnist),
    ("mnist_m", kd3a_mnist_m), ("mnist_m", dann_mnist_m), ("mnist_m", dassl_mnist_m),
    ("svhn", house_numbers), ("syn", synth_mat), ("syn", syn_number), ("syn", syn_folders),
    ("usps", usps_cells), ("usps", usps_libsvm), ("usps", usps_pickle),
]  # fmt: skip
