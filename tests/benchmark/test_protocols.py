"""Each data set's protocol, and what the command line may change in it."""

import pytest

from feddg.benchmark.protocols import PAPER, PROTOCOLS, experiment, protocol
from feddg.errors import ConfigError


def test_rotated_mnist_is_csacs():
    """30 epochs first, then 40 rounds of 5, batches of 32, at rate 0.01; no validation split."""
    one = experiment("rotated-mnist", targets=("m75",))
    assert (one.rounds, one.share, one.model) == (41, 0.0, "rotated-mnist-cnn")
    assert (one.recipe.at(0).epochs, one.recipe.at(1).epochs) == (30, 5)
    assert (one.recipe.lr, one.recipe.batch_size) == (0.01, 32)
    assert (one.recipe.at(0).label_smoothing, one.recipe.at(1).label_smoothing) == (0.1, 0.0)
    assert one.schedule == ""


@pytest.mark.parametrize("data", ["rotated-mnist", "heart-disease", "of/my/own"])
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


def test_only_those_that_say_so_have_references():
    assert [name for name, p in PROTOCOLS.items() if p.references] == ["heart-disease"]


def test_an_unknown_schedule():
    with pytest.raises(ConfigError, match="schedule of rotated-mnist 'shrot'; did you"):
        experiment("rotated-mnist", schedule="shrot")
