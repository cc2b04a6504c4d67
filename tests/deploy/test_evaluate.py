import csv
import io
import json
from dataclasses import replace
from math import exp, log

import pytest
import torch
from rich.console import Console
from scipy.stats import pearsonr
from torch import nn

from feddg.data.domain import Collection, Domain, Examples
from feddg.deploy import evaluate, load_model, predict
from feddg.deploy.show import evaluation_view, model_view, predictions_view
from feddg.engines.loop import Round
from feddg.errors import ConfigError, DataError
from feddg.tasks import Classification, Regression
from tests import toy
from tests.deploy.saved import save


def echo(folder, task, width):
    """A model that answers with its input."""
    save(folder)
    made = load_model(folder)
    meta = replace(made.meta, shape=(width,), task=task, data="echo")
    return replace(made, predictor=nn.Identity(), task=task, meta=meta)


def drawn(view):
    file = io.StringIO()
    Console(file=file, width=100).print(view)
    return file.getvalue()


# Log-odds of two classes: 0.8 and 0.6 for b in domain one; 0.1 and 0.7 in domain two.
P = {"one": [0.8, 0.6], "two": [0.1, 0.7]}
Y = {"one": [1, 0], "two": [0, 1]}
AB = Classification(("a", "b"))


def two_domains():
    domains = [
        Domain(k, Examples(torch.tensor([[log(1 - p), log(p)] for p in P[k]]), torch.tensor(Y[k])))
        for k in P
    ]
    return Collection("echo", tuple(domains), AB)


@pytest.fixture
def judged(tmp_path):
    model = echo(tmp_path / "model", AB, 2)
    training = {**model.meta.training, "sites": {"one": 2}}
    return replace(model, meta=replace(model.meta, training=training))


def test_numbers_worked_by_hand(judged):
    """Called b b | a b, true b a | a b: three of four right, and every b above every a.

    Brier (0.2^2 + 0.6^2 + 0.1^2 + 0.3^2) / 4 = 0.5 / 4. Every confidence (0.8, 0.6, 0.9, 0.7)
    has a bin of its own: ECE = (0.2 + 0.6 + 0.1 + 0.3) / 4.
    """
    found = evaluate(judged, two_domains())
    assert found.overall.examples == 4
    assert found.overall.scores == pytest.approx(
        {"accuracy": 0.75, "balanced_accuracy": 0.75, "auc": 1.0, "ece": 0.3, "brier": 0.125},
        abs=1e-6,
    )
    assert found.confusion == ((1, 1), (0, 2))
    assert [(c.precision, c.recall, c.support) for c in found.classes] == [
        (1.0, 0.5, 2),
        (2 / 3, 1.0, 2),
    ]
    assert found.domains["one"].scores["accuracy"] == 0.5
    assert found.domains["two"].scores["accuracy"] == 1.0
    assert (found.worst, found.trained_on) == ("one", ("one",))


def test_groups_count_where_they_are_known(judged):
    """The second group has the one mistake among its two rows, and a right one."""
    data = two_domains()
    x = torch.cat([d.examples.x for d in data.domains])
    y = torch.cat([d.examples.y for d in data.domains])
    groups = torch.tensor([0, 1, 1, 0])
    assert evaluate(judged, Examples(x, y, groups)).overall.scores["worst_group"] == 0.5


def test_an_evaluation_as_json(judged):
    found = json.loads(json.dumps(evaluate(judged, two_domains()).to_dict()))
    assert found["domains"]["two"]["scores"]["accuracy"] == 1.0
    assert found["worst_domain"] == "one"
    assert found["classes"][0]["name"] == "a"


def test_one_class_only_has_no_auc(judged):
    data = Examples(torch.tensor([[0.0, 1.0]]), torch.tensor([1]))
    assert evaluate(judged, data).overall.scores["auc"] is None


def test_without_labels_there_is_nothing_to_judge_by(judged):
    with pytest.raises(DataError, match="'all' has no labels to judge by"):
        evaluate(judged, torch.zeros(1, 2))


def test_predictions_as_rows_csv_and_json(judged, tmp_path):
    said = predict(judged, two_domains(), ["two"])
    said.write_csv(tmp_path / "out.csv")
    [first, second] = csv.DictReader((tmp_path / "out.csv").read_text().splitlines())
    assert first == {
        "domain": "two", "row": "0", "predicted": "a", "p(a)": "0.9", "p(b)": "0.1", "label": "a",
    }  # fmt: skip
    assert (second["predicted"], second["p(b)"]) == ("b", "0.7")
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["out.csv"]
    found = json.loads(json.dumps(said.to_dict()))
    assert found["predictions"][1]["predicted"] == "b"
    with pytest.raises(ConfigError, match="cannot be written to"):
        said.write_csv(tmp_path / "nowhere" / "out.csv")


def test_an_output_of_the_wrong_width_is_refused(judged):
    three = replace(judged, task=Classification(("a", "b", "c")))
    with pytest.raises(ConfigError, match="output is 2 per input where its task has 3"):
        predict(three, torch.zeros(1, 2))


def test_regression(tmp_path):
    """r by scipy; errors 1, 0, 1 and 2: MSE 6/4, MAE 1."""
    model = echo(tmp_path / "model", Regression(("price",)), 1)
    said, true = [1.0, 2.0, 4.0, 6.0], [2.0, 2.0, 3.0, 8.0]
    data = Examples(torch.tensor(said)[:, None], torch.tensor(true))
    found = evaluate(model, data)
    r = float(pearsonr(said, true).statistic)
    assert found.overall.scores == pytest.approx({"pearson_r": r, "mse": 1.5, "mae": 1.0})
    assert (found.classes, found.confusion) == ((), ())
    rows = predict(model, data)
    assert rows.header == ["domain", "row", "price", "label"]
    assert next(rows.rows()) == ["all", "0", 1.0, 2.0]


def test_the_views_show_what_was_found(judged):
    text = drawn(evaluation_view(evaluate(judged, two_domains())))
    for words in ("one*", "75.0 %", "By class", "Confusion", "worst domain by accuracy: one"):
        assert words in text
    text = drawn(predictions_view(predict(judged, two_domains()), limit=3))
    assert "first 3 of 4" in text
    assert "0.900" in text
    assert "fedavg" in drawn(model_view(judged))


def test_many_classes_show_the_pairs_confused_most(tmp_path):
    names = tuple(f"[c{k}]" for k in range(13))  # no markup
    model = echo(tmp_path / "model", Classification(names), 13)
    x = torch.eye(13)[[3, 3, 5, 0]]
    text = drawn(evaluation_view(evaluate(model, Examples(x, torch.tensor([1, 1, 4, 0])))))
    assert "Most confused (of 3 errors)" in text
    assert text.index("[c1]   [c3]") < text.index("[c4]   [c5]")


def test_the_toys_scores_are_the_tasks_own(tmp_path):
    run, state = save(tmp_path / "model")
    found = evaluate(load_model(tmp_path / "model"), toy.collection())
    assert found.trained_on == ("dawn", "noon", "dusk")
    own = toy.accuracy(run, Round(0, state, []))
    assert found.domains["night"].scores["accuracy"] == pytest.approx(own)


def test_probabilities_are_those_of_the_logits(judged):
    p = predict(judged, torch.tensor([[0.0, 2.0]])).probabilities
    assert p is not None
    assert p[0, 1].item() == pytest.approx(1 / (1 + exp(-2)))
