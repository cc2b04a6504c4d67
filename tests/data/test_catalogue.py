"""Opening by name and path with options as text; and `check`, which collects."""

import json
from pathlib import Path

import pytest
from PIL import Image

from feddg.data.augment import Flip, Jitter
from feddg.data.catalogue import catalogue, open_collection, resolve
from feddg.data.check import check
from feddg.data.transforms import Scale
from feddg.errors import ConfigError, DataError
from feddg.tasks import Classification

CSV = "age,label\n1,ill\n3,well\n5,well\n7,ill\n"


@pytest.fixture
def hospitals(tmp_path):
    root = tmp_path / "hospitals"
    root.mkdir()
    for k, site in enumerate(("a", "b", "c")):
        (root / f"{site}.csv").write_text(CSV.replace("1,ill", f"{k},ill"))
    return root


@pytest.fixture
def pictures(tmp_path):
    root = tmp_path / "pictures"
    for domain in ("art", "photo"):
        for cls in ("cat", "dog"):
            (root / domain / cls).mkdir(parents=True)
            Image.new("RGB", (4, 4)).save(root / domain / cls / "1.png")
    return root


def test_every_entry_is_described():
    specs = catalogue()
    assert list(specs)[:2] == ["rotated-mnist", "heart-disease"]
    assert list(specs)[-3:] == ["folder", "image-list", "csv"]
    assert {"pacs", "vlcs", "office-home", "domainnet"} <= set(specs)
    assert {"camelyon17", "poverty", "fmow"} <= set(specs)
    for name, spec in specs.items():
        assert spec.name == name
        texts = (spec.title, spec.summary, spec.size, spec.licence, spec.source, spec.layout)
        assert all(texts)
        assert spec.protocols
    assert "Switzerland has 8" in specs["heart-disease"].notes


@pytest.mark.parametrize("name", [n for n, s in catalogue().items() if s.embedded])
def test_embedded_sets_open_and_check(name):
    assert open_collection(name).name == name
    report = check(name)
    assert report.ok
    assert sum(r.examples for r in report.rows) == {"rotated-mnist": 6000}.get(name, 920)


def test_options_are_text(pictures, hospitals):
    turned = open_collection("rotated-mnist", direction="counter-clockwise")
    assert turned.protocol == "csac, counter-clockwise"
    grey = open_collection(str(pictures), size="5", channels="1")
    assert grey["art"].examples.x.shape[1:] == (1, 5, 5)
    named = open_collection("csv", root=str(hospitals), classes="well,ill", ignore="")
    assert named.task == Classification(("well", "ill"))
    drawn = (Flip(0.0), Jitter(0.2, 0.2, 0.2, 0.2))
    assert open_collection("rotated-mnist", augment="flip=0,jitter=0.2").augment == drawn
    assert open_collection(str(pictures), size="5", augment="jitter=0.2").augment == drawn[1:]
    site = open_collection("heart-disease", scaling="site", target="va")
    assert site.prepare == ()


def test_the_target_takes_no_part_in_scaling(hospitals):
    one = open_collection(str(hospitals), target="c")
    (hospitals / "c.csv").write_text(CSV.replace("7", "700"))
    assert open_collection(str(hospitals), target="c").prepare == one.prepare
    assert open_collection(str(hospitals)).prepare != one.prepare
    nested = open_collection(str(hospitals), target="c", sources="a")
    assert nested.prepare != one.prepare


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("rotated-mnits", {}, "unknown data set 'rotated-mnits'; did you mean 'rotated-mnist'"),
        ("rotated-mnist", {"protocl": "csac"}, "option of rotated-mnist 'protocl'; did you mean"),
        ("rotated-mnist", {"protocol": "csaq"}, "unknown protocol 'csaq'; did you mean 'csac'"),
        ("rotated-mnist", {"seed": "one"}, "option seed='one' of rotated-mnist is no number"),
        ("heart-disease", {"scaling": "sites"}, "unknown scaling 'sites'; did you mean 'site'"),
        ("folder", {}, "folder needs root="),
        ("rotated-mnist", {"augment": "flop"}, "unknown augmentation 'flop'; did you mean 'flip'"),
    ],
)
def test_misspelt(name, options, sentence):
    with pytest.raises(ConfigError, match=sentence):
        open_collection(name, **options)


def test_paths_that_lead_nowhere(tmp_path, hospitals):
    with pytest.raises(DataError, match=r"there is no folder .*absent"):
        open_collection(str(tmp_path / "absent"))
    with pytest.raises(DataError, match=r"a\.csv is a file; name the folder"):
        open_collection(str(hospitals / "a.csv"))


def test_a_folder_with_the_name_of_an_option_of_another_kind(pictures):
    with pytest.raises(ConfigError, match="unknown option of folder 'label'"):
        open_collection(str(pictures), label="y")


def test_check_collects_every_fault_of_images(pictures):
    for place in ("art/cat", "photo/dog"):
        (pictures / place / "2.jpg").write_bytes(b"broken")
    (pictures / "art" / "cat" / "list.txt").write_text("")
    (pictures / "sketch").mkdir()
    report = check(str(pictures))
    assert not report.ok
    assert [p.split(" ")[0].rsplit("/", 1)[-1] for p in report.problems[1:]] == ["2.jpg", "2.jpg"]
    assert "sketch holds no image" in report.problems[0]
    assert any("list.txt is not an image" in w for w in report.warnings)
    assert json.loads(json.dumps(report.to_dict()))["rows"][0]["domain"] == "art"


def test_check_warns_of_a_class_missing_at_a_site_and_of_few(pictures):
    (pictures / "photo" / "dog" / "1.png").unlink()
    report = check(str(pictures))
    assert report.ok
    assert any("domain 'photo' has no example of: dog;" in w for w in report.warnings)
    assert any("domain 'art' has only 1 of 2 in class 'cat'" in w for w in report.warnings)
    assert report.rows[1].classes == {"cat": 1, "dog": 0}
    assert open_collection(str(pictures), size="4")["photo"].examples.y.tolist() == [0]


def test_check_warns_of_switzerland():
    (warning,) = check("heart-disease").warnings
    assert "'switzerland' has only 8 of 123 in class 'healthy'" in warning


def test_check_collects_every_fault_of_tables(hospitals):
    (hospitals / "a.csv").write_text("age,label\nold,ill\n2\n3,well\n")
    (hospitals / "b.csv").write_text("years,label\n1,ill\n")
    problems = check(str(hospitals)).problems
    assert len(problems) == 4
    for part in ("a.csv, row 2", "a.csv, row 3", "no column 'age'", "no column 'years'"):
        assert any(part in p for p in problems)


def test_check_of_good_tables(hospitals):
    report = check(str(hospitals))
    assert report.ok
    assert [r.classes for r in report.rows] == [{"ill": 2, "well": 2}] * 3
    values = {p.stem: "a,y\n1,0.5\n2,2\n" for p in hospitals.glob("*.csv")}
    for site, text in values.items():
        (hospitals / f"{site}.csv").write_text(text)
    report = check(str(hospitals), task="regression")
    assert report.ok
    assert report.rows[0].classes == {}


def test_check_of_a_lone_domain(pictures, hospitals):
    for site in ("b", "c"):
        (hospitals / f"{site}.csv").unlink()
    assert "one CSV only" in check(str(hospitals)).problems[0]
    assert check(str(hospitals), least="1").ok
    (problem,) = check("rotated-mnist", protocol="domainbed").problems
    assert "domainbed needs the full MNIST" in problem


def test_check_still_refuses_misspelt_options(pictures):
    with pytest.raises(ConfigError, match="did you mean 'size'"):
        check(str(pictures), sise="4")


def test_a_folder_that_is_called_like_a_layout_is_a_folder(tmp_path, monkeypatch):
    (tmp_path / "csv").mkdir()
    for site in ("north", "south"):
        (tmp_path / "csv" / f"{site}.csv").write_text("a,label\n1,0\n2,1\n")
    monkeypatch.chdir(tmp_path)
    assert open_collection("csv").names == ("north", "south")


def test_a_set_is_looked_for_by_its_name(tmp_path, monkeypatch):
    """In $FEDDG_DATA, else in data/ of the current folder, else in a folder of its very name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDDG_DATA", raising=False)
    for place in ("elsewhere/pacs", "data/pacs", "pacs"):
        (tmp_path / place).mkdir(parents=True)
    assert resolve("pacs", {})[1]["root"] == Path("pacs")
    (tmp_path / "pacs").rmdir()
    assert resolve("pacs", {})[1]["root"] == Path("data/pacs")
    monkeypatch.setenv("FEDDG_DATA", str(tmp_path / "elsewhere"))
    assert resolve("pacs", {})[1]["root"] == tmp_path / "elsewhere" / "pacs"
    assert resolve("pacs", {"root": "mine"})[1]["root"] == Path("mine")


def test_a_set_that_is_not_there_says_where_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDDG_DATA", str(tmp_path))
    for name, spec in catalogue().items():
        if spec.embedded or spec.yours:
            continue
        with pytest.raises(DataError) as refused:
            open_collection(name)
        said = str(refused.value)
        assert str(tmp_path / name) in said
        assert spec.source in said
        assert f"feddg data get {name}" in said


def test_options_of_images(pictures):
    data = open_collection(str(pictures), size="4", normalise="half")
    assert data.prepare == (Scale((0.5,), (0.5,)),)
    with pytest.raises(ConfigError, match="did you mean 'half'"):
        open_collection(str(pictures), normalise="halve")


def test_every_set_is_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    for name in catalogue():
        assert f"| `{name}` |" in page
