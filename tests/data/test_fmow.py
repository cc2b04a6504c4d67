"""FMoW from WILDS' folder: years as domains, regions as groups."""

import pytest
import torch
import torch.nn.functional as F

from feddg.data.domain import official_splits
from feddg.data.sets.fmow import CATEGORIES, REGIONS, load
from feddg.errors import DataError
from tests.data import wilds_layouts


@pytest.fixture
def place(tmp_path):
    return wilds_layouts.fmow(tmp_path)


def regions(domain):
    return ["Other" if g < 0 else REGIONS[g] for g in domain.examples.groups.tolist()]


def test_years_are_domains_and_regions_groups(place):
    """Rows 2 (seq), 5 (train in an unseen year) and 10 (val in a test year) are used nowhere."""
    data = load(place, size=8)
    assert data.names == ("2002", "2012", "2013", "2015", "2016", "2017")
    rows = {d.name: [int(f[15:-4]) for f in d.files] for d in data.domains}
    assert rows == {"2002": [0, 1], "2012": [3, 4], "2013": [6], "2015": [7], "2016": [8],
                    "2017": [9]}  # fmt: skip
    assert data["2012"].examples.x[:, 0, 0, 0].tolist() == [3, 4]  # the red of images 3 and 4
    assert regions(data["2002"]) == ["Africa", "Europe"]
    assert regions(data["2012"]) == ["Asia", "Other"]  # Kosovo has no region, nor has Antarctica
    assert regions(data["2016"]) == ["Other"]
    assert [CATEGORIES[k] for k in data["2012"].examples.y] == ["airport"] * 2
    assert data.task.outputs == 62


def test_the_official_split(place):
    fed = official_splits(load(place, size=8))
    assert [(s.name, len(s.train)) for s in fed.sites] == [("2002", 1), ("2012", 1)]
    assert [len(s.val) for s in fed.sites if s.val is not None] == [1]
    assert [d.name for d in fed.validation] == ["2013", "2015"]
    assert [d.name for d in fed.targets] == ["2016", "2017"]


def test_the_worst_region_is_over_the_pooled_years_without_other(place):
    """Test: a dam in no region (wrong) and a barn in Africa (right): the worst region has 1."""
    data = load(place, size=8, unseen="pooled")
    assert data.names == ("2002", "2012", "validation", "test")
    test = data["test"].examples
    assert regions(data["test"]) == ["Other", "Africa"]
    said = F.one_hot(torch.tensor([0, CATEGORIES.index("barn")]), 62).float()
    found = data.task.scores(said, test.y, test.groups)
    assert (found["accuracy"], found["worst_group"]) == (0.5, 1.0)


def test_times_count_in_utc(place):
    path = place / "rgb_metadata.csv"
    path.write_text(path.read_text().replace("2012-12-31T23:30:00Z", "2012-12-31T23:30:00-01:00"))
    data = load(place, size=8)
    assert len(data["2012"].examples) == 1  # it is 2013 by then, where `test` is used nowhere
    assert len(data["2013"].examples) == 1


@pytest.mark.parametrize(
    ("file", "before", "after", "sentence"),
    [
        ("rgb_metadata", "train,0.jpg", "dev,0.jpg", "row 2: split 'dev' is not one of: train, v"),
        ("rgb_metadata", "zoo,KEN", "zo,KEN", "row 2: category 'zo' is not one of: airport, .*…"),
        ("rgb_metadata", "zoo,KEN", "zoo,", "row 2: no country_code"),
        ("rgb_metadata", "2002-05-01T09:00:00Z", "May", "row 2: timestamp 'May' is no date"),
        ("rgb_metadata", "2002-05-01", "2001-05-01", "row 2: '2001.*' is not in 2002-2017"),
        ("rgb_metadata", "country_code", "country", "has no column 'country_code'"),
        ("country_code_mapping", "Africa", "Afrika", "row 2: region 'Afrika' is not one of: Afri"),
    ],
)
def test_damaged_metadata(place, file, before, after, sentence):
    path = place / f"{file}.csv"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(DataError, match=rf"{file}\.csv.*{sentence}"):
        load(place)


def test_damaged_files_are_named(place):
    (place / "images" / "rgb_img_3.png").write_bytes(b"\x89PNG")
    with pytest.raises(DataError, match=r"rgb_img_3\.png is not a readable image"):
        load(place, size=8)
    path = place / "rgb_metadata.csv"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    with pytest.raises(DataError, match=r"rgb_metadata\.csv has no rows"):
        load(place, size=8)
    path.write_bytes(b"\xff\xfe\x00split")
    with pytest.raises(DataError, match=r"rgb_metadata\.csv is no readable CSV in UTF-8"):
        load(place, size=8)


def test_missing_files_are_named(place):
    (place / "images" / "rgb_img_3.png").unlink()
    with pytest.raises(DataError, match=r"rgb_img_3\.png"):
        load(place, size=8)
    (place / "country_code_mapping.csv").unlink()
    with pytest.raises(DataError, match=r"country_code_mapping\.csv is missing"):
        load(place, size=8)
