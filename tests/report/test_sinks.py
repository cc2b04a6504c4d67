"""What sinks hold is what the records say: whether resumed, killed or through."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from feddg.benchmark.driver import Event
from feddg.errors import ConfigError
from feddg.report.mlflow_sink import KEY, MLflow
from feddg.report.sinks import numbers, opened, tracked
from feddg.report.tensorboard_sink import FILE, TensorBoard
from tests.report.folders import rounds, written
from tests.report.stored import stored

RECORDS = rounds("m0", 0.9)


@dataclass
class Remembering:
    """A sink that only remembers what was done with it."""

    name: str = "memory"
    held: dict[str, list[int]] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)

    def mirror(self, key, experiment, records, began):
        self.held[key] = [r["round"] for r in records]

    def add(self, key, record, when):
        self.held[key].append(record["round"])

    def end(self, key):
        self.ended.append(key)


def lines(values, step, when):
    return json.dumps([step, when, values]).encode() + b"\n"


def driven(root: Path, sinks: Any, known: int, wanted=(0, 1, 2), tell: Any = pytest.fail):
    """A run of which so many records lie on the disk before the rounds that come."""
    run = stored("ga", "m0", records=RECORDS, folder=root)
    folder = run.folder
    if not folder.exists():
        written(run)
    log = folder / "results.jsonl"
    log.write_text("".join(json.dumps(r) + "\n" for r in RECORDS[:known]))

    def events():
        for k in wanted:
            if k >= len(log.read_text().splitlines()):
                with log.open("a") as file:
                    file.write(json.dumps(RECORDS[k]) + "\n")
            yield Event(run.key, "ga", RECORDS[k], "accuracy")

    for _ in tracked(events(), {run.key: run.experiment}, root, sinks, tell):
        pass
    return run.key


def test_every_round_once(tmp_path):
    sink = Remembering()
    key = driven(tmp_path, [sink], known=0)
    assert sink.held == {key: [0, 1, 2]}
    assert sink.ended == [key]


def test_rounds_that_are_trained_again_after_a_kill_are_not_held_twice(tmp_path):
    """Three records are there, the checkpoint is of the first round: rounds 1 and 2 come again."""
    sink = Remembering()
    key = driven(tmp_path, [sink], known=3, wanted=(1, 2))
    assert sink.held == {key: [0, 1, 2]}


def test_a_run_that_was_through_before_is_mirrored_too(tmp_path):
    sink = Remembering()
    key = driven(tmp_path, [sink], known=3, wanted=())
    assert sink.held == {key: [0, 1, 2]}
    assert sink.ended == [key]


def test_a_sink_that_fails_is_said_once_and_training_goes_on(tmp_path):
    class Broken(Remembering):
        def add(self, key, record, when):
            raise OSError("no route to host")

    broken, sound = Broken(name="mlflow:http://x"), Remembering()
    said: list[str] = []
    key = driven(tmp_path, [broken, sound], known=0, tell=said.append)
    assert sound.held == {key: [0, 1, 2]}
    assert [s.partition(";")[0] for s in said] == [
        "mlflow:http://x stopped (OSError: no route to host)"
    ]


def test_closing_the_events_closes_those_within(tmp_path):
    ended = []

    def events():
        try:
            yield Event("k", "ga", RECORDS[0], "accuracy")
        finally:
            ended.append(True)

    going = tracked(events(), {}, tmp_path, [], pytest.fail)
    next(going)
    going.close()
    assert ended == [True]


def test_numbers_by_their_paths():
    found = numbers({**RECORDS[1], "failures": {"a": "b"}, "losses": {"a:b": 1.0}})
    assert found["scores/test/m0/accuracy"] == 0.8
    assert found["trace/ga/weights/m30"] == 0.6
    assert found["losses/a_b"] == 1.0
    assert found["seconds"] == 0.5
    assert not any(name.startswith("failures") for name in found)


def test_tensorboards_file_is_the_same_however_often_a_run_is_cut_off(tmp_path):
    """Times go by the training, half a second a round, from when the run began."""
    once, often = TensorBoard(tmp_path / "once", lines), TensorBoard(tmp_path / "often", lines)
    key = driven(tmp_path / "runs", [once], known=0)
    driven(tmp_path / "runs", [often], known=0, wanted=(0,))
    driven(tmp_path / "runs", [often], known=2, wanted=(1, 2))
    text = (tmp_path / "often" / key / FILE).read_text()
    assert text == (tmp_path / "once" / key / FILE).read_text()
    found = [json.loads(line) for line in text.splitlines()]
    assert [step for step, _, _ in found] == [0, 1, 2]
    assert found[2][1] - found[0][1] == pytest.approx(1.0)
    assert found[0][2]["losses/total"] == 1.0


@dataclass
class Client:
    """MLflow as far as the sink knows it; every point that is logged stays."""

    runs: dict[str, Any] = field(default_factory=dict)
    points: dict[str, list[Any]] = field(default_factory=dict)
    params: dict[str, dict[str, str]] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)

    def get_experiment_by_name(self, name):
        return SimpleNamespace(experiment_id=self.homes[name]) if name in self.homes else None

    def create_experiment(self, name):
        self.homes[name] = f"e{len(self.homes)}"
        return self.homes[name]

    def search_runs(self, homes, condition):
        found = [r for r in self.runs.values() if condition == f"tags.`{KEY}` = '{r.key}'"]
        return [self.told(r) for r in found]

    def told(self, run):
        names = {p.key for p in self.points[run.key]}
        return SimpleNamespace(
            info=SimpleNamespace(run_id=run.key), data=SimpleNamespace(metrics=names)
        )

    def create_run(self, home, start, tags, name):
        self.runs[name] = SimpleNamespace(key=tags[KEY])
        self.points[name], self.params[name] = [], {}
        return self.told(self.runs[name])

    def update_run(self, run, status):
        self.status[run] = status

    def get_metric_history(self, run, name):
        return [p for p in self.points[run] if p.key == name]

    def log_batch(self, run, metrics=(), params=()):
        self.points[run] += metrics
        self.params[run] |= {p.key: p.value for p in params}

    def set_terminated(self, run):
        self.status[run] = "FINISHED"


def metric(key, value, timestamp, step):
    return SimpleNamespace(key=key, value=value, timestamp=timestamp, step=step)


def param(key, value):
    return SimpleNamespace(key=key, value=value)


def test_mlflow_gets_every_point_once_though_a_batch_was_lost(tmp_path):
    client = Client()
    key = driven(tmp_path, [MLflow("x", client, metric, param)], known=0, wanted=(0, 1))
    assert client.status == {}
    lost = client.points[key].pop()
    driven(tmp_path, [MLflow("x", client, metric, param)], known=2, wanted=(1, 2))
    points = [(p.key, p.step) for p in client.points[key]]
    assert len(points) == len(set(points))
    assert (lost.key, lost.step) in points
    assert sorted(s for n, s in points if n == "seconds") == [0, 1, 2]
    assert client.status == {key: "FINISHED"}
    assert list(client.homes) == ["feddg rotated-mnist"]


def test_mlflow_gets_the_configuration(tmp_path):
    client = Client()
    key = driven(tmp_path, [MLflow("x", client, metric, param)], known=0)
    found = client.params[key]
    assert found["data"] == "rotated-mnist"
    assert found["targets"] == "('m0',)"
    assert found["recipe.lr"] == "0.01"
    assert found["method"].startswith("ga(step=0.05")
    assert "task" not in found


def test_what_is_no_sink_is_said():
    with pytest.raises(ConfigError, match="did you mean 'tensorboard'"):
        opened(["tensorbord:x"])
    with pytest.raises(ConfigError, match="does not say where to"):
        opened(["mlflow"])


@pytest.mark.parametrize("kind", ["tensorboard", "mlflow"])
def test_what_is_not_installed_is_one_sentence(kind, monkeypatch):
    import sys

    for name in ("tensorboard", "mlflow", "mlflow.entities"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=r"is not installed: pip install 'feddg\[track\]'"):
        opened([f"{kind}:x"])
