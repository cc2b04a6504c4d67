"""Every benchmark from every layout: domains, classes, counts and splits; and what is damaged."""

import pickle

import numpy as np
import pytest
import torch

from feddg.data.catalogue import open_collection, recognised
from feddg.data.check import check
from feddg.data.sets.domainnet import CLASSES as KINDS
from feddg.data.sets.domainnet import DOMAINNET
from feddg.data.sets.pacs import CLASSES as PACS
from feddg.errors import DataError
from feddg.tasks import Classification
from tests.data.miniatures import (
    STYLES,
    WIDE,
    digits_dg,
    home_archive,
    home_dassl,
    home_ga,
    office_fedbn,
    office_images,
    pacs_archive,
    pacs_dassl,
    pacs_flat,
    pacs_jigen,
    pacs_plain,
    pacs_shouted,
    ten,
    terra_archive,
    terra_folders,
    vlcs_dassl,
    vlcs_domainbed,
    vlcs_jigen,
)
from tests.data.wild import STEP, tree

HALVES = {"train": 7, "val": 7, "test": 14}
CASES = [  # data set, how it lies there, images per class and domain, sizes of the splits
    ("pacs", pacs_plain, 2, {}),
    ("pacs", pacs_shouted, 2, {}),
    ("pacs", pacs_archive, 2, HALVES),
    ("pacs", pacs_dassl, 2, HALVES),
    ("pacs", pacs_jigen, 2, HALVES),
    ("pacs", pacs_flat, 2, HALVES),
    ("vlcs", vlcs_dassl, 6, {"train": 10, "val": 10, "test": 10}),
    ("vlcs", vlcs_domainbed, 2, {}),
    ("vlcs", vlcs_jigen, 2, {"train": 5, "test": 5}),
    ("office-home", home_archive, 1, {}),
    ("office-home", home_dassl, 2, {"train": 65, "val": 65}),
    ("office-home", home_ga, 1, {}),
    ("office-caltech10", office_images, 2, {}),
    ("office-caltech10", office_fedbn, 2, {}),
    ("terra-incognita", terra_folders, 2, {}),
    ("terra-incognita", terra_archive, 2, {}),
    ("domainnet", ten, 2, {"train": 10, "test": 10}),
    ("digits-dg", digits_dg, 2, {"train": 10, "val": 10}),
]
DOMAINS = {
    "pacs": STYLES,
    "vlcs": ("caltech", "labelme", "pascal", "sun"),
    "office-home": ("art", "clipart", "product", "real_world"),
    "office-caltech10": ("amazon", "caltech", "dslr", "webcam"),
    "terra-incognita": ("location_100", "location_38", "location_43", "location_46"),
    "domainnet": WIDE,
    "digits-dg": ("mnist", "mnist_m", "svhn", "syn"),
}


@pytest.mark.parametrize(
    ("name", "lay", "each", "splits"), CASES, ids=[lay.__name__ for _, lay, *_ in CASES]
)
def test_a_layout_gives_its_domains_classes_and_splits(name, lay, each, splits, tmp_path):
    lay(tmp_path)
    subset = {"classes": "10"} if name == "domainnet" else {}
    data = open_collection(name, root=str(tmp_path), size="4", **subset)
    assert data.names == DOMAINS[name]
    classes = data.task.outputs
    for domain in data.domains:
        y, x = domain.examples.y, domain.examples.x
        assert y.bincount(minlength=classes).tolist() == [each] * classes
        greys = x.float().mean((1, 2, 3))
        if name != "domainnet":  # whose miniature has classes beside
            assert torch.allclose(greys, STEP * y.float(), atol=1.5), "labels follow the images"
        assert {k: len(rows) for k, rows in domain.splits.items()} == splits
    assert data.protocol.startswith("official" if splits else "seeded")
    order = {pacs_archive: "from 1", pacs_jigen: "from 0", ten: "an order of classes of their own"}
    assert order.get(lay, "") in data.protocol
    assert (
        open_collection(name, root=str(tmp_path), size="4", split="none", **subset)[
            data.names[0]
        ].splits
        == {}
    )


@pytest.mark.parametrize(
    ("name", "lay"), [c[:2] for c in CASES if c[1] not in (ten, terra_archive, pacs_flat)]
)
def test_a_folder_is_recognised_by_its_layout(name, lay, tmp_path):
    lay(tmp_path)
    assert recognised(tmp_path).name == name
    wrapped = [p for p in tmp_path.iterdir() if p.is_dir() and "list" not in p.name.lower()]
    if len(wrapped) == 1:
        assert recognised(wrapped[0]).name == name


def test_somebodys_own_folder_is_no_benchmark(tmp_path):
    """All of PACS' domains, but one class too few, in one domain or in all, and one too many."""
    tree(tmp_path / "few", STYLES, PACS[:6])
    tree(tmp_path / "many", STYLES, (*PACS, "zebra"))
    tree(tmp_path / "uneven", STYLES[:3], PACS)
    tree(tmp_path / "uneven", STYLES[3:], PACS[1:])
    for name in ("few", "uneven"):
        assert recognised(tmp_path / name).name == "folder"
    assert recognised(tmp_path / "many").name == "folder"


def test_345_classes_of_domainnet_and_one_missing_in_painting(tmp_path):
    kinds = KINDS.split()
    tree(tmp_path, WIDE[:2] + WIDE[3:], kinds, each=1)
    tree(tmp_path, ("painting",), [k for k in kinds if k != "t-shirt"], each=1)
    found = DOMAINNET.survey(tmp_path)
    assert len(kinds) == len(set(kinds)) == len(found.classes) == 345
    assert found.problems == ()
    assert any("painting has no class folder t-shirt" in w for w in found.warnings)
    assert {d: len(x.paths) for d, x in found.domains.items()} == {
        d: 345 - (d == "painting") for d in WIDE
    }


def test_office_caltech_home_has_eight_classes_in_seven_domains(tmp_path, monkeypatch):
    office_images(tmp_path / "office-caltech10")
    home_archive(tmp_path / "office-home")
    monkeypatch.setenv("FEDDG_DATA", str(tmp_path))
    data = open_collection("office-caltech-home", size="4")
    assert data.names == ("amazon", "webcam", "caltech", "art", "clipart", "product", "real_world")
    assert data.task == Classification((
        "backpack", "bike", "calculator", "keyboard", "laptop", "monitor", "mouse", "mug"
    ))  # fmt: skip
    assert [len(d.examples) for d in data.domains] == [16, 16, 16, 8, 8, 8, 8]
    grey = data["amazon"].examples.x.float().mean((1, 2, 3)) / STEP
    assert grey.round().unique().tolist() == [0, 1, 2, 4, 5, 6, 7, 8], "not headphones, projector"


def test_official_splits_can_be_asked_for(tmp_path):
    pacs_plain(tmp_path)
    with pytest.raises(DataError, match="without official lists or split folders"):
        open_collection("pacs", root=str(tmp_path), split="official", size="4")


def test_the_check_sets_counts_beside_the_published_ones(tmp_path):
    pacs_dassl(tmp_path)
    report = check(str(tmp_path))
    assert (report.data, report.ok) == ("pacs", True)
    assert "images/<domain>/<class>/<image>; lists such as" in report.layout
    assert "count classes from 1" in report.layout
    row = report.rows[0]
    assert (row.domain, row.examples, row.published) == ("art_painting", 14, 2048)
    assert row.published_classes["dog"] == 379
    assert row.splits == HALVES
    assert any(
        "'sketch' has 14 examples, 3929 are published: dog 2 of 772," in w for w in report.warnings
    )


def test_a_total_alone_is_published_of_terra(tmp_path):
    terra_folders(tmp_path)
    report = check("terra-incognita", root=str(tmp_path))
    assert report.rows[0].published is None
    assert "80 images in all, where 24788 are published" in report.warnings[0]


def test_a_set_that_is_not_whole_is_named_by_the_check_alone(tmp_path):
    pacs_plain(tmp_path)
    (tmp_path / "PACS" / "photo").rename(tmp_path / "PACS" / "pictures")
    report = check(str(tmp_path / "PACS"))
    assert (report.data, report.ok) == ("folder", True)
    assert "looks like PACS, not all of it; see what is missing by `feddg" in report.warnings[0]
    tree(tmp_path / "own", ("day", "night"), ("cat", "dog"))
    assert not any("looks like" in w for w in check(str(tmp_path / "own")).warnings)


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_fedbns_lists_are_read_without_unpickling(kind, tmp_path):
    """Paths and the names of classes, pickled as a pair or as one array of two rows."""
    office_fedbn(tmp_path)
    base = tmp_path / "office_caltech_10"
    for domain in ("amazon", "caltech", "dslr", "webcam"):
        for part, n in (("train", 0), ("test", 1)):
            names = sorted(p.name for p in (base / domain).iterdir())
            paths = [f"office_caltech_10/{domain}/{c}/pic_{n:03}.jpg" for c in names]
            (base / f"{domain}_{part}.pkl").write_bytes(pickle.dumps(kind([paths, names])))
    data = open_collection("office-caltech10", root=str(tmp_path), size="4")
    assert {k: len(rows) for k, rows in data["dslr"].splits.items()} == {"train": 10, "test": 10}
    assert "lists such as" in data.protocol
    (base / "dslr_train.pkl").write_bytes(pickle.dumps([1, 2, 3]))
    with pytest.raises(DataError, match=r"dslr_train\.pkl holds no paths with their classes"):
        open_collection("office-caltech10", root=str(tmp_path), size="4")
