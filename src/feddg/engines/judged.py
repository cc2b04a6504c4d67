"""Evaluations of one form at once: many small networks judged as one stacked program."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

from feddg.engines.forms import outline, plan
from feddg.engines.products import as_products
from feddg.local import Answer, Evaluation, Prediction, prepared
from feddg.training import forward
from feddg.trees import pick, stack
from feddg.weights import Layout, Weights

Asked = Evaluation | Prediction
ROWS = 64  # examples of each network at a time; with more, convolutions are no products (LARGEST)
Kind = tuple[Any, ...]


def kind(request: Asked) -> Kind | None:
    """What evaluations must share to be stacked; None: this one is like no other."""
    network = plan(request.predictor)
    preparing = outline(request.prepare)
    if network is None or preparing is None:
        return None
    data = request.data
    where = (len(data), data.shape, data.store.dtype, data.store.device)
    return network, Layout.of(request.predictor), preparing, where


@torch.no_grad()
def outputs(requests: Sequence[Asked]) -> Tensor:
    """K x n x outputs, all of one kind, in eval mode."""
    network, first = requests[0].predictor, requests[0]
    found = [Weights.of(r.predictor) for r in requests]
    layout, vectors = found[0].layout, torch.stack([w.vector for w in found])
    prepare = stack([r.prepare for r in requests]) if first.prepare else ()
    device = vectors.device

    def judged(vector: Tensor, preparing: Any, x: Tensor) -> Tensor:
        return forward(network, layout.views(vector), prepared(x, preparing))[0]

    done = []
    for batch in zip(*(r.data.batches(ROWS) for r in requests), strict=True):
        with as_products():
            done.append(vmap(judged)(vectors, prepare, torch.stack(batch).to(device)))
    return torch.cat(done, 1)


def judge(requests: Sequence[Asked]) -> list[Answer]:
    """The answers to all requests, all of one kind: scores, or the outputs themselves."""
    found = outputs(requests)
    if not any(isinstance(r, Prediction) for r in requests):
        found = found.cpu()  # all at once; scores are numbers of the host
    return [answer(r, pick(found, i)) for i, r in enumerate(requests)]


def answer(request: Asked, found: Tensor) -> Answer:
    if isinstance(request, Prediction):
        return found
    return request.task.scores(found, request.data.y, request.data.groups)
