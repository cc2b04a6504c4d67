"""A run's folder: its configuration, an append-only record, a checkpoint, the final model."""

import fcntl
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch

from feddg import __version__
from feddg.checkpoint import write_whole
from feddg.errors import ConfigError

Record = dict[str, Any]  # one line of results.jsonl


@dataclass(eq=False)
class RunFolder:
    """Held by one process at a time; `close` lets go."""

    path: Path
    lock: IO[str]

    @staticmethod
    def open(path: Path, config: str) -> "RunFolder":
        """Make it, or go on with what has the same configuration; anything else is refused."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = open(path / ".lock", "w")
        except OSError as error:
            raise ConfigError(f"cannot write to the output folder {path}: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise ConfigError(f"{path} is in use by another feddg; wait for it or end it") from None
        place = path / "config.toml"
        if place.exists() and place.read_text() != config:
            lock.close()
            raise ConfigError(
                f"{path} holds another run (its config.toml differs); choose another --out"
            )
        if not place.exists():
            write_whole(path / "environment.json", json.dumps(environment(), indent=1).encode())
            write_whole(place, config.encode())
        return RunFolder(path, lock)

    @property
    def log(self) -> Path:
        return self.path / "results.jsonl"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.safetensors"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def finished(self) -> bool:
        return (self.model / "model.safetensors").exists()

    def resume(self, length: int) -> list[Record]:
        """Drop what was recorded after the checkpoint; it will be recorded again."""
        if not self.log.exists() or not length:
            self.log.write_bytes(b"")
        else:
            os.truncate(self.log, length)
        return list(read_records(self.log))

    def append(self, record: Record) -> None:
        with open(self.log, "a") as file:
            file.write(json.dumps(record) + "\n")

    @property
    def length(self) -> int:
        return self.log.stat().st_size

    def close(self) -> None:
        self.lock.close()


def environment() -> dict[str, str]:
    """What a number may depend on besides its configuration."""
    return {
        "feddg": __version__, "torch": torch.__version__, "python": platform.python_version(),
        "system": platform.platform(), "processor": processor(),
        "cores": str(len(os.sched_getaffinity(0))),
    }  # fmt: skip


def processor() -> str:
    """The CPU's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((v.partition(":")[2].strip() for v in lines if v.startswith("model name")), "")


def read_records(path: Path) -> Iterator[Record]:
    """Every whole line; one that a crash cut off is left out."""
    if not path.exists():
        return
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            return
