"""Settings to try: what a grid means, and that every method is given as many."""

import pytest

from feddg.benchmark.grids import optioned, trials
from feddg.errors import ConfigError


def specs(found):
    return [t.spec for t in found]


def test_a_grid_of_a_parameter():
    found = trials(["csac"], ["lam=[0,.2,.4]"])
    assert specs(found) == ["csac(lam=0)", "csac(lam=0.2)", "csac(lam=0.4)"]
    assert [t.said for t in found] == ["lam=0", "lam=0.2", "lam=0.4"]


@pytest.mark.parametrize("text", ["lambda=[0,.2]", "lam=0,.2", "lam = [0, 0.2]"])
def test_other_ways_to_write_it(text):
    assert specs(trials(["csac"], [text])) == ["csac(lam=0)", "csac(lam=0.2)"]


def test_words_and_lists_as_values():
    found = trials(["csac"], ["distance=[l1,cosine]"])
    assert specs(found) == ["csac(distance='l1')", "csac(distance='cosine')"]


def test_two_grids_are_all_pairs_in_order():
    found = trials(["ga+fedprox"], ["step=[.1,.2]", "mu=[0,1]"])
    assert [t.said for t in found] == [
        "step=0.1, mu=0", "step=0.1, mu=1", "step=0.2, mu=0", "step=0.2, mu=1",
    ]  # fmt: skip
    assert found[1].spec == "ga(step=0.1)+fedprox(mu=1)"


def test_a_setting_of_the_recipe_is_every_methods():
    found = trials(["fedavg", "csac"], ["lr=[.01,.1]"])
    assert [(t.spec, dict(t.recipe)) for t in found] == [
        ("fedavg", {"lr": 0.01}), ("fedavg", {"lr": 0.1}),
        ("csac", {"lr": 0.01}), ("csac", {"lr": 0.1}),
    ]  # fmt: skip


def test_a_grid_of_one_method_among_several():
    found = trials(["csac", "ppdg"], ["csac.lam=[0,1]", "ppdg.lam=[.1,.2]"])
    assert specs(found) == ["csac(lam=0)", "csac(lam=1)", "ppdg(lam=0.1)", "ppdg(lam=0.2)"]


def test_options_that_stand_there_already_give_way():
    assert optioned("ga+fedprox(mu=0.5)", "mu", 0.1) == "ga+fedprox(mu=0.5, mu=0.1)"
    [one] = trials(["fedprox(mu=0.5)"], ["mu=[0.1]"])
    assert one.spec == "fedprox(mu=0.5, mu=0.1)"


def test_unequal_numbers_are_refused_and_drawn_to_equal():
    grid = ["fedprox.mu=[0,.1,1]", "csac.lam=[0,.6]"]
    with pytest.raises(ConfigError, match=r"fedprox has 3, csac has 2; --trials 2 draws"):
        trials(["fedprox", "csac"], grid)
    found = trials(["fedprox", "csac"], grid, 2)
    assert [t.method for t in found] == ["fedprox", "fedprox", "csac", "csac"]
    assert found == trials(["fedprox", "csac"], grid, 2)


def test_a_draw_depends_on_its_seed_and_is_without_repetition():
    grid = ["mu=[" + ",".join(f"0.{k}" for k in range(1, 10)) + "]"]
    drawn = [tuple(specs(trials(["fedprox"], grid, 4, seed))) for seed in range(6)]
    assert len(set(drawn)) > 1
    assert all(len(set(d)) == 4 for d in drawn)


@pytest.mark.parametrize(
    ("methods", "grid", "count", "sentence"),
    [
        (["csac"], ["lamm=[0]"], None, "unknown parameter in --grid 'lamm'; did you mean 'lam'"),
        (["csac"], ["lam"], None, "write lam="),
        (["csac"], ["lam=[]"], None, "must hold values"),
        (["csac"], ["lam=[0,0]"], None, "each once"),
        (["csac"], ["lam=[a]"], None, "must be a float"),
        (["csac"], ["lam=[-1]"], None, "lam"),
        (["csac"], ["lr=[a]"], None, "--grid: lr must be a number"),
        (["csac", "csac"], ["lam=[0]"], None, "each once"),
        (["csac"], ["lam=[0,1]"], 3, "give from 1 to 2"),
        (["csac"], ["lam=[0,1]"], 0, "give from 1 to 2"),
    ],
)
def test_what_cannot_be_tried(methods, grid, count, sentence):
    with pytest.raises(ConfigError, match=sentence):
        trials(methods, grid, count)
