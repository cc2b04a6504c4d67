"""One CSV per site: what is read, and the sentence for everything that cannot be."""

import pytest
import torch

from feddg.data.domain import leave_one_domain_out
from feddg.data.tables import Reading, from_csv
from feddg.data.transforms import prepared
from feddg.errors import ConfigError, DataError
from feddg.tasks import Classification, Regression

GOOD = {
    "north": "age,dose,label\n1,10,ill\n3,30,well\n",
    "south": "dose,age,label\n50,5,ill\n\n70,7,ill\n",
}


@pytest.fixture
def write(tmp_path):
    def make(**files):
        for name, text in {**GOOD, **files}.items():
            (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
        return tmp_path

    return make


def test_reads_columns_by_name(write):
    """South's columns stand in another order, and it has no one who is well."""
    data = from_csv(write())
    assert data.names == ("north", "south")
    assert data.task == Classification(("ill", "well"))
    assert data["south"].examples.x.tolist() == [[5, 50], [7, 70]]
    assert data["north"].examples.y.tolist() == [0, 1]
    assert data["south"].examples.y.tolist() == [0, 0]
    assert data["north"].splits == {}


def test_scaling_by_sources_by_hand(write):
    """North alone: ages 1, 3 → mean 2, std 1; so south's 5 and 7 become 3 and 5."""
    data = from_csv(write(), target="south")
    assert prepared(data["south"].examples.x, data.prepare)[:, 0].tolist() == [3, 5]
    assert data.protocol == "scaled by sources"
    assert from_csv(write(), scaling="none").prepare == ()
    site = from_csv(write(), scaling="site")
    assert site["south"].examples.x.tolist() == [[-1, -1], [1, 1]]


def test_missing_values_get_the_mean_and_an_indicator(write):
    root = write(north="age,dose,label\n1,?,ill\n3,30,well\n")
    with pytest.raises(DataError, match=r"north\.csv, row 2, column 'dose': the value is missing"):
        from_csv(root)
    data = from_csv(root, Reading(missing="mean"), scaling="none")
    x = prepared(data["north"].examples.x, data.prepare)
    assert x.tolist() == [[1, 50, 0, 1], [3, 30, 0, 0]]


def test_numbers_as_classes_sort_by_size_and_1_0_is_1(write):
    data = from_csv(write(north="a,label\n0,10\n0,1.0\n", south="a,label\n0,2\n0,1\n"))
    assert data.task == Classification(("1", "2", "10"))
    assert data["north"].examples.y.tolist() == [2, 0]


def test_classes_given_fix_the_order(write):
    reading = Reading(classes=("well", "ill"), metric="balanced_accuracy")
    data = from_csv(write(), reading)
    assert data.task == Classification(("well", "ill"), metric="balanced_accuracy")
    assert data["north"].examples.y.tolist() == [1, 0]
    with pytest.raises(DataError, match=r"north.csv, row 3: label 'well' is unknown.*: ill, dead"):
        from_csv(write(), Reading(classes=("ill", "dead")))


@pytest.mark.parametrize("name", ["label", "target", "y", "class"])
def test_usual_label_names(write, name):
    texts = {site: text.replace("label", name) for site, text in GOOD.items()}
    assert from_csv(write(**texts))["north"].examples.y.tolist() == [0, 1]


def test_label_group_and_ignored_columns_by_name(write):
    texts = {
        "north": "id,sex,age,result\na7,f,1,ill\nb8,m,2,well\n",
        "south": "id,sex,age,result\na7,x,1,ill\nb8,f,2,well\n",
    }
    reading = Reading(label="result", group="sex", ignore=("id",), metric="worst_group")
    data = from_csv(write(**texts), reading)
    assert data["north"].examples.x.shape == (2, 1)
    found = [d.examples.groups for d in data.domains]
    assert [g.tolist() for g in found if g is not None] == [[0, 1], [2, 0]]


def test_regression(write):
    texts = {"north": "a,y\n1,0.5\n2,1e1\n", "south": "a,y\n1,2\n2,3\n"}
    data = from_csv(write(**texts), Reading(task="regression"))
    assert data.task == Regression()
    assert data["north"].examples.y.tolist() == [0.5, 10]
    with pytest.raises(DataError, match=r"label 0\.5 is not a class; use task=regression"):
        from_csv(write(**texts))
    texts["south"] = "a,y\n1,high\n2,3\n"
    with pytest.raises(DataError, match=r"south\.csv, row 2, column 'y': 'high' is not a finite"):
        from_csv(write(**texts), Reading(task="regression"))


def test_official_splits(write):
    north = "a,label,split\n1,0,train\n2,1,test\n3,0,val\n4,1,train\n"
    data = from_csv(write(north=north, south="a,label\n9,1\n8,0\n"), target="south")
    splits = {name: rows.tolist() for name, rows in data["north"].splits.items()}
    assert splits == {"train": [0, 3], "val": [2], "test": [1]}
    site = leave_one_domain_out(data, "south", share=0.5).sites[0]
    assert site.train.x.flatten().tolist() == [1, 4]
    assert site.val is not None
    assert site.val.x.flatten().tolist() == [3]
    only_test = from_csv(write(north="a,label,split\n1,0,test\n", south="a,label\n9,1\n"))
    assert only_test["north"].splits["train"].tolist() == []  # test rows are never trained on
    assert only_test.scaled_on == ("south",)  # nor do they scale
    with pytest.raises(DataError, match=r"row 2, column 'split': 'dev' is none of train, val"):
        from_csv(write(north="a,label,split\n1,0,dev\n"))


def test_a_byte_order_mark_and_spaces_are_no_matter(write):
    data = from_csv(write(north="\ufeffage , dose,label\n 1, 10, ill \n3,30,well\n"))
    assert data["north"].examples.x.tolist() == [[1, 10], [3, 30]]


@pytest.mark.parametrize(
    ("north", "sentence"),
    [
        ("", r"north\.csv: is empty"),
        ("age,dose,label\n", r"north\.csv has no rows"),
        ("age;dose;label\n1;2;ill\n", "separated by ';'"),
        ("age,,label\n1,2,ill\n", "column 2 has no name"),
        ("age,age,label\n1,2,ill\n", "two columns are called 'age'"),
        ("age,dose\n1,2\n", r"no label column 'label' or .* by label= \(it has: age, dose\)"),
        ("label\nill\n", "no feature column"),
        ("age,dose,label\n1,10,ill\n3,well\n", r"row 3: 2 cells where the header has 3"),
        ("age,dose,label\n1,much,ill\n", r"row 2, column 'dose': 'much' is not a finite number"),
        ("age,dose,label\n1,inf,ill\n", "'inf' is not a finite number"),
        ("age,dose,label\n1,2,\n", r"row 2, column 'label': the label is missing"),
        ("age,dose,kg,label\n1,2,3,ill\n", r"south.csv has no column 'kg', but north.csv has"),
        ("age,label\n1,ill\n", r"north.csv has no column 'dose', but south.csv has"),
        ("age,dose,label\n1,2,ill\n", r"one class only \(ill\)"),
        ("age,dose,label\na,2,ill\nb,2,ill\nc,2,ill\n", r"\(and 2 more in this column\)"),
        ("age,dose,label\na,b,ill\n", r"\(and 1 more; see `feddg data check`\)"),
    ],
)
def test_one_sentence_for_each_fault(write, north, sentence):
    with pytest.raises(DataError, match=sentence):
        from_csv(write(north=north))


def test_not_utf_8(write):
    root = write()
    (root / "north.csv").write_bytes("größe,label\n1,ill\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"north\.csv is no readable CSV in UTF-8"):
        from_csv(root)


def test_one_site_only(write):
    root = write()
    (root / "south.csv").unlink()
    with pytest.raises(DataError, match=r"one CSV only \(north\.csv\)"):
        from_csv(root)
    assert from_csv(root, least=1).names == ("north",)
    (root / "north.csv").unlink()
    with pytest.raises(DataError, match="has no CSV"):
        from_csv(root)


def test_wrong_choices(write):
    with pytest.raises(ConfigError, match="did you mean 'regression'"):
        Reading(task="regresion")
    with pytest.raises(ConfigError, match="did you mean 'accuracy'"):
        Reading(metric="acuracy")
    with pytest.raises(ConfigError, match="unknown way with missing values 'zero'"):
        Reading(missing="zero")
    with pytest.raises(DataError, match="needs group="):
        Reading(metric="worst_group")
    with pytest.raises(DataError, match="no group column 'sex'"):
        from_csv(write(), Reading(group="sex"))
    three = "age,dose,label\n1,1,a\n2,2,b\n"
    with pytest.raises(DataError, match="auc needs two classes"):
        from_csv(write(north=three), Reading(metric="auc"))


def test_input_order_of_sites_is_by_name_and_values_are_float32(write):
    data = from_csv(write(alps=GOOD["north"]))
    assert data.names == ("alps", "north", "south")
    assert data["alps"].examples.x.dtype == torch.float32
