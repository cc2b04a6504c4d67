"""A run's folder: its configuration, an append-only record, a checkpoint, the final model."""

import fcntl
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import torch

from feddg import __version__
from feddg.benchmark.selection import Record
from feddg.checkpoint import unwritable, write_whole
from feddg.errors import ConfigError


@dataclass(eq=False)
class RunFolder:
    """Held by one process at a time; `close` lets go, and so does the end of the process."""

    path: Path
    lock: IO[bytes]
    held: ClassVar[set[Path]] = set()  # by this process, which a lock of fcntl does not stop

    @staticmethod
    def open(
        path: Path,
        config: str,
        split: Mapping[str, Any] | None = None,
        compute: Mapping[str, str] | None = None,
    ) -> "RunFolder":
        """Make it, or go on with what has the same configuration; anything else is refused."""
        path = path.resolve()
        if path in RunFolder.held:
            raise ConfigError(f"{path} is in use by this very process; let that run end")
        with unwritable(path, "choose another --out"):
            path.mkdir(parents=True, exist_ok=True)
            lock = open(path / ".lock", "wb")  # noqa: SIM115 (held until `close`)
        try:
            # Not flock, whose lock the forked workers would share and so outlive a killed parent.
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise ConfigError(f"{path} is in use by another feddg; wait for it or end it") from None
        RunFolder.held.add(path)
        folder = RunFolder(path, lock)
        try:
            folder.begin(config, split, {**environment(), **(compute or {})})
        except BaseException:
            folder.close()
            raise
        return folder

    def begin(
        self, config: str, split: Mapping[str, Any] | None, around: Mapping[str, str]
    ) -> None:
        """The configuration goes last: where it is, all else is."""
        place, rows = self.path / "config.toml", self.path / "split.json"
        if place.exists():
            if place.read_text("utf-8") != config:
                raise ConfigError(
                    f"{self.path} holds another run (its config.toml differs); choose another --out"
                )
            if split is not None and rows.exists():
                compare(rows, split)
            return
        if split is not None:
            write_whole(rows, json.dumps(split).encode())
        write_whole(self.path / "environment.json", json.dumps(around, indent=1).encode())
        write_whole(place, config.encode())

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
    def profile(self) -> Path:
        return self.path / "profile.json"

    @property
    def finished(self) -> bool:
        return finished(self.path)

    def records(self) -> list[Record]:
        """What is recorded. Whole lines stay; half a line that a crash left is taken away."""
        if not self.log.exists():
            return []
        data = self.log.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(self.log, whole)
        return read_records(self.log)

    def append(self, record: Record) -> None:
        with unwritable(self.log), open(self.log, "a", encoding="utf-8") as file:
            file.write(json.dumps(record, allow_nan=False) + "\n")

    def sync(self) -> None:
        """To the disk, before a checkpoint that counts on it."""
        if self.log.exists():
            with open(self.log, "rb") as file:
                os.fsync(file.fileno())

    def close(self) -> None:
        RunFolder.held.discard(self.path)
        self.lock.close()


def finished(path: Path) -> bool:
    """The model is written last of all."""
    return (path / "model" / "model.safetensors").exists()


def started(path: Path) -> str:
    """The pretrained weights that a finished run began with, in words."""
    try:
        about = json.loads((path / "model" / "model.json").read_text("utf-8"))["about"]
    except (OSError, ValueError, KeyError):
        return ""
    return str(about.get("start", ""))


def compare(path: Path, split: Mapping[str, Any]) -> None:
    """The rows that were held out when the run began are held out now."""
    try:
        before = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path} is damaged ({error}); remove the folder to start anew") from None
    for site in sorted({*before, *split}):
        if before.get(site) != split.get(site):
            raise ConfigError(
                f"{path}: site {site!r} had other data, or held out other rows, when this run"
                " began; bring the data back as they were, or choose another --out"
            )


def environment() -> dict[str, str]:
    """What a number may depend on besides its configuration."""
    return {
        "feddg": __version__, "torch": torch.__version__, "python": platform.python_version(),
        "system": platform.platform(), "processor": processor(), "cores": str(os.cpu_count()),
    }  # fmt: skip


def processor() -> str:
    """The CPU's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((v.partition(":")[2].strip() for v in lines if v.startswith("model name")), "")


def read_records(path: Path) -> list[Record]:
    """Every whole line; half a line that a crash left is none."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text("utf-8").split("\n")[:-1]:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            raise ConfigError(
                f"{path}, line {len(found) + 1} is damaged; remove the folder to start anew"
            ) from None
    return found
