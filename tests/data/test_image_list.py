"""Images by a CSV of path,label,domain[,split]: what it gives, and every row that is wrong."""

import pytest

from feddg.data.catalogue import open_collection
from feddg.data.check import check
from feddg.errors import DataError
from feddg.tasks import Classification
from tests.data.wild import picture, write

ROWS = ("a/1.png,cat,day,train", "a/2.png,dog,day,test", "b/3.png,dog,night,train",
        "b/4.png,cat,night,val")  # fmt: skip


@pytest.fixture
def pictures(tmp_path):
    for row in ROWS:
        path, label, *_ = row.split(",")
        picture(tmp_path / path, ("cat", "dog").index(label))
    return tmp_path


def listed(root, rows=ROWS, header="path,label,domain,split", name="images.csv"):
    return write(root / name, [header, *rows])


def test_a_list_is_opened_by_its_path_by_its_folder_or_by_name(pictures):
    file = listed(pictures)
    for name, options in (
        (file, {}), (pictures, {}), ("image-list", {"root": str(file)}),
    ):  # fmt: skip
        data = open_collection(str(name), size="4", **options)
        assert data.names == ("day", "night")
        assert data.task == Classification(("cat", "dog"))
        assert data["day"].examples.y.tolist() == [0, 1]
        assert data["day"].examples.x.float().mean((1, 2, 3)).round().tolist() == [0, 3]
        splits = {d.name: {k: v.tolist() for k, v in d.splits.items()} for d in data.domains}
        assert splits == {"day": {"train": [0], "test": [1]}, "night": {"train": [0], "val": [1]}}


def test_without_splits_and_with_images_elsewhere(pictures, tmp_path):
    (tmp_path / "lists").mkdir()
    rows = [row.rpartition(",")[0] for row in ROWS]
    file = listed(tmp_path / "lists", rows, "path,label,domain")
    data = open_collection(str(file), images=str(pictures), size="4")
    assert data["night"].splits == {}
    assert data.protocol == "seeded split; images listed in images.csv"


def test_classes_are_ordered_by_number_where_they_are_numbers(pictures):
    rows = [row.replace("cat", "10").replace("dog", "9") for row in ROWS]
    assert open_collection(str(listed(pictures, rows)), size="4").task == Classification(
        ("9", "10")
    )


def test_the_check_knows_it(pictures):
    listed(pictures)
    report = check(str(pictures))
    assert (report.data, report.ok, report.layout) == (
        "image-list", True, "images listed in images.csv"
    )  # fmt: skip
    assert report.rows[0].splits == {"train": 1, "val": 0, "test": 1}


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("night,val", "night,valid", "images.csv, row 5: split 'valid' is none of train, val"),
        ("a/1.png", "a/9.png", "images.csv, row 2: there is no file .*a/9.png"),
        ("day,test", "day", "images.csv, row 3: 3 cells where the header has 4"),
        ("cat,day", ",day", "images.csv, row 2: label is empty"),
        ("dog,night", "dog,ni/ght", "images.csv, row 4: 'ni/ght' cannot name a domain"),
    ],
)
def test_a_row_that_is_wrong_is_named(old, new, sentence, pictures):
    listed(pictures, [row.replace(old, new) for row in ROWS])
    with pytest.raises(DataError, match=sentence):
        open_collection(str(pictures), size="4")
    assert sentence.split(":")[0] in check(str(pictures)).problems[0]


@pytest.mark.parametrize(
    ("header", "rows", "sentence"),
    [
        ("path,label,site,split", ROWS, "images.csv has no column 'domain', it has: path, label"),
        ("path,label,domain,split", (), "images.csv lists no image"),
        ("path,label,domain,split", ROWS[:1], "one class only .cat."),
        ("path,label,domain,split", ROWS[:2], "has 1 domain where at least 2"),
    ],
)
def test_lists_that_cannot_be_used(header, rows, sentence, pictures):
    file = listed(pictures, rows, header)
    with pytest.raises(DataError, match=sentence):
        open_collection("image-list", root=str(file), size="4")


def test_a_broken_image_is_named(pictures):
    listed(pictures)
    (pictures / "a" / "2.png").write_bytes(b"\x89PNG")
    with pytest.raises(DataError, match=r"2\.png is not a readable image"):
        open_collection(str(pictures), size="4")
    assert "2.png is not a readable image" in check(str(pictures)).problems[0]


def test_a_list_made_on_windows(pictures):
    """Backslashes, lines that end in CR LF, a byte order mark."""
    text = listed(pictures).read_text().replace("/", "\\").replace("\n", "\r\n")
    (pictures / "images.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert [len(d.examples) for d in open_collection(str(pictures), size="4").domains] == [2, 2]


def test_what_is_no_list(tmp_path):
    with pytest.raises(DataError, match="is, or has, no CSV that lists images"):
        open_collection("image-list", root=str(tmp_path))
