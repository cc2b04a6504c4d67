"""What a bench compares, and when a paper's number stands beside it."""

from dataclasses import replace

import pytest
import torch

from feddg.benchmark import bench as module
from feddg.benchmark import roles
from feddg.benchmark.bench import Bench, compares, heading, listed, run, run_all, table
from feddg.benchmark.protocols import experiment
from feddg.data import catalogue
from feddg.data.catalogue import open_collection
from feddg.engines.compute import Compute
from feddg.errors import ConfigError, DataError
from tests import toy
from tests.benchmark import mini_sets
from tests.cli.command import sites

ROTATED = Bench(data="rotated-mnist", methods=("fedavg",))
HEART = Bench(data="heart-disease", methods=("fedavg", "fedprox"), seeds=2)


def test_every_domain_is_held_out_by_every_seed():
    found = ROTATED.experiments()
    assert [(row, target) for row, target, _ in found] == [
        ("fedavg", f"m{k}") for k in range(0, 90, 15)
    ]
    assert all(one.targets == (target,) for _, target, one in found)
    assert {one.seed for _, _, one in HEART.experiments()} == {0, 1}


def test_references_stand_first_and_a_hospital_is_not_judged_on_itself():
    rows = [row for row, _ in HEART.rows()]
    assert rows == [
        "cleveland alone", "hungarian alone", "switzerland alone", "va alone",
        "deepall (shares data)", "fedavg", "fedprox",
    ]  # fmt: skip
    alone = [(row, t) for row, t, _ in HEART.experiments() if row == "va alone"]
    assert {t for _, t in alone} == {"cleveland", "hungarian", "switzerland"}
    pooled = [one for row, _, one in HEART.experiments() if row == "deepall (shares data)"]
    assert all(one.pooled for one in pooled)


def test_two_names_of_one_method_share_their_runs():
    both = replace(ROTATED, methods=("fedavg", "fedavg:paper"))
    assert len(both.experiments()) == 12
    assert len(both.unique()) == 6


def test_targets_are_a_choice_in_the_datas_order():
    assert replace(ROTATED, targets=("m75", "m0")).domains() == ("m0", "m75")
    with pytest.raises(ConfigError, match="did you mean 'm75'"):
        replace(ROTATED, targets=("m755",)).domains()


def test_one_domain_only(tmp_path):
    root = sites(tmp_path / "one", ("alone",))
    wanted = Bench(data=str(root), methods=("fedavg",), data_options={"least": "1"})
    with pytest.raises(DataError, match=r"one domain only \(alone\)"):
        wanted.domains()


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": "demo"}, {"recipe": {"lr": 0.1}}, {"changes": {"rounds": 41}},
        {"selection": "oracle"}, {"data_options": {"direction": "clockwise"}},
    ],
)  # fmt: skip
def test_any_change_takes_the_papers_number_away(changes):
    assert compares(ROTATED)
    assert not compares(replace(ROTATED, **changes))


def test_a_method_is_listed_under_its_name_with_its_own_parameters_only():
    assert listed("fedavg") == listed("FedAvg:paper") == "fedavg"
    assert listed("fedavg(weights='size')") == "fedavg"
    assert listed("fedavg(weights='uniform')") is None
    assert listed("fedprox+fedmedian") is None


def test_headings():
    assert heading(ROTATED) == (
        "rotated-mnist: accuracy (%) on the domain left out; selection: last (the last round);"
        " 1 seed"
    )
    short = heading(replace(ROTATED, schedule="demo", seeds=3, recipe={"lr": 0.1}))
    assert "SHORTENED schedule 'demo' (5 epochs, then 5 rounds of 2" in short
    assert "3 seeds" in short
    assert "with lr=0.1" in short
    options = heading(replace(ROTATED, data_options={"direction": "clockwise"}))
    assert options.startswith("rotated-mnist (direction=clockwise): ")


@pytest.fixture
def own(tmp_path):
    root = sites(tmp_path / "data")
    return Bench(data=str(root), methods=("fedavg",), seeds=2, changes={"rounds": 1})


def test_a_table_of_what_is_there(own, tmp_path):
    """Before the runs all is empty; a run that is not finished is no number."""
    empty = table(own, tmp_path / "runs")
    assert empty.rows[0].numbers == (None, None, None)
    assert "accuracy (%)" in empty.title
    events = list(run(own, tmp_path / "runs", 1))
    assert len(events) == 3 * 2
    full = table(own, tmp_path / "runs")
    assert full.rows[0].average is not None
    assert full.rows[0].average.n == 2
    key = own.experiments()[0][2].key
    (tmp_path / "runs" / key / "results.jsonl").write_text("")
    row = table(own, tmp_path / "runs").rows[0]
    assert row.numbers[0] is not None
    assert (row.numbers[0].n, full.columns) == (1, ("a", "b", "c"))


def test_batches_are_made_of_what_is_left_to_do(own, tmp_path, monkeypatch):
    """With 2 sites a run, 24 visits are 12 runs at once; here 4 visits are 2."""
    monkeypatch.setattr(Compute, "visits_at_once", 4)
    batches = []

    def noting(batch, *_):
        batches.append(len(batch))
        return iter(())

    monkeypatch.setattr(module, "conduct", noting)
    list(run(own, tmp_path, 1))
    assert batches == [2, 2, 2]


def test_the_data_are_read_once_for_all(own, monkeypatch, tmp_path):
    """Opened for the overview and once per target, however many methods and seeds there are."""
    opened = []

    def noting(*name, **options):
        opened.append(options)
        return open_collection(*name, **options)

    monkeypatch.setattr(roles, "open_collection", noting)
    roles.opened.cache_clear()
    roles.federated.cache_clear()
    many = replace(own, methods=("fedavg", "fedprox", "fedmedian"))
    list(run(many, tmp_path / "runs", 1))
    table(many, tmp_path / "runs")
    assert len(opened) == 1 + 3


def test_a_table_of_adaptation_says_so_and_judges_the_oracle_on_the_same_part():
    both = Bench(data="rotated-mnist", methods=("kd3a", "oracle"), targets=("m75",), task="uda")
    title = heading(both)
    assert "80% of it at the server, without labels; judged on 20% of it" in title
    assert not compares(replace(both, methods=("fedavg",)))
    method, oracle = (one.prepared().run for _, _, one in both.experiments())
    given, shown = toy.at_server(method), oracle.sites[0].train
    assert (len(given), len(shown)) == (800, 800)
    judged = [run.judged["test/m75"] for run in (method, oracle)]
    assert len(judged[0]) == 200
    assert all(torch.equal(a.x, b.x) for a, b in (judged, (given, shown)))
    assert torch.equal(judged[0].y, judged[1].y)
    assert set(given.y.tolist()) == {-1}


def test_a_task_nobody_knows_and_one_that_is_the_default():
    with pytest.raises(ConfigError, match="unknown task 'da'"):
        replace(ROTATED, task="da")
    plain, said = (experiment("rotated-mnist", targets=("m0",), task=t) for t in (None, "dg"))
    assert plain.key == said.key
    other = experiment("rotated-mnist", targets=("m0",), task="uda")
    assert other.key != plain.key


@pytest.fixture
def wilds(monkeypatch):
    monkeypatch.setattr(catalogue, "SPECS", mini_sets.SPECS)
    roles.opened.cache_clear()
    yield Bench(data="camelyon17", methods=("fedavg",), changes={"model": "mlp"})
    roles.opened.cache_clear()


def test_data_with_roles_of_their_own_are_one_run(wilds):
    """All unseen domains are judged in one run; validation's domain trains nobody."""
    found = wilds.experiments()
    assert [(target, one.targets, one.validation) for _, target, one in found] == [
        ("test", ("test",), ("validation",))
    ]
    assert wilds.rule == "domain-val"


def test_timed_runs_go_alone(own, tmp_path, monkeypatch):
    batches = []

    def noting(batch, *_):
        batches.append(len(batch))
        return iter(())

    monkeypatch.setattr(module, "conduct", noting)
    list(run_all(own.unique(), tmp_path, 1, alone=True))
    assert batches == [1] * 6
