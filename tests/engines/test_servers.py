"""A server's trainings change in length from round to round; their programs need not."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from feddg.catalogue import compose
from feddg.engines import programs, stacked
from feddg.engines.compute import Compute, exact
from feddg.engines.lanes import Asked, Pool, Stack, Stores
from feddg.engines.loop import rounds
from feddg.engines.programs import FEW, Recorded
from feddg.method import shared_out, together
from feddg.training import begin
from feddg.weights import Weights
from feddg.wire import flatten
from tests import toy

SERVERS = ["copa-uda(threshold=0.45)", "kd3a(gate=(0.4, 0.6))", "shot(epochs=3)", "fada"]
ROUNDS = 7


@dataclass(eq=False)
class Played(Recorded):
    """A graph as far as the CPU has one: the step again and again, on the same memory."""

    def captured(self, mine: Any) -> "Played":
        self.mine = mine
        return self

    def replay(self) -> None:
        torch._foreach_copy_(self.own[0], pytree.tree_leaves(self.step(*self.mine)))


class Everywhere(dict):
    """Streams, as if every lane had one."""

    def __contains__(self, lane: object) -> bool:
        return True


@pytest.fixture
def made(monkeypatch):
    """All programs that are made."""
    found: list[Played] = []

    def playing(step: Any, shared: Any) -> Played:
        found.append(Played(step, shared=shared))
        return found[-1]

    monkeypatch.setattr(stacked, "Recorded", playing)
    return found


@pytest.fixture
def engine(made):
    return stacked.Stacked(stacking=True, side=Everywhere())


def runs(spec, n=ROUNDS):
    """Two targets, two seeds; all sites of one size, as those of Rotated MNIST."""
    found = []
    for target in ("night", "noon"):
        fed = toy.federation(target, share=0.0)
        sites = tuple(replace(s, train=s.train.take(torch.arange(48))) for s in fed.sites)
        fed = replace(fed, sites=sites)
        found += [toy.run(compose(spec), n, seed=seed, federation=fed) for seed in (0, 1)]
    return found


def states(done):
    return [flatten({"model": k.state.model.vector, "notes": k.state.notes}) for _, k in done]


@pytest.mark.parametrize("spec", SERVERS)
def test_recordings_do_not_grow_with_rounds(spec, engine, made):
    """One for the sites; at the servers one for a number of runs in the stack, of four, at most.

    Of forms there are two: SHOT's server waits for the last round.
    """
    forms = []
    for _ in rounds(runs(spec), engine):
        forms.append(sum(map(len, engine.forms.values())))
    assert forms == [2 - spec.startswith("shot")] * (ROUNDS - 1) + [2]
    assert 0 < sum(p.graph is not None for p in made) <= 1 + 4
    assert len(made) <= 1 + 4 * 2, "their room doubles once, whatever the number of examples"
    assert len(engine.pools) == 1
    assert not engine.slow


@pytest.mark.parametrize("spec", SERVERS)
def test_recorded_as_stepped(spec, made, monkeypatch):
    *_, stepped = rounds(runs(spec, 4), stacked.Stacked(stacking=True))
    assert not made
    *_, played = rounds(runs(spec, 4), stacked.Stacked(stacking=True, side=Everywhere()))
    assert any(p.graph for p in made)
    for one, other in zip(states(stepped), states(played), strict=True):
        assert one.keys() == other.keys()
        for k in one:
            torch.testing.assert_close(one[k], other[k])


@pytest.mark.gpu
@pytest.mark.parametrize("stacking", [True, False])
@pytest.mark.parametrize("spec", SERVERS)
def test_recorded_as_stepped_on_a_gpu(spec, stacking, monkeypatch):
    compute = Compute("cuda", "fp32")

    def carried(few):
        monkeypatch.setattr(programs, "FEW", few)
        engine = stacked.Stacked(stacking=stacking)
        with exact(compute):
            *_, done = rounds([compute.placed(run) for run in runs(spec, 4)], engine)
        assert not engine.slow
        made = [p for p in engine.programs.values() if isinstance(p, Recorded)]
        return any(p.graph for p in made), states(done)

    (played, found), (stepped, expected) = carried(2), carried(1000)
    assert played
    assert not stepped
    for one, other in zip(found, expected, strict=True):
        for k in one:
            torch.testing.assert_close(one[k], other[k], rtol=1e-3, atol=1e-3)


def test_a_few_steps_are_not_recorded():
    """In one visit or in several; then the program goes on from where it is."""

    def step(state, given, fixed):
        return [state[0] + given[0] * fixed[0]]

    program = Played(step)
    for visit in range(3):
        program.begin([torch.tensor(float(visit))], [torch.tensor(10.0)])
        for k in range(FEW - 1):
            program.run([torch.tensor(float(k))])
        assert program.state()[0].item() == visit + 10 * sum(range(FEW - 1))
        assert (program.graph is None) == (visit == 0)
    assert program.ran == FEW


def test_lanes_are_kept_where_other_forms_come_and_go():
    engine, taken = stacked.Stacked(), set[int]()
    assert [engine.seat((form, 0), taken) for form in (7, 8, 9)] == [0, 1, 2]
    taken.clear()
    assert [engine.seat((form, 0), taken) for form in (9, 5, 8)] == [2, 0, 1]


def test_a_part_of_a_pool_serves_the_few():
    [one, *_] = runs("fedavg")
    pools: list[Stores] = []

    def trainings(*data):
        start, site = Weights.of(one.model), one.sites[0]
        jobs = [one.job(replace(site, train=d), 0) for d in data]
        return [job.training(start) for job in jobs]

    def pool(*data):
        return Pool.of([Asked(0, t, begin(t)) for t in trainings(*data)], pools)

    a, b, c = (s.train for s in one.sites)
    whole, part = pool(a, b, c), pool(c, a)
    assert part.x is whole.x
    assert len(pools) == 1
    for found, data in ((whole, (a, b, c)), (part, (c, a))):
        for i, (request, d) in enumerate(zip(trainings(*data), data, strict=True)):
            rows = found.given(request, i, torch.arange(5))
            assert torch.equal(found.x[rows], d.x[:5])
    assert pool(one.server.train).x is not whole.x
    assert len(pools) == 2


@dataclass(frozen=True)
class Features:
    """A part with a row for every example, as CSAC's features are."""

    columns: dict[str, torch.Tensor]


@pytest.mark.parametrize(
    ("size", "sites", "held", "found"),
    [(1000, 5, 5120, 8192), (1024, 4, 4096, 4096), (129, 1, 160, 256), (3, 1, 3, 4), (1, 1, 1, 1)],
)
def test_tables_have_spare_rows(size, sites, held, found):
    """Up to an eighth of a power of two for what sites hold, the whole for what a server found."""
    [one, *_] = runs("fedavg")
    data = one.sites[0].train.take(torch.arange(size) % 48)
    job = one.job(replace(one.sites[0], train=data), 0).adding(Features({"z": torch.ones(size, 2)}))
    for other, room in ((None, held), (data.take(torch.arange(size)), found)):
        training = job.training(Weights.of(one.model), data=other)
        members = [Asked(i, training, begin(training)) for i in range(sites)]
        stack = Stack(members, True, nullcontext)
        shared = stack.shared(Pool.of(members, []))
        assert stack.room == len(shared["y"]) == room
        [rows] = shared["own"].values()
        assert rows["z"].shape == (room, 2)
        assert rows["z"].sum() == 2 * size * sites


def test_works_side_by_side():
    """Each goes its own way; what they ask for at one time is asked for at once."""

    def work(name, turns):
        found = []
        for k in range(turns):
            asked = f"{name}{k}" if k % 2 else [f"{name}{k}", f"{name}{k}'"]
            found.append((yield asked))
        return found

    both: Any = together([work("a", 3), work("b", 1), work("c", 0)])
    assert next(both) == ["a0", "a0'", "b0", "b0'"]
    assert both.send([1, 2, 3, 4]) == ["a1"]
    assert both.send([5]) == ["a2", "a2'"]
    with pytest.raises(StopIteration) as end:
        both.send([6, 7])
    assert end.value.value == [[[1, 2], 5, [6, 7]], [[3, 4]], []]


def test_of_several_answers_an_error_stands_for_all():
    odd = ValueError("no")
    asked: Any = {3: ["a", "b"], 5: "c", 7: []}
    found = shared_out(asked, [1, odd, 2])
    assert found == {3: odd, 5: 2, 7: []}
