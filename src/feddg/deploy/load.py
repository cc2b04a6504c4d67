"""A model's folder read back and checked: no pickle, and no code from the folder."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, get_type_hints

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from torch import Tensor, nn

from feddg.catalogue import compose
from feddg.data.transforms import transform_from
from feddg.deploy.manifest import (
    MANIFEST,
    NOTES,
    WEIGHTS,
    Architecture,
    File,
    Manifest,
    contents,
    intact,
    read_manifest,
    shaped,
)
from feddg.errors import ConfigError, FeddgError
from feddg.method import Method
from feddg.models.catalogue import BUILDERS, build, builder
from feddg.packets import State
from feddg.tasks import Classification, Task
from feddg.weights import Weights
from feddg.wire import unflatten


@dataclass(frozen=True, eq=False)
class Deployed:
    """A model that is ready to predict; `predictor` is in eval mode and wants prepared inputs."""

    predictor: nn.Module
    task: Task
    prepare: tuple[Any, ...]
    meta: Manifest
    folder: Path

    @property
    def classes(self) -> tuple[str, ...]:
        return self.task.classes if isinstance(self.task, Classification) else ()


def load_model(
    folder: str | Path,
    model: nn.Module | None = None,
    *,
    method: Method | None = None,
    prepare: tuple[Any, ...] | None = None,
) -> Deployed:
    """What `save_model` wrote. `model`, `method` and `prepare` are for parts of the user's own.

    `model` gives the structure only. Where the architecture is an import path, that module is
    imported from this machine, and only a network's class, or a function that is annotated to
    return one, is called.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; name the folder of a saved model")
    meta = read_manifest(folder / MANIFEST)
    tensors = read_weights(folder / WEIGHTS, meta.weights)
    network = deepcopy(model) if model is not None else built(meta.architecture, folder)
    with intact(folder / MANIFEST):
        how = method or composed(meta, folder)
        before = prepared_by(meta, folder) if prepare is None else prepare
        network = shaped(how, network)
    with intact(folder / WEIGHTS):
        notes = {k: v for k, v in tensors.items() if k.startswith(NOTES)}
        named = {k: v for k, v in tensors.items() if k not in notes}
        state = State(
            model=fill(network, named, meta, folder / WEIGHTS),
            notes=unflatten(notes).get("notes", {}),
        )
        predictor = how.predictor(state, network).eval()
    return Deployed(predictor, meta.task, before, meta, folder)


def read_weights(path: Path, written: File) -> dict[str, Tensor]:
    """The tensors, if the file is the one that was written."""
    data = contents(path)
    if len(data) != written.bytes:
        what = "it is cut short" if len(data) < written.bytes else "something was added to it"
        raise ConfigError(
            f"{path} has {len(data)} bytes where {MANIFEST} says {written.bytes}; {what},"
            " copy the folder again"
        )
    if sha256(data).hexdigest() != written.sha256:
        raise ConfigError(
            f"{path} does not have the sha256 that {MANIFEST} says; it was changed or damaged,"
            " copy the folder again"
        )
    try:
        return from_bytes(data)
    except SafetensorError as why:
        raise ConfigError(f"{path} is no safetensors file ({why}); save the model again") from None


def built(architecture: Architecture, folder: Path) -> nn.Module:
    """The network with any values; those of the folder come later."""
    name = architecture.model
    bring = f"pass the network: load_model({str(folder)!r}, model=...)"
    try:
        if name not in BUILDERS and not makes_networks(builder(name)):
            raise ConfigError(f"{name!r} is not a network's class, nor annotated to return one")
        return build(name, **architecture.options)
    except FeddgError as why:
        raise ConfigError(
            f"{folder}: {why}; {bring}" if ":" in name else f"{folder}: {why}"
        ) from None
    except Exception as why:
        raise ConfigError(f"{folder}: {name!r} cannot be built ({why}); {bring}") from None


def makes_networks(maker: Any) -> bool:
    """Known before it is called, for the name comes from a file that anybody may have written."""
    if not isinstance(maker, type):
        try:
            maker = get_type_hints(maker).get("return")
        except (TypeError, NameError):
            return False
    return isinstance(maker, type) and issubclass(maker, nn.Module)


def composed(meta: Manifest, folder: Path) -> Method:
    if meta.own_method:
        raise ConfigError(
            f"{folder}: its method {meta.method} is not in the catalogue; pass it:"
            f" load_model({str(folder)!r}, method=...)"
        )
    try:
        return compose(meta.method)
    except FeddgError as why:
        raise ConfigError(
            f"{folder}: {why}; if the method is of another package, install that"
        ) from None


def prepared_by(meta: Manifest, folder: Path) -> tuple[Any, ...]:
    try:
        return tuple(transform_from(t) for t in meta.prepare)
    except FeddgError as why:
        raise ConfigError(
            f"{folder}: {why}; pass the transforms: load_model({str(folder)!r}, prepare=...)"
        ) from None


def fill(network: nn.Module, named: Mapping[str, Tensor], meta: Manifest, path: Path) -> Weights:
    """Loads the network and takes from the file what the layout names."""
    wanted = {**{k: named[k] for k in meta.layout.names if k in named}, **network.state_dict()}
    for kind, odd in (
        ("lacks", [*wanted.keys() - named.keys(), *set(meta.layout.names) - named.keys()]),
        ("has an unknown", named.keys() - wanted.keys()),
    ):
        if odd:
            raise ConfigError(
                f"{path} {kind} {min(odd)!r}; it is not of this network ({told(meta)})"
            )
    for name, like in wanted.items():
        found = named[name]
        if found.shape != like.shape or found.dtype != like.dtype:
            raise ConfigError(
                f"{path}: {name!r} is {kind_of(found)}, the network's is {kind_of(like)};"
                f" it is not of this network ({told(meta)})"
            )
    layout = meta.layout
    for name, shape in zip(layout.names, layout.shapes, strict=True):
        if tuple(named[name].shape) != shape:
            raise ConfigError(f"{path}: {name!r} is not of the shape {shape} that {MANIFEST} says")
    network.load_state_dict(named, strict=False)
    parts = [named[k].reshape(-1) for k in layout.names]
    return Weights(torch.cat(parts) if parts else torch.zeros(0), layout)


def kind_of(tensor: Tensor) -> str:
    return f"{'×'.join(map(str, tensor.shape)) or 'a number'} of {str(tensor.dtype)[6:]}"


def told(meta: Manifest) -> str:
    return f"{meta.architecture.model} with {dict(meta.architecture.options)}"
