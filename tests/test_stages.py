"""Where time goes: stages, their nesting, the workers' part, and nothing where it is off."""

import json
import time

import pytest

from feddg import stages
from feddg.catalogue import compose
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import rounds
from feddg.engines.workers import Workers
from feddg.stages import Stages, profiled, stage, table
from tests import toy
from tests.cli.command import feddg, sites


@pytest.fixture
def clock(monkeypatch):
    """One that goes on by a second at every look."""
    ticks = iter(range(1000))
    monkeypatch.setattr(stages, "perf_counter", lambda: float(next(ticks)))


def test_every_moment_is_the_innermost_stages(clock):
    """Looks at 0 (start), 1 (into training), 2 (into data), 3, 4 (out), 5 (the end).

    So one second each before, in training, in data, in training again, and after.
    """
    with profiled() as found:
        with stage("training"), stage("data"):
            pass
        assert found.take() == {"other": 2.0, "training": 2.0, "data": 1.0}


def fails_within(found):
    found.enter("data")
    raise ValueError


def test_what_an_error_left_entered_is_left_with_its_stage(clock):
    with profiled() as found:
        with pytest.raises(ValueError), stage("training"):
            fails_within(found)
        assert found.entered == []


def test_a_round_has_what_was_spent_here_and_in_workers(clock):
    with profiled() as found:
        with stage("guard"):
            pass
        found.add({"training": 5.0})
        found.add({"training": 2.0})
        found.end_round({"a": 3})
        [row] = found.rounds
    assert row["rounds"] == {"a": 3}
    assert row["here"] == {"other": 2.0, "guard": 1.0}
    assert row["seconds"] == 3.0
    assert row["workers"] == {"training": 7.0}
    named = {line[0].partition(":")[0]: line[1:] for line in table([row, row])}
    assert named == {
        "guard": ("2.00", "33%", ""), "other": ("4.00", "67%", ""),
        "training": ("0.00", "0%", "14.00"),
    }  # fmt: skip


def test_nothing_is_collected_where_nobody_asks(monkeypatch):
    def forbidden(*_):
        raise AssertionError("collected")

    monkeypatch.setattr(Stages, "mark", forbidden)
    with stage("training"):
        pass
    list(rounds([toy.run(compose("fedavg"), 1)], InProcess()))


def test_the_stages_of_one_process_and_of_workers_are_both_seen():
    run = toy.run(compose("ga"), 2)
    with profiled() as alone:
        list(rounds([run], InProcess()))
        here = alone.take()
    assert {"data", "training", "evaluation", "guard", "aggregation"} <= here.keys()
    with profiled() as spread:
        began = time.perf_counter()
        with Workers(runs=[run], count=2) as engine:
            list(rounds([run], engine))
        took = time.perf_counter() - began
        here, there = spread.take(), spread.workers
    assert {"waiting", "wire", "guard"} <= here.keys()
    assert "training" not in here
    assert {"data", "training", "evaluation"} <= there.keys()
    assert sum(here.values()) == pytest.approx(took, rel=0.1, abs=0.05)
    assert sum(there.values()) < 2 * took


def test_the_command_line_shows_a_table_and_keeps_the_rounds(capsys, tmp_path):
    data = sites(tmp_path / "clinics")
    said = feddg(
        capsys, "run", data, "--target", "c", "--rounds", 2, "--workers", 1, "--out",
        tmp_path / "runs", "--profile",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "where time went in 2 rounds" in said.err
    assert "training: forward, backward" in said.err
    [folder] = (tmp_path / "runs").iterdir()
    found = json.loads((folder / "profile.json").read_text())
    assert [list(r["rounds"].values()) for r in found] == [[0], [1]]
    assert found[1]["here"]["training"] > 0
    assert found[1]["seconds"] == pytest.approx(sum(found[1]["here"].values()))
