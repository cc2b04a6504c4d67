"""Every site's last model as one file beside the merged one's folder, written and read back.

Loss surfaces, distances between models and the like are computed from it afterwards, without
training anew. It holds what the predictors need, and no site's memory.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import nn

from feddg.benchmark.stored import StoredRun
from feddg.catalogue import compose
from feddg.checkpoint import write_whole
from feddg.deploy.load import built
from feddg.deploy.manifest import MANIFEST, read_manifest, shaped
from feddg.deploy.save import deployed_notes
from feddg.errors import ConfigError
from feddg.method import Method
from feddg.packets import Packet, Reply, State
from feddg.trees import Tree
from feddg.weights import Layout, Weights
from feddg.wire import flatten, unflatten

LOCALS = "models.safetensors"


@dataclass(frozen=True, eq=False)
class Locals:
    """`sites` as they replied last, `merged` as the server had it then; what predicts with them."""

    sites: Mapping[str, Reply]
    merged: State
    method: Method
    network: nn.Module

    def predictor(self, packet: Packet) -> nn.Module:
        return self.method.predictor(packet, self.network).eval()


def write_locals(path: Path, method: Method, sites: Mapping[str, Reply], merged: State) -> None:
    wanted = deployed_notes(method)
    tree = {"sites": {k: kept(r, wanted) for k, r in sites.items()}, "merged": kept(merged, wanted)}
    layout = merged.model.layout
    meta = {"layout": [layout.names, layout.shapes, layout.learned], "sites": list(sites)}
    tensors = {k: v.detach().cpu().clone() for k, v in flatten(tree).items()}
    tensors["meta"] = torch.frombuffer(bytearray(json.dumps(meta).encode()), dtype=torch.uint8)
    write_whole(path, to_bytes(tensors))


def kept(packet: Packet, wanted: set[str]) -> Tree:
    notes = {k: v for k, v in packet.notes.items() if k in wanted}
    return {"model": packet.model.vector, "notes": notes}


def read_packets(path: Path) -> tuple[dict[str, Reply], State]:
    try:
        tensors = from_bytes(path.read_bytes())
        meta = json.loads(bytes(tensors.pop("meta").tolist()))
        names, shapes, learned = meta["layout"]
        layout = Layout(tuple(names), tuple(tuple(s) for s in shapes), learned)
        tree = unflatten(tensors)
        sites = {
            k: Reply(site=k, model=Weights(v["model"], layout), notes=v["notes"])
            for k in meta["sites"]
            for v in (tree["sites"][k],)
        }
        merged = tree["merged"]
        return sites, State(model=Weights(merged["model"], layout), notes=merged["notes"])
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as why:
        raise ConfigError(
            f"{path} holds no sites' models ({why}); remove the run's folder and run it again"
        ) from None


def read_locals(run: StoredRun) -> Locals:
    """What a finished run with --diagnostics models left."""
    path = run.folder / LOCALS
    if not (run.finished and path.exists()):
        raise ConfigError(
            f"{run.folder} has no sites' models; a run with --diagnostics models keeps them"
        )
    meta = read_manifest(run.folder / "model" / MANIFEST)
    method = compose(meta.method)
    network = shaped(method, built(meta.architecture, run.folder / "model"))
    return Locals(*read_packets(path), method, network)
