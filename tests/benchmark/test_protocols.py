"""Each data set's protocol, and what the command line may change in it."""

import pytest

from feddg.benchmark.protocols import PAPER, PROTOCOLS, experiment, protocol
from feddg.benchmark.published import paper_rows
from feddg.errors import ConfigError


def test_rotated_mnist_is_csacs():
    """30 epochs first, then 40 rounds of 5, batches of 32, at rate 0.01; no validation split."""
    one = experiment("rotated-mnist", targets=("m75",))
    assert (one.rounds, one.share, one.model) == (41, 0.0, "rotated-mnist-cnn")
    assert (one.recipe.at(0).epochs, one.recipe.at(1).epochs) == (30, 5)
    assert (one.recipe.lr, one.recipe.batch_size) == (0.01, 32)
    assert (one.recipe.at(0).label_smoothing, one.recipe.at(1).label_smoothing) == (0.1, 0.0)
    assert one.schedule == ""


@pytest.mark.parametrize("data", [*PROTOCOLS, "of/my/own"])
def test_every_protocol_has_the_full_and_a_demo_schedule_that_is_shorter(data):
    full, demo = experiment_of(data, PAPER), experiment_of(data, "demo")
    assert demo.rounds < full.rounds
    assert demo.schedule == "demo"


def experiment_of(data, schedule):
    return experiment(data, schedule=schedule)


def test_a_schedules_changes_and_then_the_users():
    one = experiment("rotated-mnist", schedule="demo", recipe={"lr": 0.5})
    assert (one.recipe.lr, one.recipe.epochs, one.recipe.momentum) == (0.5, 2, 0.5)


def test_none_means_as_the_protocol_has_it():
    one = experiment("heart-disease", rounds=None, selection=None, model="mlp", share=0.0)
    assert (one.rounds, one.selection, one.share) == (15, "last", 0.0)


def test_options_of_the_data_take_the_papers_numbers_away():
    assert protocol("rotated-mnist").published == ("csac", "table3")
    assert protocol("rotated-mnist", {"direction": "clockwise"}).published is None
    assert protocol("my/own").published is None


def test_where_the_data_lie_leaves_the_papers_numbers():
    assert protocol("pacs", {"root": "/there"}).published == ("ga", "table1", "pacs")
    assert protocol("pacs", {"root": "/there", "size": "64"}).published is None


def test_pacs_is_gas():
    """40 rounds of 5 epochs at 0.001, batches of 16, a tenth held out, ImageNet's weights."""
    one = experiment("pacs", targets=("photo",))
    assert (one.rounds, one.share, one.model, one.weights) == (40, 0.1, "resnet18", "hub")
    assert (one.recipe.epochs, one.recipe.lr, one.recipe.batch_size) == (5, 0.001, 16)
    assert one.data_options == {"augment": "crop=0.7,flip,jitter=0.4,grayscale=0.1"}
    plain = experiment("pacs", data_options={"augment": ""})
    assert plain.data_options == {"augment": ""}


def test_weights_are_of_the_protocols_network():
    assert experiment("pacs", model="small-cnn").weights is None
    assert experiment("pacs", model="resnet18").weights == "hub"
    assert experiment("pacs", weights="").weights == ""


def test_a_rate_that_falls_by_a_factor_each_round():
    """PovertyMap: times 0.96 after each of 200 rounds."""
    one = experiment("poverty")
    rates = [one.recipe.rates(k, one.rounds, 64)[0] for k in range(3)]
    assert rates == pytest.approx([0.001, 0.00096, 0.0009216])


@pytest.mark.parametrize("name", [n for n, p in PROTOCOLS.items() if p.published])
def test_published_numbers_are_there_for_every_protocol_that_names_some(name):
    of = PROTOCOLS[name].published
    assert of is not None
    rows = {r.method: r for r in paper_rows(*of) if not r.variant}
    assert set(rows) & {"FedAvg", "COPA"}


def test_only_those_that_say_so_have_references():
    assert [name for name, p in PROTOCOLS.items() if p.references] == ["heart-disease"]


def test_an_unknown_schedule():
    with pytest.raises(ConfigError, match="schedule of rotated-mnist 'shrot'; did you"):
        experiment("rotated-mnist", schedule="shrot")
