"""Lengths and rates, worked by hand."""

from dataclasses import replace
from math import cos, pi, sqrt

import pytest

from feddg.errors import ConfigError
from feddg.optim import SGD, Adam
from feddg.recipe import Recipe


def test_steps_of_a_round():
    """10 examples in batches of 4: two whole ones, or three with the rest; 3 epochs."""
    drop = Recipe(batch_size=4, epochs=3)
    assert (drop.length(10), replace(drop, drop_last=False).length(10)) == (6, 9)
    assert (drop.length(12), replace(drop, drop_last=False).length(12)) == (9, 9)
    assert replace(drop, steps=5).length(10) == 5


def test_a_site_smaller_than_a_batch_trains_on_all_it_has():
    recipe = Recipe(batch_size=32, epochs=2)
    assert (recipe.batch(3), recipe.length(3)) == (3, 2)


def test_the_first_round_may_differ():
    recipe = Recipe(epochs=5, first_epochs=30, label_smoothing=0.0, first_label_smoothing=0.1)
    assert (recipe.at(0).epochs, recipe.at(1).epochs) == (30, 5)
    assert (recipe.at(0).label_smoothing, recipe.at(1).label_smoothing) == (0.1, 0.0)
    steps = Recipe(steps=7, first_steps=20)
    assert (steps.at(0).length(9), steps.at(1).length(9)) == (20, 7)
    mixed = Recipe(batch_size=3, steps=7, first_epochs=4)
    assert (mixed.at(0).length(9), mixed.at(1).length(9)) == (12, 7)
    assert Recipe().at(0) == Recipe()


def test_constant():
    assert Recipe(lr=0.3, batch_size=5, epochs=2).rates(3, 10, 10) == [0.3] * 4


def test_cosine_per_round():
    """4 rounds: (1 + cos(0, π/4, π/2, 3π/4)) / 2."""
    recipe = Recipe(lr=2.0, schedule="cosine", batch_size=5)
    found = [recipe.rates(k, 4, 10) for k in range(4)]
    wanted = [2.0, 1 + sqrt(0.5), 1.0, 1 - sqrt(0.5)]
    assert found == [pytest.approx([w, w]) for w in wanted]


def test_cosine_per_step_with_a_longer_first_round():
    """10 examples by 5: 8 steps in round 0, 4 in each of two more; step t of 16 has cos(πt/16)."""
    recipe = Recipe(lr=1.0, schedule="cosine", per="step", batch_size=5, epochs=2, first_epochs=4)
    rates = [r for k in range(3) for r in recipe.rates(k, 3, 10)]
    assert [len(recipe.rates(k, 3, 10)) for k in range(3)] == [8, 4, 4]
    assert rates == pytest.approx([(1 + cos(pi * t / 16)) / 2 for t in range(16)])


def test_step_per_round():
    """10 rounds, a tenth from the half on and again from 0.8: rounds 0-4, 5-7, 8-9."""
    recipe = Recipe(lr=1.0, schedule="step", decay=0.1, decay_at=(0.5, 0.8), batch_size=5)
    found = [recipe.rates(k, 10, 5)[0] for k in range(10)]
    assert found == pytest.approx([1.0] * 5 + [0.1] * 3 + [0.01] * 2)


def test_step_per_step():
    """2 rounds of 4 steps, halved from step 4 of 8 on, that is 0.5 of the run."""
    recipe = Recipe(lr=1.0, schedule="step", decay=0.5, decay_at=(0.5,), per="step", steps=4)
    assert [recipe.rates(k, 2, 99) for k in range(2)] == [[1.0] * 4, [0.5] * 4]


def test_exponential():
    """Down to a tenth over the whole run: 0.1^(k/4) in round k of 4."""
    recipe = Recipe(lr=1.0, schedule="exponential", decay=0.1, batch_size=5)
    found = [recipe.rates(k, 4, 5)[0] for k in range(4)]
    assert found == pytest.approx([1.0, 0.1**0.25, 0.1**0.5, 0.1**0.75])


def test_optimisers():
    assert Recipe(momentum=0.9, nesterov=True, weight_decay=0.1).make_optimizer() == SGD(
        0.9, 0.1, True
    )
    assert Recipe(optimizer="adam", weight_decay=0.1).make_optimizer() == Adam(weight_decay=0.1)
    assert Recipe(optimizer="adamw").make_optimizer() == Adam(decoupled=True)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"optimizer": "sgdd"}, "optimizer of recipe 'sgdd'; did you mean 'sgd'"),
        ({"schedule": "cosin"}, "did you mean 'cosine'"),
        ({"per": "epoch"}, "known: round, step"),
        ({"epochs": 0}, "epochs must be at least 1, not 0"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"first_steps": 0}, "first_steps must be at least 1"),
        ({"first_epochs": -1}, "first_epochs must be at least 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"lr": 0.0}, "lr must be positive"),
        ({"lr": float("nan")}, "lr must be positive"),
        ({"momentum": 1.0}, "momentum must be at least 0 and below 1"),
        ({"weight_decay": -0.1}, "weight_decay must be at least 0"),
        ({"label_smoothing": 1.5}, "label_smoothing must be at least 0 and below 1"),
        ({"decay": 0.0}, "decay must be positive"),
        ({"decay_at": (8.0,)}, "decay_at holds shares of the run"),
        ({"nesterov": True}, "nesterov needs a momentum"),
    ],
)
def test_impossible_recipes(wrong, words):
    with pytest.raises(ConfigError, match=words):
        Recipe(**wrong)
