"""Evaluations of one form at once: many small networks judged as one stacked program."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

from feddg.engines.forms import outline, plan
from feddg.engines.products import as_products
from feddg.local import Evaluation, prepared
from feddg.tasks import Scores
from feddg.training import forward
from feddg.trees import pick, stack
from feddg.weights import Layout, Weights

ROWS = 64  # examples of each network at a time
Kind = tuple[Any, ...]


def kind(request: Evaluation) -> Kind | None:
    """What evaluations must share to be stacked; None: this one is like no other."""
    network = plan(request.predictor)
    preparing = outline(request.prepare)
    if network is None or preparing is None:
        return None
    data = request.data
    where = (len(data), data.shape, data.store.dtype, data.store.device)
    return network, Layout.of(request.predictor), preparing, where


@torch.no_grad()
def outputs(requests: Sequence[Evaluation]) -> Tensor:
    """K x n x outputs, all of one kind, in eval mode."""
    network, first = requests[0].predictor, requests[0]
    found = [Weights.of(r.predictor) for r in requests]
    layout, vectors = found[0].layout, torch.stack([w.vector for w in found])
    prepare = stack([r.prepare for r in requests]) if first.prepare else ()
    device = vectors.device

    def judged(vector: Tensor, preparing: Any, x: Tensor) -> Tensor:
        return forward(network, layout.views(vector), prepared(x, preparing))[0]

    done = []
    for start in range(0, len(first.data), ROWS):
        rows = torch.arange(start, min(start + ROWS, len(first.data)))
        x = torch.stack([r.data.inputs(rows.to(r.data.store.device)) for r in requests])
        with as_products():
            done.append(vmap(judged)(vectors, prepare, x.to(device)))
    return torch.cat(done, 1)


def judge(requests: Sequence[Evaluation]) -> list[Scores]:
    """The scores of every request, all of one kind."""
    found = outputs(requests)
    return [r.task.scores(pick(found, i), r.data.y, r.data.groups) for i, r in enumerate(requests)]
