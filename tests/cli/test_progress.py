"""What is shown while it trains."""

import time
from io import StringIO

import pytest

from feddg.benchmark.driver import Event
from feddg.benchmark.experiment import Experiment
from feddg.cli import progress
from feddg.cli.progress import Tally, clock, follow, summary
from feddg.recipe import Recipe


def event(round, key="one", losses=None, scores=None, failures=None):
    record = {
        "round": round, "losses": losses or {"total": 0.5}, "failures": failures or {},
        "scores": scores if scores is not None else {"val/a": {"accuracy": 0.75}},
    }  # fmt: skip
    return Event(key, "fedavg→c", record, "accuracy")


def experiment(rounds=4, **recipe):
    return Experiment(data="heart-disease", rounds=rounds, recipe=Recipe(**recipe))


@pytest.fixture
def clocked(monkeypatch):
    """A clock that is set by hand."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_time_left_goes_by_the_work_of_the_rounds(clocked, tmp_path):
    """30 epochs, then 3 rounds of 5: after 60 s for the first, 15/30 of that is left."""
    tally = Tally.of({"one": experiment(4, epochs=5, first_epochs=30)}, tmp_path)
    clocked[0] += 60
    tally.note(event(0))
    assert tally.left == pytest.approx(30)
    assert (tally.rounds, tally.total) == (1, 4)


def test_rounds_of_before_count_as_done_but_not_as_fast(clocked, tmp_path):
    tally = Tally.of({"one": experiment(10), "two": experiment(10)}, tmp_path)
    clocked[0] += 10
    tally.note(event(7))  # goes on where it stopped, after seven rounds
    assert tally.rounds == 8
    assert tally.left == pytest.approx(10 * (2 + 10))


def test_finished_runs_are_done(clocked, tmp_path):
    (tmp_path / "two" / "model").mkdir(parents=True)
    (tmp_path / "two" / "model" / "model.safetensors").write_bytes(b"")
    tally = Tally.of({"one": experiment(3), "two": experiment(5)}, tmp_path)
    assert (tally.rounds, tally.total) == (5, 8)
    assert tally.left == 0.0


def test_lines_come_every_ten_seconds_and_at_the_end(clocked, tmp_path, capsys):
    def events():
        for k in range(30):
            clocked[0] += 1
            yield event(k)

    follow(events(), {"one": experiment(30)}, tmp_path)
    lines = capsys.readouterr().err.splitlines()
    assert [v.partition(" ")[0] for v in lines] == ["10/30", "20/30", "30/30"]
    assert lines[0] == ("10/30 rounds, 0:20 left; fedavg→c  loss 0.500  source val accuracy 0.750")


def test_quiet_is_quiet(tmp_path, capsys):
    follow(iter([event(0)]), {"one": experiment(1)}, tmp_path, quiet=True)
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_a_bar(tmp_path, monkeypatch):
    from rich.console import Console

    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=60)
    tally = Tally.of({"one": experiment(2)}, tmp_path)
    progress.bars(iter([event(0), event(1)]), tally, console)
    assert "1/2 rounds" in screen.getvalue()
    assert "source val accuracy 0.750" in screen.getvalue()


def test_events_are_closed_on_an_interrupt(tmp_path):
    """What the driver keeps is kept before anybody is told."""
    closed = []

    def events():
        try:
            yield event(0)
            raise KeyboardInterrupt
        finally:
            closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        follow(events(), {"one": experiment(2)}, tmp_path, quiet=True)
    assert closed == [True]


def test_summary_without_a_score_or_a_loss():
    assert summary(event(0, losses={"TaskLoss": None}, scores={})) == "fedavg→c"
    assert summary(event(0, scores={"val/a": {"accuracy": None}})) == "fedavg→c  loss 0.500"
    assert summary(event(0, scores={}, failures={"b": "ill"})).endswith("failed: b")


def test_clock():
    assert [clock(s) for s in (0, 9.6, 75, 3661)] == ["0:00", "0:10", "1:15", "1:01:01"]
