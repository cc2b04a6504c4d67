"""With the real packages, where they are: they are extras, which the suite does not install."""

import warnings

import pytest

from feddg.errors import ConfigError
from feddg.report.sinks import opened
from tests.report.test_sinks import driven


def test_tensorboard_reads_what_was_written(tmp_path):
    pytest.importorskip("tensorboard", reason="pip install 'feddg[track]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def sinks():
        return opened([f"tensorboard:{tmp_path / 'tb'}"])

    key = driven(tmp_path / "runs", sinks(), known=0, wanted=(0, 1))
    driven(tmp_path / "runs", sinks(), known=2, wanted=(1, 2))
    found = EventAccumulator(str(tmp_path / "tb" / key)).Reload()
    points = found.Scalars("scores/test/m0/accuracy")
    assert [p.step for p in points] == [0, 1, 2]
    assert [p.value for p in points] == pytest.approx([0.7, 0.8, 0.9])


def test_a_place_that_mlflow_refuses_is_said(monkeypatch):
    pytest.importorskip("mlflow", reason="pip install 'feddg[track]'")
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    with pytest.raises(ConfigError, match="--track mlflow:nothing://x cannot be opened"):
        opened(["mlflow:nothing://x"])


def test_mlflow_has_every_point_once(tmp_path, monkeypatch):
    """In a folder, which takes no server; MLflow 3 wants to be told that it may."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    pytest.importorskip("mlflow", reason="pip install 'feddg[track]'")
    from mlflow.tracking import MlflowClient

    where = f"file:{tmp_path / 'mlruns'}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of MLflow's own
        for known, wanted in ((0, (0, 1)), (2, (1, 2))):
            key = driven(tmp_path / "runs", opened([f"mlflow:{where}"]), known, wanted)
        client = MlflowClient(tracking_uri=where)
        home = client.get_experiment_by_name("feddg rotated-mnist")
        assert home is not None
        [run] = client.search_runs([home.experiment_id])
        history = client.get_metric_history(run.info.run_id, "scores/test/m0/accuracy")
    assert run.info.run_name == key
    assert run.info.status == "FINISHED"
    assert sorted((p.step, p.value) for p in history) == [(0, 0.7), (1, 0.8), (2, 0.9)]
    assert run.data.params["data"] == "rotated-mnist"
