"""Runs for MLflow: an experiment for each data set, in it a run for each of ours, by its key."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from feddg.benchmark.experiment import Experiment
from feddg.benchmark.selection import Record
from feddg.errors import ConfigError
from feddg.report.sinks import missing, numbers, timed

KEY = "feddg.key"
LIMIT = 500  # of an MLflow parameter
BATCH = 1000  # metrics of one request, MLflow's own limit


@dataclass
class MLflow:
    """`client` is MlflowClient, `metric` and `param` its entities."""

    where: str
    client: Any
    metric: Any
    param: Any
    runs: dict[str, str] = field(default_factory=dict)  # key -> MLflow's own name of the run

    @property
    def name(self) -> str:
        return f"mlflow:{self.where}"

    def mirror(
        self, key: str, experiment: Experiment, records: Sequence[Record], began: float
    ) -> None:
        """MLflow forgets no point, so only those that it lacks are sent."""
        run = self.run(key, experiment, began)
        known = {
            (name, point.step)
            for name in run.data.metrics
            for point in self.client.get_metric_history(run.info.run_id, name)
        }
        lacking = [
            self.metric(name, value, round(1000 * when), record["round"])
            for record, when in timed(records, began)
            for name, value in numbers(record).items()
            if (name, record["round"]) not in known
        ]
        for at in range(0, len(lacking), BATCH):
            self.client.log_batch(run.info.run_id, metrics=lacking[at : at + BATCH])

    def run(self, key: str, experiment: Experiment, began: float) -> Any:
        """The one of this key, or a new one with the configuration as its parameters."""
        home = self.home(f"feddg {experiment.data}")
        found = self.client.search_runs([home], f"tags.`{KEY}` = '{key}'")
        if found:
            run = found[0]
            self.client.update_run(run.info.run_id, status="RUNNING")
        else:
            run = self.client.create_run(home, round(1000 * began), {KEY: key}, key)
            params = [self.param(k, v[:LIMIT]) for k, v in parameters(experiment).items()]
            self.client.log_batch(run.info.run_id, params=params)
        self.runs[key] = run.info.run_id
        return run

    def home(self, name: str) -> str:
        found = self.client.get_experiment_by_name(name)
        return found.experiment_id if found else self.client.create_experiment(name)

    def add(self, key: str, record: Record, when: float) -> None:
        found = numbers(record).items()
        points = [self.metric(n, v, round(1000 * when), record["round"]) for n, v in found]
        for at in range(0, len(points), BATCH):
            self.client.log_batch(self.runs[key], metrics=points[at : at + BATCH])

    def end(self, key: str) -> None:
        self.client.set_terminated(self.runs[key])


def parameters(experiment: Experiment) -> dict[str, str]:
    """The configuration, a line for each setting; what is not set is left out."""
    found: dict[str, str] = {}
    for key, value in asdict(experiment.resolved()).items():
        inner = value if isinstance(value, Mapping) else {"": value}
        for name, v in inner.items():
            if v not in (None, ()):
                found[f"{key}.{name}".strip(".")] = str(v)
    return found


def mlflow(where: str) -> MLflow:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # what we measure is nobody else's
    try:
        from mlflow.entities import Metric, Param
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise missing("mlflow-skinny") from None
    try:
        client = MlflowClient(tracking_uri=where)
    except Exception as error:  # of many kinds, by the place: a server, a database, a folder
        raise ConfigError(f"--track mlflow:{where} cannot be opened: {error}") from None
    return MLflow(where, client, Metric, Param)
