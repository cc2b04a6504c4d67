"""Camelyon17 from WILDS' folder, and what is wrong with a folder of WILDS."""

import pytest

from feddg.benchmark import roles
from feddg.data.catalogue import open_collection, resolve
from feddg.data.domain import federation, leave_one_domain_out, official_splits
from feddg.data.sets.camelyon17 import load
from feddg.data.transforms import IMAGENET, Scale
from feddg.errors import ConfigError, DataError
from feddg.tasks import Classification
from tests.data import wilds_layouts


@pytest.fixture
def place(tmp_path):
    return wilds_layouts.camelyon17(tmp_path)


def test_reads_the_folder_and_its_parent(place):
    data = load(place.parent)
    assert data.names == tuple(f"hospital{k}" for k in range(5))
    assert data.task == Classification(("normal", "tumor"))
    assert data.protocol == "WILDS"
    x = data["hospital3"].examples.x
    assert x.shape == (5, 3, 96, 96)
    assert x[1, :, 0, 0].tolist() == [150, 200, 1]  # the third hospital's second patch
    assert data["hospital3"].examples.y.tolist() == [0, 1, 0, 1, 0]
    assert load(place)["hospital3"].examples.x.equal(x)
    slide = "patient_004_node_4"
    assert data["hospital0"].files[2] == f"patches/{slide}/patch_{slide}_x_64_y_64.png"


def test_a_path_is_recognised(tmp_path):
    """Though all three hold CSVs, as folders of one's own tables do."""
    for make in (wilds_layouts.camelyon17, wilds_layouts.fmow, wilds_layouts.poverty):
        folder = make(tmp_path / make.__name__)
        for path in (folder, folder.parent):
            assert resolve(str(path), {})[0].name == make.__name__
    (folder / "dhs_metadata.csv").rename(folder / "metadata.csv")
    assert resolve(str(folder), {})[0].name == "csv"


def test_the_official_split(place):
    """Hospitals 0, 3, 4 train on four patches and hold out one; 1 selects, 2 is the target."""
    fed = official_splits(load(place), share=0.2)
    assert [s.name for s in fed.sites] == ["hospital0", "hospital3", "hospital4"]
    assert [(len(s.train), len(s.val or ())) for s in fed.sites] == [(4, 1)] * 3
    assert [d.name for d in fed.validation] == ["hospital1"]
    assert [(d.name, len(d.part("test") or ())) for d in fed.targets] == [("hospital2", 5)]


def test_domains_that_are_held_out_do_not_train_by_default(place):
    """The others of hospital2 are 0, 1, 3 and 4, but no row of 1 is for training."""
    options = (("root", str(place)), ("size", "8"))
    chosen = roles.Roles(data="camelyon17", options=options, targets=("hospital2",))
    assert roles.sources(chosen) == ("hospital0", "hospital3", "hospital4")
    data = load(place, size=8)
    fed = leave_one_domain_out(data, "hospital0")
    assert [s.name for s in fed.sites] == ["hospital3", "hospital4"]
    with pytest.raises(DataError, match="all of 'hospital1' is held out by the data's own split"):
        federation(data, ["hospital1"], ["hospital2"])


def test_options(place):
    data = open_collection("camelyon17", root=str(place), size="8", unseen="pooled")
    assert data.names == ("hospital0", "hospital3", "hospital4", "validation", "test")
    assert data.protocol == "WILDS, pooled"
    assert data["test"].examples.x.shape == (5, 3, 8, 8)
    assert data.prepare == (IMAGENET,)
    assert load(place, size=8, normalise="none").prepare == (Scale(),)
    for wrong in ({"unseen": "poled"}, {"normalise": "imagnet"}):
        with pytest.raises(ConfigError, match="did you mean"):
            load(place, size=8, **wrong)


def test_patients_whose_zeros_were_lost(place):
    """pandas writes 004 as 4 unless told not to; the files keep their names."""
    path = place / "metadata.csv"
    path.write_text(path.read_text().replace(",004,", ",4,"))
    assert len(load(place, size=8)["hospital0"].examples) == 5


def test_a_missing_image_is_named(place):
    lost = next(place.glob("patches/patient_044_node_4/*.png"))
    lost.unlink()
    with pytest.raises(DataError, match=lost.name):
        load(place)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (",tumor,", ",tumour,", r"metadata\.csv has no column 'tumor'; it has: , patient"),
        ("0,004,4,0,64,0,0,0,0", "0,004,4,0,64,0,0,0,3", "row 2: split '3' is not one of: 0, 1"),
        ("0,004,4,0,64,0,0,0,0", "0,004,4,0,64,2,0,0,0", "row 2: tumor '2' is not one of: 0, 1"),
        ("0,004,4,0,64,0,0,0,0", "0,004,4,0,64,0,0,5,0", "row 2: center '5' is not one of: 0, 1"),
        ("0,004,4,0,64,0,0,0,0", "0,004,4,0,64,0", "row 2: 6 columns where 9 are expected"),
    ],
)
def test_damaged_metadata(place, before, after, sentence):
    path = place / "metadata.csv"
    text = path.read_text().replace("\r\n", "\n")
    assert before in text
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(DataError, match=sentence):
        load(place)


def test_other_releases_are_refused(place, tmp_path):
    (place / "RELEASE_v1.0.txt").rename(place / "RELEASE_v1.1.txt")
    with pytest.raises(DataError, match=r"holds RELEASE_v1\.1\.txt, another version of camelyon17"):
        load(place)
    older = place.rename(tmp_path / "camelyon17_v0.9")
    for root in (older, tmp_path):
        with pytest.raises(
            DataError, match=r"camelyon17_v0\.9, another version .*get camelyon17_v1"
        ):
            load(root)


def test_no_folder_no_metadata_no_rows(place, tmp_path):
    with pytest.raises(DataError, match="nowhere is not a folder"):
        load(tmp_path / "nowhere")
    path = place / "metadata.csv"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    with pytest.raises(DataError, match=r"metadata\.csv has no rows"):
        load(place)
    path.write_bytes(b"\xff\xfe\x00patient")
    with pytest.raises(DataError, match=r"metadata\.csv is no readable CSV in UTF-8"):
        load(place)
    path.unlink()
    with pytest.raises(DataError, match=r"metadata\.csv is missing; name the folder"):
        load(place)
