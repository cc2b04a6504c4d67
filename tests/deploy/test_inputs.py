import numpy as np
import pytest
import torch
from PIL import Image

from feddg.data.catalogue import open_collection
from feddg.data.domain import Collection, Domain, Examples, leave_one_domain_out
from feddg.data.tables import Reading, from_csv
from feddg.data.transforms import Scale, Standardise
from feddg.deploy import Architecture, evaluate, load_model, predict, read_inputs, save_model
from feddg.deploy.inputs import Inputs, from_collection
from feddg.engines.loop import Run
from feddg.errors import FeddgError
from feddg.local import outputs
from feddg.methods.fedavg import FedAvg
from feddg.models import build
from feddg.packets import State
from feddg.recipe import Recipe
from feddg.tasks import Classification, Regression
from feddg.weights import Weights


def deployed(folder, collection, architecture):
    """An untrained network, as a model's folder read back."""
    federation = leave_one_domain_out(collection, collection.names[-1])
    model = build(architecture.model, seed=1, **architecture.options)
    run = Run(FedAvg(), model, federation, Recipe(), 1)
    save_model(folder, run, State(model=Weights.of(model)), architecture=architecture)
    return load_model(folder)


def labels(inputs):
    assert inputs.y is not None
    return inputs.y.tolist()


def refusal(source, model, **options):
    with pytest.raises(FeddgError) as caught:
        read_inputs(source, model, **options)
    return str(caught.value)


# Tables: two features and a label, whose classes are named in an order of their own.

TABLE = "age,dose,ill,site\n30,1.5,yes,north\n50,0.5,no,south\n"
CLASSES = ("yes", "no")


@pytest.fixture
def table(tmp_path):
    """MLP on (age, dose), scaled by mean (40, 1) and std (10, 0.5)."""
    data = tmp_path / "data"
    data.mkdir()
    for name in ("a", "b"):
        (data / f"{name}.csv").write_text(TABLE)
    reading = Reading(label="ill", classes=CLASSES, ignore=("site",))
    mlp = Architecture("mlp", {"inputs": 2, "outputs": 2})
    return deployed(tmp_path / "model", from_csv(data, reading, target="b"), mlp)


def csv(tmp_path, text, name="new"):
    path = tmp_path / f"{name}.csv"
    path.write_text(text)
    return path


def test_columns_are_found_by_name_and_others_ignored(tmp_path, table):
    """(30, 1.5) and (50, 0.5) are (-1, 1) and (1, -1) to the network."""
    assert table.prepare == (Standardise((40.0, 1.0), (10.0, 0.5)),)
    path = csv(tmp_path, "dose,name,age\n1.5,Ann,30\n\n0.5,Bo,50\n")
    said = predict(table, read_inputs(path, table))
    expected = outputs(table.predictor, torch.tensor([[-1.0, 1.0], [1.0, -1.0]]), ())
    assert said.output.allclose(expected)
    assert said.inputs.y is None
    assert said.header == ["domain", "line", "predicted", "p(yes)", "p(no)"]
    assert [row[:2] for row in said.rows()] == [["new", "2"], ["new", "4"]]


def test_labels_are_matched_by_name(tmp_path, table):
    path = csv(tmp_path, TABLE.replace("ill", "label"))
    assert labels(read_inputs(path, table)) == [0, 1]
    assert read_inputs(csv(tmp_path, TABLE), table).y is None
    assert labels(read_inputs(csv(tmp_path, TABLE), table, label="ill")) == [0, 1]
    assert read_inputs(csv(tmp_path, "age,dose,y\n1,2,\n3,4,\n"), table).y is None


def test_a_folder_of_csvs_has_a_domain_each(tmp_path, table):
    inputs = read_inputs(tmp_path / "data", table, label="ill")
    assert [p.domain for p in inputs.parts] == ["a", "b"]
    assert list(evaluate(table, inputs).domains) == ["a", "b"]
    assert list(evaluate(table, inputs, ["b"]).domains) == ["b"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("age,label\n1,yes\n", "lacks the model's column 'dose'; it has: age, label"),
        ("age,dose,label\n1,2,maybe\n", "line 2, column 'label': unknown class 'maybe'"),
        ("age,dose,label\n1,2,yes\n1,2,\n", "line 3, column 'label': the label is missing"),
        ("age,dose\n1,\n", "line 2, column 'dose': the value is missing"),
        ("age,dose\n1,much\n", "line 2, column 'dose': 'much' is not a finite number"),
        ("age,dose\n1,2,3\n", "line 2: 3 cells where the header has 2"),
        ("age,age,dose\n1,2,3\n", "two columns 'age'"),
        ("age,dose\n", "has no rows"),
        ("", "lacks the model's column 'age' (and 1 more); it has: nothing"),
    ],
)
def test_what_is_wrong_with_a_table(tmp_path, table, text, sentence):
    assert sentence in refusal(csv(tmp_path, text), table)


def test_misspelt_options_and_paths(tmp_path, table):
    path = csv(tmp_path, TABLE)
    assert "unknown label column 'il'; did you mean 'ill'?" in refusal(path, table, label="il")
    assert "unknown option of the data 'lable'" in refusal(path, table, lable="ill")
    assert "there is no file or folder" in refusal(tmp_path / "nothing", table)
    assert "has no CSV" in refusal(tmp_path / "model", table)


def test_gaps_become_indicators_where_the_model_knows_them(tmp_path):
    """Heart disease: a table of raw values, gaps empty, gives what the collection gives."""
    data = open_collection("heart-disease", target="va")
    mlp = Architecture("mlp", {"inputs": 26, "outputs": 2})
    model = deployed(tmp_path / "model", data, mlp)
    values = data["va"].examples.x[:5, :13].tolist()
    cells = [["" if v != v else repr(v) for v in row] for row in values]
    header = ",".join(reversed(model.meta.columns))
    text = "\n".join([header, *(",".join(reversed(row)) for row in cells)])
    assert "of every column the count, the sum" in (tmp_path / "model" / "README.md").read_text()
    said = predict(model, read_inputs(csv(tmp_path, text), model))
    of_all = predict(model, read_inputs("heart-disease", model), ["va"]).output
    torch.testing.assert_close(said.output, of_all[:5])  # in batches of other sizes


def test_a_site_that_scales_its_own_does_so_when_deployed(tmp_path):
    data = open_collection("heart-disease", scaling="site", target="va")
    mlp = Architecture("mlp", {"inputs": 26, "outputs": 2})
    model = deployed(tmp_path / "model", data, mlp)
    raw = open_collection("heart-disease", scaling="none")["va"].examples.x[:, :13].tolist()
    cells = [",".join("" if v != v else repr(v) for v in row) for row in raw]
    text = "\n".join([",".join(model.meta.columns), *cells])
    from_file = predict(model, read_inputs(csv(tmp_path, text), model)).output
    assert from_file.allclose(predict(model, read_inputs("heart-disease", model), ["va"]).output)
    assert from_file.equal(predict(model, data, ["va"]).output)


def test_regression_from_a_table(tmp_path):
    domains = tuple(
        Domain(name, Examples(torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, 5.0])))
        for name in "ab"
    )
    data = Collection("prices", domains, Regression(("price",)), columns=("size",))
    mlp = Architecture("mlp", {"inputs": 1, "outputs": 1})
    model = deployed(tmp_path / "model", data, mlp)
    inputs = read_inputs(csv(tmp_path, "size,y\n1,3\n2,5\n"), model)
    assert labels(inputs) == [3.0, 5.0]
    assert predict(model, inputs).output.equal(predict(model, data, ["a"]).output)
    assert "'dear' is not a finite number" in refusal(csv(tmp_path, "size,y\n1,dear\n"), model)


# Images: grey, 28×28, uint8.


@pytest.fixture
def digits(tmp_path):
    x = torch.zeros(4, 1, 28, 28, dtype=torch.uint8)
    domains = tuple(Domain(k, Examples(x, torch.arange(4) % 2)) for k in "ab")
    data = Collection("digits", domains, Classification(("zero", "one")), (Scale(),))
    return deployed(tmp_path / "model", data, Architecture("rotated-mnist-cnn", {"outputs": 2}))


def picture(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((28, 28), value, np.uint8)).save(path)


def test_a_flat_folder_has_no_labels(tmp_path, digits):
    for name, value in (("b.png", 200), ("a.png", 100)):
        picture(tmp_path / "new" / name, value)
    (tmp_path / "new" / "notes.txt").write_text("not an image")
    inputs = read_inputs(tmp_path / "new", digits)
    assert (inputs.parts[0].ids, inputs.y) == (("a.png", "b.png"), None)
    assert inputs.x[:, 0, 0, 0].tolist() == [100, 200]
    x = torch.tensor([100, 200], dtype=torch.uint8).view(2, 1, 1, 1).expand(2, 1, 28, 28)
    assert predict(digits, inputs).output.equal(outputs(digits.predictor, x, (Scale(),)))
    one = read_inputs(tmp_path / "new" / "b.png", digits)
    assert (one.parts[0].ids, one.x.unique().tolist()) == (("b.png",), [200])


def test_folders_of_classes_have_labels(tmp_path, digits):
    """The order of the classes is the model's, not the folders'; one class is enough."""
    for path in ("one/a.png", "zero/b.png", "zero/c.png"):
        picture(tmp_path / "new" / path, 10)
    inputs = read_inputs(tmp_path / "new", digits)
    assert inputs.parts[0].ids == ("one/a.png", "zero/b.png", "zero/c.png")
    assert labels(inputs) == [1, 0, 0]
    for path in ("x/one/a.png", "y/zero/b.png", "y/one/c.png"):
        picture(tmp_path / "more" / path, 10)
    inputs = read_inputs(tmp_path / "more", digits)
    assert [(p.domain, labels(Inputs("", (p,)))) for p in inputs.parts] == [
        ("x", [1]),
        ("y", [1, 0]),
    ]


def test_what_is_wrong_with_a_folder_of_images(tmp_path, digits):
    new = tmp_path / "new"
    new.mkdir()
    assert "holds no image" in refusal(new, digits)
    picture(new / "oen" / "a.png", 1)
    assert "unknown class 'oen'; did you mean 'one'?" in refusal(new, digits)
    picture(new / "b.png", 1)
    assert "(b.png) beside folders of images (oen)" in refusal(new, digits)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "c.png").write_bytes(b"not a png")
    assert "c.png is not a readable image" in refusal(tmp_path / "broken", digits)
    assert "is no image" in refusal(csv(tmp_path, TABLE), digits)


# Collections


def test_classes_of_a_collection_are_matched_by_name(digits):
    x = torch.zeros(2, 1, 28, 28, dtype=torch.uint8)
    other = (Domain("c", Examples(x, torch.tensor([0, 1]))),)
    swapped = Collection("other", other, Classification(("one", "zero")))
    assert labels(from_collection(swapped, digits)) == [1, 0]
    strange = Collection("other", other, Classification(("one", "two")))
    with pytest.raises(FeddgError, match="unknown class of other 'two'"):
        predict(digits, strange)


def test_of_an_official_split_only_the_test_part_is_used(digits):
    x = torch.arange(4, dtype=torch.uint8).view(4, 1, 1, 1).expand(4, 1, 28, 28)
    splits = {"train": torch.tensor([0, 1]), "test": torch.tensor([2, 3])}
    domain = Domain("c", Examples(x, torch.tensor([0, 1, 0, 1])), splits)
    data = Collection("other", (domain,), Classification(("zero", "one")))
    inputs = from_collection(data, digits)
    assert inputs.parts[0].ids == ("2", "3")
    assert inputs.x[:, 0, 0, 0].tolist() == [2, 3]


def test_inputs_of_another_kind_are_refused(digits):
    with pytest.raises(FeddgError, match="takes inputs 1×28×28 of uint8, not inputs 1×28×28 of f"):
        predict(digits, torch.zeros(1, 1, 28, 28))
    with pytest.raises(FeddgError, match="for regression, the model for classification"):
        predict(digits, Collection("r", (), Regression()))
    with pytest.raises(FeddgError, match="has no examples"):
        predict(digits, torch.zeros(0, 1, 28, 28, dtype=torch.uint8))
