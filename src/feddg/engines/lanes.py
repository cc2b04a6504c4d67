"""What a lane works through: the trainings of one stack, step by step, on one program.

Sites of different length are handled exactly: the longest stand first, and whoever has finished
leaves the stack, so no step is computed in vain and none is computed on padding.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

from feddg.engines.forms import emptied
from feddg.engines.programs import Program, Step, Tree
from feddg.local import Trained, Training
from feddg.training import (
    Batch,
    Draws,
    all_parts,
    begin,
    columns,
    draws,
    finished,
    func_grad,
    order,
    tail_from,
    tape_grad,
    term_names,
    updater,
)  # fmt: skip
from feddg.trees import each, pick, stack

AHEAD = 64  # steps whose rows and draws are brought to the device at once
Programs = Callable[[int, int, Callable[[], Step]], Program]  # sites, batch -> a program


@dataclass(eq=False)
class Plan:
    """All chance of one training."""

    batches: list[Tensor]
    rates: list[float]
    tail: int  # the first step whose losses are reported
    chance: Iterator[Draws]

    @staticmethod
    def of(request: Training) -> "Plan":
        job, batches = request.job, order(request)
        rates = job.recipe.rates(job.round, job.rounds, len(request.data))
        return Plan(batches, rates, tail_from(request, len(batches)), draws(request, batches))

    def __len__(self) -> int:
        return len(self.batches)

    def take(self, steps: range, dtype: torch.dtype) -> Tree:
        """The next steps, in which all batches are of one size."""
        chance = [next(self.chance) for _ in steps]
        return {
            "rows": torch.stack(self.batches[steps.start : steps.stop]),
            "rate": torch.tensor(self.rates[steps.start : steps.stop], dtype=dtype),
            "tail": torch.arange(steps.start, steps.stop) >= self.tail,
            "draws": stack(chance),
        }


@dataclass(frozen=True, eq=False)
class Pool:
    """The examples of all sites of a stack in one tensor, or still at home (`x` is None)."""

    x: Tensor | None
    first: list[int]  # where each site's store begins

    @staticmethod
    def of(requests: Sequence[Training], kept: dict[tuple[int, ...], tuple[Any, Tensor]]) -> "Pool":
        """`kept` holds what was put together before, by the stores that are in it."""
        stores = list({id(r.data.store): r.data.store for r in requests}.values())
        if stores[0].device != requests[0].start.vector.device:
            return Pool(None, [0] * len(requests))
        key = tuple(map(id, stores))
        if key not in kept:
            kept[key] = stores, stores[0] if len(stores) == 1 else torch.cat(stores)
        begins, at = {}, 0
        for s in stores:
            begins[id(s)], at = at, at + len(s)
        return Pool(kept[key][1], [begins[id(r.data.store)] for r in requests])

    def given(self, request: Training, number: int, rows: Tensor) -> Tensor:
        """Where the batches' inputs are found; the inputs themselves where they are elsewhere."""
        data = request.data
        if self.x is None:
            inputs = data.inputs(rows.flatten().to(data.store.device))
            return inputs.unflatten(0, rows.shape).to(request.start.vector.device)
        rows = rows if data.rows is None else data.rows[rows]
        return rows + self.first[number]


@dataclass(eq=False)
class Stack:
    """Trainings of one form; `together` under vmap, else there is one only."""

    requests: Sequence[Training]
    together: bool
    precision: Any  # a context for the step

    def __post_init__(self) -> None:
        plans = [Plan.of(r) for r in self.requests]
        ranked = sorted(range(len(plans)), key=lambda i: -len(plans[i]))
        self.at = ranked  # the place of each in what was asked
        self.plans = [plans[i] for i in ranked]
        self.requests = [self.requests[i] for i in ranked]
        self.device = self.requests[0].start.vector.device
        self.dtype = self.requests[0].start.vector.dtype

    def steps(self, programs: Programs, pool: Pool, answers: list[Trained]) -> Iterator[None]:
        """Yields after every step that it has asked the device for; at the end come `answers`."""
        begun = [begin(r) for r in self.requests]
        terms = len(term_names(self.requests[0].job.parts)) + 1
        none = torch.zeros(terms, dtype=self.dtype, device=self.device)
        state = self.joined([(theta, buffers, opt, none) for theta, buffers, opt, _ in begun])
        parts = self.joined([b[3] for b in begun])
        shared = self.shared(pool)
        done: dict[int, Tree] = {}
        for sites, size, steps in self.segments():
            state = self.leaving(state, sites, done)
            program = programs(sites, size, self.stepper)
            program.begin(state, {"parts": self.first(parts, sites), **shared})
            for given in self.given(sites, steps, pool):
                program.run(given)
                yield
            state = program.state()
        self.leaving(state, 0, done)
        for i, request in enumerate(self.requests):
            theta, buffers, opt, sums = done[i]
            n = len(self.plans[i])
            count = n - self.plans[i].tail
            trained = finished(request, theta, buffers, opt, n, sums / count if count else None)
            answers[self.at[i]] = trained

    def joined(self, trees: list[Tree]) -> Tree:
        return stack(trees) if self.together else trees[0]

    def first(self, tree: Tree, sites: int) -> Tree:
        return pick(tree, slice(sites)) if self.together else tree

    def leaving(self, state: Tree, stay: int, done: dict[int, Tree]) -> Tree:
        """All but the first `stay` are done."""
        for i in range(stay, len(self.requests) - len(done)):
            done[i] = pick(state, i) if self.together else state
        return self.first(state, stay)

    def segments(self) -> Iterator[tuple[int, int, range]]:
        """(sites, batch size, steps): longest stretches in which neither changes."""

        def shape(t: int) -> tuple[int, int]:
            return sum(len(p) > t for p in self.plans), len(self.plans[0].batches[t])

        for (sites, size), run in groupby(range(len(self.plans[0])), key=shape):
            found = list(run)
            yield sites, size, range(found[0], found[-1] + 1)

    def given(self, sites: int, steps: range, pool: Pool) -> Iterator[Tree]:
        for start in range(steps.start, steps.stop, AHEAD):
            some = range(start, min(start + AHEAD, steps.stop))
            trees = []
            offset = 0
            for i in range(sites):
                tree = self.plans[i].take(some, self.dtype)
                rows = tree.pop("rows").to(self.device, non_blocking=True)
                tree["x"] = pool.given(self.requests[i], i, rows)
                tree["own"] = rows + offset
                offset += len(self.requests[i].data)
                trees.append(tree)
            whole = each_stacked(trees) if self.together else trees[0]
            whole = each(lambda v: v.to(self.device, non_blocking=True), whole)
            for t in range(len(some)):
                yield pick(whole, t)

    def shared(self, pool: Pool) -> dict[str, Tree]:
        """What all steps read: the inputs, the labels and the parts' own rows of all sites."""
        own: dict[int, dict[str, list[Tensor]]] = {}
        for r in self.requests:
            for i, rows in columns(all_parts(r)).items():
                for k, v in rows.items():
                    own.setdefault(i, {}).setdefault(k, []).append(v)
        return {
            "x": [] if pool.x is None else [pool.x],
            "y": torch.cat([r.data.y for r in self.requests]).to(self.device),
            "own": {i: {k: torch.cat(vs) for k, vs in rows.items()} for i, rows in own.items()},
        }

    def stepper(self) -> Step:
        """The step as a pure function of trees."""
        request = self.requests[0]
        if self.together:
            request = replace(request, job=replace(request.job, step=emptied(request.job.step)))
        update = updater(request, func_grad if self.together else tape_grad)
        run = vmap(update, randomness="error") if self.together else update

        def step(state: Tree, given: Tree, fixed: Tree) -> Tree:
            theta, buffers, opt, sums = state
            x, at = given["x"], given["own"]
            own = {i: {k: v[at] for k, v in rows.items()} for i, rows in fixed["own"].items()}
            batch = Batch(fixed["x"][0][x] if fixed["x"] else x, fixed["y"][at], own)
            with self.precision():
                theta, buffers, opt, losses = run(
                    theta, buffers, opt, fixed["parts"], batch, given["draws"], given["rate"]
                )
            return theta, buffers, opt, sums + losses * given["tail"][..., None]

        return step


def each_stacked(trees: list[Tree]) -> Tree:
    """Steps first, then sites."""
    return each(lambda *vs: torch.stack(vs, 1), *trees)
