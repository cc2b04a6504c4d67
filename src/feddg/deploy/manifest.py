"""model.json: what the weights beside it are, in words and numbers that a program can check."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from torch import nn

from feddg.errors import ConfigError, unknown
from feddg.method import Method
from feddg.tasks import Classification, Regression, Task
from feddg.weights import Layout

FORMAT = 1
WEIGHTS, MANIFEST, CARD = "model.safetensors", "model.json", "README.md"
NOTES = "notes/"  # where the method's notes stand in the weights' file
TASKS: dict[str, type[Any]] = {"classification": Classification, "regression": Regression}


@dataclass(frozen=True)
class Architecture:
    """What builds the network: a name of the catalogue or `package.module:factory`.

    `own`: the user's module was given as an object, so nobody knows its arguments.
    """

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False


@dataclass(frozen=True)
class File:
    """The weights' file, as it was written."""

    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The contents of model.json."""

    method: str
    own_method: bool  # not in the catalogue: whoever loads the model brings it along
    architecture: Architecture
    layout: Layout
    task: Task
    prepare: tuple[Mapping[str, Any], ...]
    shape: tuple[int, ...]  # of one input, before `prepare`
    dtype: torch.dtype
    columns: tuple[str, ...]  # of a table
    data: str
    protocol: str
    weights: File
    training: Mapping[str, Any]
    versions: Mapping[str, str]
    about: Mapping[str, Any]

    @property
    def indicators(self) -> bool:
        """Whether a table's second half of inputs says which values of the first are missing."""
        return bool(self.columns) and self.shape == (2 * len(self.columns),)

    @property
    def takes(self) -> str:
        """The input in words, for messages."""
        if self.columns:
            return f"tables with the columns {', '.join(self.columns)}"
        return f"inputs {'×'.join(map(str, self.shape))} of {dtype_name(self.dtype)}"

    def to_json(self) -> str:
        """Keys in a fixed order, and nothing that changes from one saving to the next."""
        where = self.layout
        content = {
            "format": FORMAT,
            "method": {"spec": self.method, "own": self.own_method},
            "architecture": asdict(self.architecture),
            "task": described(self.task),
            "prepare": self.prepare,
            "input": {
                "shape": self.shape,
                "dtype": dtype_name(self.dtype),
                "columns": self.columns,
            },
            "data": {"name": self.data, "protocol": self.protocol},
            "layout": {"names": where.names, "shapes": where.shapes, "learned": where.learned},
            "weights": {"file": WEIGHTS, **asdict(self.weights)},
            "training": self.training,
            "versions": self.versions,
            "about": self.about,
        }
        try:
            return json.dumps(plain(content), indent=1, ensure_ascii=False) + "\n"
        except TypeError as why:
            raise ConfigError(f"{MANIFEST} cannot be written: {why}") from None


def features(columns: tuple[str, ...]) -> tuple[str, ...]:
    """A table's columns as its files name them: without indicators, if these are named too."""
    half = columns[: len(columns) // 2]
    return half if half and columns == (*half, *(f"{c}_missing" for c in half)) else columns


def shaped(method: Method, model: nn.Module) -> nn.Module:
    """The network as the method works on it, where it changes the architecture (COPA's norms).

    Changing it twice is changing it once, so it does not matter whether that was done before.
    """
    change = getattr(method, "architecture", None)
    changed: nn.Module = change(model) if change else model
    return changed


def described(task: Task) -> dict[str, Any]:
    """A task as JSON; `task_from` reads it."""
    for kind, cls in TASKS.items():
        if type(task) is cls:
            return {"kind": kind, **asdict(task)}  # type: ignore[call-overload]
    raise ConfigError(
        f"a model for the task {type(task).__name__} cannot be saved as a folder;"
        f" {' and '.join(TASKS)} can"
    )


def task_from(content: Mapping[str, Any]) -> Task:
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
    kind = fields.pop("kind")
    if kind not in TASKS:
        raise unknown("task", str(kind), TASKS)
    made: Task = TASKS[kind](**fields)
    return made


def contents(path: Path) -> bytes:
    """A file of a model's folder, or what is wrong with it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(
            f"{path} is missing; a model's folder has {MANIFEST} and {WEIGHTS}"
        ) from None
    except OSError as why:
        raise ConfigError(f"{path} cannot be read: {why}") from None


def read_manifest(path: Path) -> Manifest:
    """model.json, checked; a `ConfigError` says what is wrong with it."""
    data = contents(path)
    try:
        content = json.loads(data.decode("utf-8"))
    except ValueError as why:
        raise ConfigError(
            f"{path} is no readable JSON ({why}); it is cut short or damaged, copy the folder again"
        ) from None
    version = content.get("format") if isinstance(content, dict) else None
    if version != FORMAT:
        raise ConfigError(
            f"{path} has format {version!r}, this feddg reads format {FORMAT};"
            " use the version of feddg that wrote it, or a newer one"
        )
    with intact(path):
        return _manifest(content)


def _manifest(content: Mapping[str, Any]) -> Manifest:
    where, at, how = content["layout"], content["input"], content["method"]
    shapes = tuple(tuple(int(n) for n in s) for s in where["shapes"])
    names = tuple(map(str, where["names"]))
    if len(names) != len(shapes):
        raise ValueError(f"layout has {len(names)} names and {len(shapes)} shapes")
    return Manifest(
        method=str(how["spec"]),
        own_method=bool(how["own"]),
        architecture=Architecture(**content["architecture"]),
        layout=Layout(names, shapes, int(where["learned"])),
        task=task_from(content["task"]),
        prepare=tuple(dict(t) for t in content["prepare"]),
        shape=tuple(int(n) for n in at["shape"]),
        dtype=dtype_from(at["dtype"]),
        columns=tuple(map(str, at["columns"])),
        data=str(content["data"]["name"]),
        protocol=str(content["data"]["protocol"]),
        weights=File(int(content["weights"]["bytes"]), str(content["weights"]["sha256"])),
        training=dict(content["training"]),
        versions=dict(content["versions"]),
        about=dict(content["about"]),
    )


@contextmanager
def intact(path: Path) -> Iterator[None]:
    """Whatever a damaged file provokes becomes one sentence that names it."""
    try:
        yield
    except KeyError as missing:
        raise ConfigError(f"{path} lacks the key {missing}; copy the folder again") from None
    except (TypeError, ValueError, AttributeError) as why:
        raise ConfigError(f"{path} is damaged ({why}); copy the folder again") from None


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def dtype_from(name: str) -> torch.dtype:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"{name!r} is no dtype")
    return found


def plain(value: Any) -> Any:
    """As JSON has it: tuples are lists, paths are text, a number that is not finite is null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
