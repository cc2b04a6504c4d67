"""The records of runs in other people's tools: TensorBoard and MLflow.

results.jsonl is what was measured; a sink only mirrors it. So a run that is resumed has no point
twice, one that was killed lacks none, and a sink that fails costs nothing but the picture.
"""

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from feddg.benchmark.driver import Event
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.records import read_records
from feddg.benchmark.selection import Record
from feddg.errors import ConfigError, unknown
from feddg.report.rounds import leaves

INSTALL = "pip install 'feddg[track]'"


class Sink(Protocol):
    """`began`: when the run did, in seconds; a record's time is that and the training so far."""

    @property
    def name(self) -> str: ...

    def mirror(
        self, key: str, experiment: Experiment, records: Sequence[Record], began: float
    ) -> None:
        """Hold exactly these records of the run, whatever was held before."""

    def add(self, key: str, record: Record, when: float) -> None:
        """One more record of a run that was mirrored."""

    def end(self, key: str) -> None:
        """The run is through."""


def numbers(record: Record) -> dict[str, float]:
    """Every number of a record by its path, in characters that all tools take."""
    kinds = ("scores", "worst", "losses", "trace", "curves", "bytes_up", "bytes_down", "seconds")
    found = leaves({k: record[k] for k in kinds if k in record})
    return {re.sub(r"[^\w\-./ ]", "_", "/".join(path)): value for path, value in found}


def timed(records: Sequence[Record], began: float) -> Iterator[tuple[Record, float]]:
    when = began
    for record in records:
        when += record["seconds"]
        yield record, when


def opened(texts: Sequence[str]) -> tuple[Sink, ...]:
    """`tensorboard:DIR`, `mlflow:URI`."""
    from feddg.report.mlflow_sink import mlflow
    from feddg.report.tensorboard_sink import tensorboard

    kinds: dict[str, Callable[[str], Sink]] = {"tensorboard": tensorboard, "mlflow": mlflow}
    found = []
    for text in texts:
        kind, _, where = text.partition(":")
        if kind not in kinds:
            raise unknown("--track", kind, kinds)
        if not where:
            raise ConfigError(
                f"--track {text} does not say where to: write tensorboard:DIR or mlflow:URI"
            )
        found.append(kinds[kind](where))
    return tuple(found)


def missing(package: str) -> ConfigError:
    return ConfigError(f"--track needs the package {package}, which is not installed: {INSTALL}")


def tracked(
    events: Generator[Event, None, None],
    experiments: Mapping[str, Experiment],
    root: Path,
    sinks: Sequence[Sink],
    tell: Callable[[str], None],
) -> Generator[Event, None, None]:
    """The same events; at their end every sink has what the runs' folders have.

    `tell` is told, once, what stopped a sink.
    """
    mirrors = [Mirrored(sink, experiments, root, tell) for sink in sinks]
    with closing(events):
        for event in events:
            for mirror in mirrors:
                mirror.note(event.key, event.record)
            yield event
    for mirror in mirrors:
        for key in experiments:
            mirror.note(key)


@dataclass(eq=False)
class Mirrored:
    """One sink, and how far it is. What stops it is said once, and the runs go on."""

    sink: Sink
    experiments: Mapping[str, Experiment]
    root: Path
    tell: Callable[[str], None]
    last: dict[str, Record] = field(default_factory=dict)
    when: dict[str, float] = field(default_factory=dict)
    broken: bool = False

    def note(self, key: str, record: Record | None = None) -> None:
        if self.broken:
            return
        try:
            if key not in self.last:
                self.begin(key)
            elif record is not None and record["round"] > self.last[key]["round"]:
                self.when[key] += record["seconds"]
                self.sink.add(key, record, self.when[key])
                self.reached(key, record)
        except Exception as error:
            self.broken = True
            self.tell(
                f"{self.sink.name} stopped ({type(error).__name__}: {error}); training goes on, and"
                " the same command later brings it up to date"
            )

    def begin(self, key: str) -> None:
        """With all that is in the folder: also of a run that was through before."""
        folder = self.root / key
        records = read_records(folder / "results.jsonl")
        if not records:
            return
        began = (folder / "config.toml").stat().st_mtime
        self.sink.mirror(key, self.experiments[key], records, began)
        self.when[key] = began + sum(r["seconds"] for r in records)
        self.reached(key, records[-1])

    def reached(self, key: str, record: Record) -> None:
        self.last[key] = record
        if record["round"] + 1 >= self.experiments[key].rounds:
            self.sink.end(key)
