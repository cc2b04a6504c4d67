"""Pretrained weights into a network: read without running code, checked by name and shape."""

import pickletools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from feddg.errors import ConfigError
from feddg.models.anatomy import anatomy
from feddg.models.others import first_convolution
from feddg.models.sources import Source, expect, source
from feddg.trees import Tensors

NESTED = ("state_dict", "model_state_dict", "model", "net")  # where programs keep a state_dict
COUNTER = "num_batches_tracked"  # of batch norm; older files lack it
DENSE = re.compile(r"(denselayer\d+\.(?:norm|conv))\.([12]\.)")  # torchvision's first DenseNets
TAGS = ("notes/",)  # what a saved model of feddg has besides its network


@dataclass(frozen=True)
class Loaded:
    """What a network started from."""

    weights: str  # as it was asked for
    sha256: str
    tensors: int
    fresh: tuple[str, ...]  # parts that keep their seeded values
    why: str
    widened: str = ""

    def __str__(self) -> str:
        text = f"{self.weights} (sha256 {self.sha256[:12]}), {self.tensors} tensors"
        if self.fresh:
            text += f"; {', '.join(self.fresh)} is fresh ({self.why})"
        return text + (f"; {self.widened}" if self.widened else "")


def load_weights(network: nn.Module, weights: str, model: str, sha256: str | None = None) -> Loaded:
    """`weights`: a file, a package or "hub"; `model`: the network's name in the catalogue."""
    found = source(weights, model)
    if sha256:
        expect(found, sha256, "the configuration says so")
    tensors = named(read(found.path, found.naming), network, found)
    return fit(network, tensors, found, model)


def read(path: Path, naming: str) -> Tensors:
    """By name; a list of a file's tensors in their order has numbers for names."""
    try:
        if naming == "flax":
            return {str(i): v for i, v in enumerate(pickled_floats(path.read_bytes()))}
        if path.suffix == ".safetensors":
            return load_file(path)
        # no pickle: weights_only reads tensors and plain containers, and refuses all else
        content = torch.load(path, map_location="cpu", weights_only=True)  # noqa: TID251
    except SafetensorError as why:
        raise ConfigError(f"{path} is no safetensors file ({why}); get it again") from None
    except Exception as why:
        first = str(why).strip().split("\n")[0][:200] or type(why).__name__
        raise ConfigError(
            f"{path} cannot be read as weights ({first}); get it again, or save the network's"
            " state_dict, and nothing else, as .safetensors"
        ) from None
    return unpacked(content, path)


def unpacked(content: Any, path: Path) -> Tensors:
    """The state_dict itself, out of what programs wrap it in."""
    while isinstance(content, Mapping) and (inner := [k for k in NESTED if nested(content, k)]):
        content = content[inner[0]]
    if not isinstance(content, Mapping) or not content:
        what = "is empty" if isinstance(content, Mapping) else f"holds a {type(content).__name__}"
        raise ConfigError(f"{path} {what}, not a network's state_dict; save that in its place")
    odd = [k for k, v in content.items() if not isinstance(v, Tensor)]
    if odd:
        raise ConfigError(f"{path}: {odd[0]!r} is no tensor; save the network's state_dict alone")
    keys = [str(k) for k in content]
    parallel = "module." if all(k.startswith("module.") for k in keys) else ""
    return {k.removeprefix(parallel): v for k, v in zip(keys, content.values(), strict=True)}


def nested(content: Mapping[Any, Any], key: str) -> bool:
    return isinstance(content.get(key), Mapping)


def pickled_floats(data: bytes) -> list[Tensor]:
    """The float32 arrays in a pickle, flat and in order, by its grammar alone: nothing is run."""
    found = pickletools.genops(data)
    blobs = [bytearray(arg) for op, arg, _ in found if op.name == "BINBYTES" and arg is not None]
    return [torch.frombuffer(blob, dtype=torch.float32) for blob in blobs]


def named(tensors: Tensors, network: nn.Module, found: Source) -> Tensors:
    """By the network's names. Known files of others' networks go by the order of their tensors."""
    if found.naming == "names":
        kept = {k: v for k, v in tensors.items() if not k.startswith(TAGS)}
        return {DENSE.sub(r"\1\2", k): v for k, v in kept.items()}
    own = network.state_dict()
    names = [k for k in own if not inside(k, found.lacks)]
    values = list(tensors.values())
    if found.naming == "flax":
        values = [arranged(v, own[k]) for k, v in zip(names, values, strict=False)]
    if len(values) != len(names):
        raise ConfigError(
            f"{found.path} has {len(values)} tensors, the network takes {len(names)}; it is of"
            " another network"
        )
    return dict(zip(names, values, strict=True))


def arranged(flat: Tensor, like: Tensor) -> Tensor:
    """Flax has a convolution's kernel as height x width x in x out."""
    if like.dim() != 4 or flat.numel() != like.numel():
        return flat
    out, before, height, width = like.shape
    return flat.view(height, width, before, out).permute(3, 2, 0, 1)


def fit(network: nn.Module, tensors: Tensors, found: Source, model: str) -> Loaded:
    """Load what fits, or say in a sentence what does not."""
    own = network.state_dict()
    tensors, widened = widened_to(network, tensors)
    fresh, why = fresh_parts(own, tensors, anatomy(network).head, found)
    wanted = {k for k in own if not inside(k, fresh)}
    given = {k: v for k, v in tensors.items() if not inside(k, fresh)}
    missing = sorted(k for k in wanted - given.keys() if not k.endswith(COUNTER))
    extra = sorted(given.keys() - wanted)
    if missing or extra:
        parts = [f"{say} {several(keys)}" for say, keys in
                 (("it lacks", missing), ("it has an unknown", extra)) if keys]  # fmt: skip
        raise ConfigError(f"{found.path} is not of the network {model}: {' and '.join(parts)}")
    for key, value in given.items():
        check(value, own[key], key, found.path)
    network.load_state_dict(given, strict=False)
    return Loaded(found.said, found.sha256, len(given), fresh, why, widened)


def fresh_parts(
    own: Tensors, tensors: Tensors, head: str, found: Source
) -> tuple[tuple[str, ...], str]:
    """The head stays fresh where the file's is for other classes, or is not there."""
    here = {k: sized(v) for k, v in own.items() if inside(k, (head,))}
    there = {k: sized(tensors[k]) for k in here if k in tensors}
    if found.lacks or not there:
        return found.lacks or (head,), "the file does not have it"
    if there == here:
        return (), ""
    return (head,), f"{next(iter(there.values()))} there, {next(iter(here.values()))} here"


def widened_to(network: nn.Module, tensors: Tensors) -> tuple[Tensors, str]:
    """The first convolution for another number of channels than the three of its weights.

    Channel c of C gets the weights of channel c mod 3, times 3/C, so that what it sums up keeps
    its size; a single channel gets the sum of the three, as if it were all of them.
    """
    name, conv = first_convolution(network)
    key, channels = f"{name}.weight", conv.in_channels
    weight = tensors.get(key)
    if weight is None or weight.shape == conv.weight.shape or weight.shape[1:2] != (3,):
        return tensors, ""
    if channels == 1:
        wide = weight.sum(1, keepdim=True)
    else:
        wide = weight[:, torch.arange(channels) % 3] * (3 / channels)
    return {**tensors, key: wide}, f"{name} taken from 3 to {channels} channels"


def check(value: Tensor, like: Tensor, key: str, path: Path) -> None:
    if value.shape != like.shape:
        raise ConfigError(
            f"{path}: {key!r} is {sized(value)}, the network's is {sized(like)};"
            " it is of another network"
        )
    if value.is_floating_point() != like.is_floating_point():
        raise ConfigError(
            f"{path}: {key!r} is of {str(value.dtype)[6:]}, not of real numbers; get the weights"
            " of the network itself, not a quantised copy"
        )
    if not value.isfinite().all():
        raise ConfigError(f"{path}: {key!r} has values that are not finite; get the file again")


def inside(key: str, parts: Sequence[str]) -> bool:
    return any(key.startswith(f"{part}.") for part in parts)


def several(keys: Sequence[str]) -> str:
    return repr(keys[0]) + (f" and {len(keys) - 1} more" if len(keys) > 1 else "")


def sized(tensor: Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "a number"
