"""One training by itself, step after step. It may stop on its way and be taken up elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from feddg import stages
from feddg.local import Trained, Training
from feddg.training import (
    Batch,
    begin,
    columns,
    draws,
    finished,
    module_seed,
    order,
    refuse,
    resumed,
    streams,
    tail_from,
    tape_grad,
    updater,
)
from feddg.trees import Tree, each


@dataclass(frozen=True, eq=False)
class Paused:
    """A training after some of its steps: all that the rest of them depends on, as a tree."""

    tree: Tree


def train(request: Training) -> Trained:
    """Carry out one request, in this process and alone, where its weights are."""
    done = train_on(request)
    assert isinstance(done, Trained)
    return done


def train_on(
    request: Training, since: Paused | None = None, until: int | None = None
) -> Trained | Paused:
    """From where it was paused up to the step `until`, or to the end: the same bits as in one go.

    A module's own chance (dropout) comes from the global stream, seeded here and put back.
    """
    refuse(request)
    job, data = request.job, request.data
    batches, rngs, update = order(request), streams(request), updater(request, tape_grad)
    theta, buffers, opt, parts = begin(request)
    own, device, steps = columns(parts), buffers.device, len(batches)
    rates = job.recipe.rates(job.round, job.rounds, len(data))
    tail, first, losses = tail_from(request, steps), 0, list[Tensor]()
    if since is not None:
        tree = since.tree
        first, buffers = tree["step"], tree["buffers"]
        theta, opt = resumed(theta, tree["theta"]), resumed(opt, tree["optimizer"])
        losses = list(tree["losses"]) if len(tree["losses"]) else []
        for i, state in tree["streams"].items():
            rngs[int(i)].set_state(state)
    last = steps if until is None else min(until, steps)
    with own_chance(request, device, None if since is None else since.tree["global"]):
        todo = zip(
            batches[first:], draws(request, batches[first:], rngs), rates[first:], strict=True
        )
        clock = stages.active
        for t, (rows, chance, rate) in enumerate(islice(todo, last - first), first):
            if clock:
                clock.enter("data")
            if device.type != "cpu":
                rows, chance = each(lambda v: v.to(device, non_blocking=True), (rows, chance))
            mine = {i: {k: v.index_select(0, rows) for k, v in c.items()} for i, c in own.items()}
            batch = Batch(data.inputs(rows).to(device), data.y[rows].to(device), mine)
            step = torch.tensor(rate, dtype=buffers.dtype, device=device)
            if clock:
                clock.leave()
            theta, buffers, opt, now = update(theta, buffers, opt, parts, batch, chance, step)
            if t >= tail:
                losses.append(now)
        ahead = torch.get_rng_state()
    if last < steps:
        kept = torch.stack(losses) if losses else torch.zeros(0)
        found = {str(i): rng.get_state() for i, rng in rngs.items()}
        return Paused(
            {
                "step": last, "theta": theta, "buffers": buffers, "optimizer": opt,
                "losses": kept, "streams": found, "global": ahead,
            }
        )  # fmt: skip
    means = torch.stack(losses).mean(0) if losses else None
    return finished(request, theta, buffers, opt, steps, means)


@contextmanager
def own_chance(request: Training, device: torch.device, state: Tensor | None) -> Iterator[None]:
    """Modules draw from the training's own stream, or go on with it."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(module_seed(request))  # noqa: TID251
        if state is not None:
            torch.set_rng_state(state)
        yield
