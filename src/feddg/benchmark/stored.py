"""Runs as they lie on a disk: what tables, figures and the report are drawn from."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feddg.benchmark.experiment import Experiment, from_toml
from feddg.benchmark.records import finished, read_records
from feddg.benchmark.selection import Record, rule
from feddg.errors import ConfigError
from feddg.tasks import Task


@dataclass(frozen=True, eq=False)
class StoredRun:
    """One run's folder, read. `finished`: its model is there, in `folder / "model"`."""

    folder: Path
    experiment: Experiment
    records: tuple[Record, ...]
    environment: Mapping[str, str]
    finished: bool

    @property
    def key(self) -> str:
        return self.folder.name

    def selected(self, task: Task) -> Record:
        """The round that the run's own selection rule picks."""
        return rule(self.experiment.selection).pick(self.records, task)


def stored_runs(places: Sequence[Path]) -> tuple[StoredRun, ...]:
    """Every run in the given folders or anywhere below them, once each, by its folder's name."""
    found: dict[Path, StoredRun] = {}
    for place in places:
        if not place.is_dir():
            raise ConfigError(f"there is no folder {place}; name one that holds runs")
        for folder in folders(place):
            found.setdefault(folder.resolve(), stored_run(folder))
    if not found:
        named = ", ".join(map(str, places))
        raise ConfigError(f"there is no run in {named}; `feddg bench` and `feddg run` make some")
    return tuple(sorted(found.values(), key=lambda r: r.key))


def folders(place: Path) -> Iterator[Path]:
    yield from sorted(path.parent for path in place.rglob("config.toml"))


def stored_run(folder: Path) -> StoredRun:
    try:
        environment: Any = json.loads((folder / "environment.json").read_text("utf-8"))
    except FileNotFoundError:
        environment = {}
    except (OSError, ValueError) as why:
        raise ConfigError(f"{folder / 'environment.json'} is damaged ({why})") from None
    return StoredRun(
        folder, from_toml(folder / "config.toml"), tuple(read_records(folder / "results.jsonl")),
        environment, finished(folder),
    )  # fmt: skip
