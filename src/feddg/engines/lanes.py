"""What a lane works through: the trainings of one stack, step by step, on one program.

Sites of different length are handled exactly: the longest stand first, and whoever has finished
leaves the stack, so no step is computed in vain and none is computed on padding.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

from feddg.engines.fast_norms import fast_norms
from feddg.engines.forms import emptied
from feddg.engines.laid import Laid, products_weights
from feddg.engines.products import as_products
from feddg.engines.programs import Program, Step, Tree
from feddg.local import Training
from feddg.training import (
    Batch,
    Begun,
    Draws,
    all_parts,
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
from feddg.trees import Tensors, each, pick, stack
from feddg.weights import Layout

FIRST, AHEAD = 8, 64  # steps whose rows and draws are brought to the device at once
BROUGHT = 1 << 28  # bytes of inputs likewise, where they lie elsewhere
Programs = Callable[[int, int, Callable[[], Step]], Program]  # sites, batch -> a program


@dataclass(frozen=True, eq=False)
class Asked:
    """A training, its place among all that was asked, and how it begins."""

    at: int
    training: Training
    begun: Begun


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
            "draws": stack(chance) if chance[0] else {},
        }


@dataclass(frozen=True, eq=False)
class Stores:
    """Different stores in one tensor; they are held, so that their ids remain theirs."""

    stores: list[Tensor]

    @cached_property
    def x(self) -> Tensor:
        return self.stores[0] if len(self.stores) == 1 else torch.cat(self.stores)

    @cached_property
    def begins(self) -> dict[int, int]:
        """Where each begins."""
        places = accumulate(map(len, self.stores), initial=0)
        return {id(s): at for s, at in zip(self.stores, places, strict=False)}


@dataclass(frozen=True, eq=False)
class Pool:
    """The examples of all sites of a stack in one tensor, or still at home (`x` is None)."""

    x: Tensor | None
    first: list[int]  # where each site's store begins

    @staticmethod
    def of(members: Sequence[Asked], kept: list[Stores]) -> "Pool":
        """`kept` holds what was put together before, of which a part will do as well."""
        mine = [m.training.data.store for m in members]
        if mine[0].device != members[0].training.start.vector.device:
            return Pool(None, [0] * len(members))
        ids = {id(s) for s in mine}
        found = next((stores for stores in kept if ids <= stores.begins.keys()), None)
        if found is None:
            found = Stores(list({id(s): s for s in mine}.values()))
            kept.append(found)
        return Pool(found.x, [found.begins[id(s)] for s in mine])

    def given(self, request: Training, number: int, rows: Tensor) -> Tensor:
        """Where the batches' inputs are found; the inputs themselves where they are elsewhere."""
        data = request.data
        if self.x is None:
            inputs = data.inputs(rows.flatten()).unflatten(0, rows.shape)
            return inputs.to(request.start.vector.device)
        rows = rows if data.rows is None else data.rows[rows]
        return rows + self.first[number]


@dataclass(eq=False)
class Stack:
    """Trainings of one form, the longest first; `together` under vmap, else there is one only."""

    members: Sequence[Asked]
    together: bool
    precision: Callable[[], AbstractContextManager[Any]]  # in which a step is computed

    def __post_init__(self) -> None:
        plans = {m.at: Plan.of(m.training) for m in self.members}
        self.members = sorted(self.members, key=lambda m: -len(plans[m.at]))
        self.plans = [plans[m.at] for m in self.members]
        start = self.members[0].training.start.vector
        self.device, self.dtype = start.device, start.dtype

    def steps(self, programs: Programs, pool: Pool, answers: list[Any]) -> Iterator[None]:
        """Yields after every step that it has asked the device for; at the end come `answers`."""
        terms = len(term_names(self.members[0].training.job.parts)) + 1
        none = torch.zeros(terms, dtype=self.dtype, device=self.device)
        state = self.joined([(*m.begun[:3], none) for m in self.members])
        parts = self.joined([m.begun[3] for m in self.members])
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
        for i, (asked, plan) in enumerate(zip(self.members, self.plans, strict=True)):
            theta, buffers, opt, sums = done[i]
            n, count = len(plan), len(plan) - plan.tail
            means = sums / count if count else None
            answers[asked.at] = finished(asked.training, theta, buffers, opt, n, means)

    def joined(self, trees: list[Tree]) -> Tree:
        return stack(trees) if self.together else trees[0]

    def first(self, tree: Tree, sites: int) -> Tree:
        return pick(tree, slice(sites)) if self.together else tree

    def leaving(self, state: Tree, stay: int, done: dict[int, Tree]) -> Tree:
        """All but the first `stay` are done."""
        for i in range(stay, len(self.members) - len(done)):
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
        for some in stretches(steps, self.ahead(sites, steps, pool)):
            trees = []
            offset = 0
            for i in range(sites):
                tree = self.plans[i].take(some, self.dtype)
                here = tree.pop("rows")
                rows = here.to(self.device, non_blocking=True)
                training = self.members[i].training
                tree["x"] = pool.given(training, i, here if pool.x is None else rows)
                tree["own"] = rows + offset
                offset += len(training.data)
                trees.append(tree)
            whole = each_stacked(trees) if self.together else trees[0]
            whole = each(lambda v: v.to(self.device, non_blocking=True), whole)
            for t in range(len(some)):
                yield pick(whole, t)

    def ahead(self, sites: int, steps: range, pool: Pool) -> int:
        """Steps that are brought to the device at once."""
        if pool.x is not None:
            return AHEAD
        store = self.members[0].training.data.store
        images = sites * len(self.plans[0].batches[steps.start])
        return max(1, min(AHEAD, BROUGHT // max(1, images * store[:1].nbytes)))

    def shared(self, pool: Pool) -> dict[str, Tree]:
        """What all steps read: the inputs, the labels and the parts' own rows of all sites."""
        own: dict[int, dict[str, list[Tensor]]] = {}
        trainings = [m.training for m in self.members]
        for training in trainings:
            for i, rows in columns(all_parts(training)).items():
                for k, v in rows.items():
                    own.setdefault(i, {}).setdefault(k, []).append(v)

        def table(values: list[Tensor]) -> Tensor:
            spare = self.room - sum(map(len, values))
            return torch.cat([*values, values[0].new_zeros(spare, *values[0].shape[1:])])

        return {
            "x": [] if pool.x is None else [pool.x],
            "y": table([t.data.y for t in trainings]).to(self.device),
            "own": {i: {k: table(vs) for k, vs in rows.items()} for i, rows in own.items()},
        }

    @property
    def room(self) -> int:
        """Rows of the tables of all examples; the last ones are spare, and no step reads them.

        They let a recorded program, with tables of one size, serve again: where a server trains on
        what it could label, for up to twice as many examples; where all train on what they hold,
        for other sites, with less than a quarter more: such tables are large (CSAC's features).
        """
        trainings = [m.training for m in self.members]
        examples = sum(len(t.data) for t in trainings)
        doubled = int(1 << (examples - 1).bit_length())
        whole = all(t.job.site is not None and t.data is t.job.site.train for t in trainings)
        unit = max(doubled // 8, 1) if whole else doubled
        return -(-examples // unit) * unit

    def stepper(self) -> Step:
        """The step as a pure function of trees."""
        request = self.members[0].training
        if self.together:
            request = replace(request, job=replace(request.job, step=emptied(request.job.step)))
        if self.together:
            run = vmap(updater(request, func_grad), randomness="error")
        else:
            run = updater(request, tape_grad, self.laid_out(request))
        faster = as_products if self.together else fast_norms

        def step(state: Tree, given: Tree, fixed: Tree) -> Tree:
            theta, buffers, opt, sums = state
            x, at = given["x"], given["own"]
            own = {i: {k: v[at] for k, v in rows.items()} for i, rows in fixed["own"].items()}
            batch = Batch(fixed["x"][0][x] if fixed["x"] else x, fixed["y"][at], own)
            with self.precision(), faster():
                theta, buffers, opt, losses = run(
                    theta, buffers, opt, fixed["parts"], batch, given["draws"], given["rate"]
                )
            return theta, buffers, opt, sums + losses * given["tail"][..., None]

        return step

    def laid_out(self, request: Training) -> Callable[[Layout, Tensor], Tensors]:
        """On a GPU as its products like them; elsewhere as they are."""
        if self.device.type != "cuda":
            return Layout.views
        with self.precision():
            cast = torch.is_autocast_enabled("cuda")
            dtype = torch.get_autocast_dtype("cuda") if cast else self.dtype
        network = request.job.model
        weights = request.start.layout.parameters()
        cast_weights = products_weights(network) & set(weights.names)
        laid = Laid(weights, cast_weights, dtype, self.dtype, self.device)
        return lambda _, vector: laid.views(vector)


def stretches(steps: range, ahead: int = AHEAD) -> Iterator[range]:
    """A short one first, and none twice as long as the last: the device works while it is made."""
    start, long = steps.start, min(FIRST, ahead)
    while start < steps.stop:
        yield range(start, min(start + long, steps.stop))
        start, long = start + long, min(2 * long, ahead)


def each_stacked(trees: list[Tree]) -> Tree:
    """Steps first, then sites."""
    return each(lambda *vs: torch.stack(vs, 1), *trees)
