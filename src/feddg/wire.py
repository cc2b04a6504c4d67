"""Trees to and from flat named tensors and bytes: the form that files and transports carry.

a/b holds a tensor, a/b# a number, a/b/ an empty mapping. Bytes are safetensors: no pickle.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

from feddg.packets import Inbox, Packet, Reply, State
from feddg.trees import Tree
from feddg.weights import Layout, Weights


def flatten(tree: Tree) -> dict[str, Tensor]:
    return dict(_leaves(tree, ""))


def _leaves(tree: Tree, path: str) -> Iterator[tuple[str, Tensor]]:
    for key, value in tree.items():
        if "/" in key or key.endswith("#"):
            raise ValueError(f"{key!r} cannot be a key on the wire")
        here = path + key
        if isinstance(value, Tensor):
            yield here, value.contiguous()
        elif isinstance(value, int | float):
            exact = torch.float64 if isinstance(value, float) else torch.int64
            yield here + "#", torch.tensor(value, dtype=exact)
        elif isinstance(value, Mapping):
            if value:
                yield from _leaves(value, here + "/")
            else:
                yield here + "/", torch.zeros(0)
        else:
            raise TypeError(f"{here}: a {type(value).__name__} cannot cross the wire")


def unflatten(flat: Mapping[str, Tensor]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split("/")
        node = tree
        for p in parents:
            node = node.setdefault(p, {})
        if name.endswith("#"):
            node[name[:-1]] = value.item()
        elif name:
            node[name] = value
    return tree


def pack(tree: Tree) -> bytes:
    """A tree as bytes. Tensors that share storage are copied apart, as safetensors asks."""
    return to_bytes({k: v.detach().cpu().clone() for k, v in flatten(tree).items()})


def unpack(data: bytes) -> dict[str, Any]:
    return unflatten(from_bytes(data))


HEADERS: dict[str, tuple[str, ...]] = {
    "State": ("trace",),
    "Inbox": ("round",),
    "Reply": ("site", "weight", "steps", "losses"),
}
KINDS: dict[str, type[Packet]] = {"State": State, "Inbox": Inbox, "Reply": Reply}


def pack_packet(packet: Packet) -> bytes:
    """Model and notes as tensors; the rest and the layout as JSON in the same safetensors."""
    kind = type(packet).__name__
    at = packet.model.layout
    head = {k: getattr(packet, k) for k in HEADERS[kind]}
    meta = {"kind": kind, "head": head, "layout": [at.names, at.shapes, at.learned]}
    tensors = {"model": packet.model.vector, **flatten({"notes": packet.notes})}
    own = {k: v.detach().cpu().clone() for k, v in tensors.items()}
    own["meta"] = torch.frombuffer(bytearray(json.dumps(meta).encode()), dtype=torch.uint8)
    return to_bytes(own)


def unpack_packet(data: bytes) -> Packet:
    tensors = from_bytes(data)
    meta = json.loads(bytes(tensors.pop("meta").tolist()))
    names, shapes, learned = meta["layout"]
    layout = Layout(tuple(names), tuple(tuple(s) for s in shapes), learned)
    model = Weights(tensors.pop("model"), layout)
    notes = unflatten(tensors).get("notes", {})
    return KINDS[meta["kind"]](model=model, notes=notes, **meta["head"])
