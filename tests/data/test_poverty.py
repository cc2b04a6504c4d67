"""PovertyMap from WILDS' folder: eight bands, real labels, countries by area, five folds."""

from math import prod

import numpy as np
import pytest
import torch
from torch import nn

import feddg
import feddg.deploy
from feddg.data.domain import official_splits
from feddg.data.sets import poverty
from feddg.errors import ConfigError, DataError
from tests.data import wilds_layouts


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(poverty, "SHAPE", wilds_layouts.SHAPE)
    monkeypatch.setattr(poverty, "HELD", 6)
    monkeypatch.setenv("FEDDG_CACHE", str(tmp_path / "cache"))
    return wilds_layouts.poverty(tmp_path)


def test_countries_by_area_are_domains(place):
    data = poverty.load(place.parent)
    assert data.names == (
        "benin-urban", "benin-rural", "ghana-urban", "ghana-rural", "kenya-urban", "kenya-rural",
        "mali-urban", "mali-rural", "togo-urban",
    )  # fmt: skip
    kenya = data["kenya-rural"]  # rows 11 and 12 of the metadata
    assert kenya.files == tuple(f"images/landsat_poverty_img_{k}.npz" for k in (11, 12))
    assert kenya.examples.y.tolist() == [11 / 4 - 2, 12 / 4 - 2]
    assert kenya.examples.groups is not None
    assert kenya.examples.groups.tolist() == [0, 0]
    assert kenya.examples.x.dtype == torch.float16
    x = data.prepare[0].apply(kenya.examples.x, {})
    assert x.dtype == torch.float32
    assert x.shape == (2, *wilds_layouts.SHAPE)
    assert x[0].unique().tolist() == [torch.tensor(11 + 1 / 3).half().item()]


def test_precision(place):
    x = poverty.load(place, precision="full")["kenya-rural"].examples.x
    assert x.dtype == torch.float32
    assert x[0, 0, 0, 0] == torch.tensor(11 + 1 / 3)


def test_the_official_split(place):
    """Fold A: Ghana, Kenya and Togo have 14 rows, of which 6 are held out; Benin, Mali unseen."""
    fed = official_splits(poverty.load(place))
    assert [d.name for d in fed.validation] == ["benin-urban", "benin-rural"]
    assert [d.name for d in fed.targets] == ["mali-urban", "mali-rural"]
    assert sum(len(s.train) for s in fed.sites) == 8


def test_what_is_held_out_is_what_wilds_holds_out(place):
    """wilds 2.0.0, `subsample_idxs(arange(14), num=6, seed=ord("A"))` gives these rows in turn."""
    rows = poverty.metadata(place, "A")
    order = [2, 1, 5, 8, 12, 10]
    assert [k for k in range(14) if rows.split[k] == "id_val"] == sorted(order[:3])
    assert [k for k in range(14) if rows.split[k] == "id_test"] == sorted(order[3:6])
    assert rows.split[14:] == ["val"] * 3 + ["test"] * 4


def test_folds(place, monkeypatch):
    """B is judged on the lot that A validates on, Benin's, and validated on the next, Ghana's."""
    monkeypatch.setattr(poverty, "HELD", 2)
    fed = official_splits(poverty.load(place, fold="B"))
    assert [d.name for d in fed.targets] == ["benin-urban", "benin-rural"]
    assert [d.name for d in fed.validation] == ["ghana-urban", "ghana-rural"]
    assert poverty.load(place, fold="B").protocol == "WILDS, fold B"
    pairs = zip(poverty.LOTS, poverty.LOTS[1:] + poverty.LOTS[:1], strict=True)
    sizes = [len(poverty.COUNTRIES) - len(judged) - len(held) for judged, held in pairs]
    assert sizes == [13, 14, 14, 14, 14]  # WILDS' training countries of A … E
    for wrong in ("F", "AB", ""):
        with pytest.raises(ConfigError, match="unknown fold"):
            poverty.load(place, fold=wrong)
    with pytest.raises(ConfigError, match="unknown precision"):
        poverty.load(place, precision="quarter")


def test_pooled_scores_are_those_of_wilds(place):
    """Mali's test villages: rural r and urban r, over all of the test countries at once."""
    data = poverty.load(place, unseen="pooled")
    test = data["test"].examples
    assert test.groups is not None
    assert test.groups.tolist() == [1, 0, 0, 0]
    found = data.task.scores(torch.tensor([[0.0], [1.0], [3.0], [2.0]]), test.y, test.groups)
    assert found["worst_group"] == 0.0  # one urban village: nothing varies
    rural = data.task.scores(torch.tensor([[1.0], [3.0], [2.0]]), test.y[1:], test.groups[1:])
    assert rural["worst_group"] == pytest.approx(0.5)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(prod(wilds_layouts.SHAPE), 1)

    def forward(self, x):
        return self.fc(x.flatten(1))


def test_half_precision_trains_in_full(place, tmp_path):
    """From the store through a federation to a saved model; the loss falls."""
    data = poverty.load(place, unseen="pooled")
    recipe = feddg.Recipe(lr=1e-5, batch_size=4)
    result = feddg.train(Net(), official_splits(data), "ppdg", rounds=3, recipe=recipe, workers=1)
    losses = [r["scores"]["test/test"]["loss"] for r in result.records]
    assert losses[0] > losses[1] > losses[2]
    assert set(result.scores["test/test"]) == {"loss", "pearson_r", "worst_group"}
    result.save(tmp_path / "model")
    said = feddg.deploy.evaluate(feddg.deploy.load_model(tmp_path / "model"), data["test"].examples)
    assert said.overall.scores["mse"] == pytest.approx(losses[2], rel=1e-5)


def test_too_few_source_rows(place, monkeypatch):
    monkeypatch.setattr(poverty, "HELD", 14)
    with pytest.raises(DataError, match=r"dhs_metadata\.csv has 14 rows of fold A's source"):
        poverty.load(place)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("ghana", "gana", "row 2: country 'gana' is not one of: angola, .*…"),
        ("True", "city", "row 2: urban 'city' is not one of: True"),
        ("-2.0", "rich", "row 2: wealthpooled 'rich' is no number"),
        ("-2.0", "nan", "row 2: wealthpooled 'nan' is no number"),
        ("wealthpooled", "wealth", "has no column 'wealthpooled'"),
    ],
)
def test_damaged_metadata(place, before, after, sentence):
    path = place / "dhs_metadata.csv"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(DataError, match=rf"dhs_metadata\.csv.*{sentence}"):
        poverty.load(place)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"y": np.zeros(wilds_layouts.SHAPE)}, "has no array 'x'"),
        ({"x": np.zeros((4, 4, 8))}, r"holds \(4, 4, 8\) values where \(8, 4, 4\) are expected"),
        ({"x": np.zeros(wilds_layouts.SHAPE, int)}, "no finite real numbers"),
        ({"x": np.full(wilds_layouts.SHAPE, np.nan)}, "no finite real numbers"),
        ({"x": np.full(wilds_layouts.SHAPE, 1e5)}, "beyond half precision; use precision=full"),
        ({"x": np.array([None])}, "not a readable .npz without pickled objects"),
    ],
)
def test_damaged_images_are_named(place, arrays, sentence):
    np.savez(place / "images" / "landsat_poverty_img_5.npz", **arrays)
    with pytest.raises(DataError, match=rf"landsat_poverty_img_5\.npz.*{sentence}"):
        poverty.load(place)


def test_a_missing_image_is_named(place):
    (place / "images" / "landsat_poverty_img_5.npz").unlink()
    with pytest.raises(DataError, match=r"landsat_poverty_img_5\.npz cannot be read \(No such"):
        poverty.load(place)
