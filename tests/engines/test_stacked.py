"""Stacks and streams compute what one site after the other computes."""

import warnings
from dataclasses import replace

import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.data.domain import Examples
from feddg.engines.forms import form, plan
from feddg.engines.inprocess import InProcess
from feddg.engines.lanes import stretches
from feddg.engines.loop import rounds
from feddg.engines.stacked import KEPT, SlowPath, Stacked
from feddg.local import Training
from feddg.models import build
from feddg.training import begin
from feddg.wire import flatten
from tests import toy

DIFFERENT = [
    "fedavg", "fedprox", "scaffold", "fednova", "fedsam", "harmofl", "ga", "fediir", "copa",
    "csac", "csac(cache_features='off', teacher='latest')", "copa(branch='consistency')",
    "elcfs", "fedsr", "fedadg", "jigen", "rsc+mixstyle+am", "sequential",
    "copa-uda(threshold=0.45)", "kd3a(gate=(0.4, 0.6))", "shot", "fada",
]  # fmt: skip


@pytest.fixture(autouse=True)
def float64():
    toy.collection()  # which is kept: its numbers stay float32
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def run(spec, n=2, **options):
    fed = toy.federation()
    *sites, server = [
        replace(s, train=replace(s.train, store=s.train.store.double()), val=None)
        for s in (*fed.sites, fed.server or fed.sites[0])
    ]
    fed = replace(fed, sites=tuple(sites), server=server)
    made = toy.run(compose(spec), n, **{"federation": fed, **options})
    return replace(made, model=made.model.double())


def last(runs, engine):
    *_, done = rounds(runs, engine)
    return [k for _, k in done]


def apart(a, b):
    return (a.state.model.vector - b.state.model.vector).abs().max().item()


@pytest.mark.parametrize("spec", DIFFERENT)
def test_stacked_as_one_by_one(spec):
    """Three sites of unequal length and number of steps, two rounds, float64."""
    [alone] = last([run(spec)], InProcess())
    [together] = last([run(spec)], Stacked(stacking=True))
    assert apart(alone, together) < 1e-9
    for one, other in zip(alone.replies, together.replies, strict=True):
        assert one.steps == other.steps
        assert one.losses == pytest.approx(other.losses, abs=1e-9)


@pytest.mark.parametrize("spec", ["fedavg", "csac", "copa", "elcfs"])
def test_side_by_side_as_one_by_one_to_the_bit(spec):
    """Without vmap the arithmetic is the same."""
    [alone] = last([run(spec)], InProcess())
    [beside] = last([run(spec)], Stacked(stacking=False))
    assert torch.equal(alone.state.model.vector, beside.state.model.vector)


def test_runs_of_other_seeds_and_methods_share_a_stack():
    specs = [("fedavg", 0), ("fedavg", 1), ("ga", 0), ("ppdg", 1)]
    runs = [run(spec, seed=seed) for spec, seed in specs]
    engine = Stacked(stacking=True)
    together = last(runs, engine)
    assert sum(map(len, engine.forms.values())) == 1  # four methods train alike
    alone = [last([run(spec, seed=seed)], InProcess())[0] for spec, seed in specs]
    assert max(map(apart, alone, together)) < 1e-9


def test_float32_too():
    torch.set_default_dtype(torch.float32)
    [alone] = last([toy.run(compose("csac"), 2)], InProcess())
    [together] = last([toy.run(compose("csac"), 2)], Stacked(stacking=True))
    size = alone.state.model.vector.abs().max().item()
    assert apart(alone, together) < 1e-4 * size


@pytest.mark.parametrize(
    "changes", [{"drop_last": False}, {"optimizer": "adam"}, {"optimizer_state": "keep"},
                {"schedule": "cosine", "per": "step"}, {"steps": 3}],
)  # fmt: skip
def test_other_recipes(changes):
    """A last partial batch is a program of its own; kept optimisers travel."""
    recipe = toy.steps(toy.RECIPE, **changes)
    [alone] = last([run("fedavg", recipe=recipe)], InProcess())
    [together] = last([run("fedavg", recipe=recipe)], Stacked(stacking=True))
    # Adam divides gradients that are 0 but for rounding by their size
    assert apart(alone, together) < (1e-7 if recipe.optimizer == "adam" else 1e-9)


def test_a_site_smaller_than_a_batch_stands_in_another_stack():
    made = run("fedavg")
    few, *others = made.federation.sites
    few = replace(few, train=few.train.take(torch.arange(9)))
    fed = replace(made.federation, sites=(few, *others))
    engine = Stacked(stacking=True)
    [together] = last([run("fedavg", federation=fed)], engine)
    [alone] = last([run("fedavg", federation=fed)], InProcess())
    assert apart(alone, together) < 1e-9
    assert sum(map(len, engine.forms.values())) == 2


def test_one_broken_site_fails_alone():
    made = run("fedavg", min_sites=2)
    one, broken, other = made.federation.sites
    broken = replace(broken, train=replace(broken.train, y=torch.full((64,), 7)))
    fed = replace(made.federation, sites=(one, broken, other))
    options = {"federation": fed, "min_sites": 2}
    with pytest.warns(SlowPath, match="site by site"):
        [together] = last([run("fedavg", 1, **options)], Stacked(stacking=True))
    [alone] = last([run("fedavg", 1, **options)], InProcess())
    assert [f.site for f in together.failures] == ["noon"]
    assert torch.equal(alone.state.model.vector, together.state.model.vector)


class Dropping(toy.Net):
    """A network with chance of its own."""

    def __init__(self):
        super().__init__()
        self.dense.append(nn.Dropout(0.5))


class Scaled(toy.Net):
    """A network that a number decides which is no weight."""

    def __init__(self, by=1.0):
        super().__init__()
        self.by = by

    def forward(self, x):
        return super().forward(self.by * x)


def test_chance_of_its_own_is_carried_out_alone():
    made = run("fedavg", 1)
    dropping = replace(made, model=Dropping().double())
    engine = Stacked(stacking=True)
    [together] = last([dropping], engine)
    assert not engine.forms
    [alone] = last([dropping], InProcess())
    assert torch.equal(alone.state.model.vector, together.state.model.vector)


def test_networks_that_only_look_alike_are_not_stacked():
    made = run("fedavg", 1)
    runs = [replace(made, model=Scaled(by).double()) for by in (1.0, 2.0, 2.0)]
    engine = Stacked(stacking=True)
    together = last(runs, engine)
    assert sum(map(len, engine.forms.values())) == 2
    alone = [last([r], InProcess())[0] for r in runs]
    assert max(map(apart, alone, together)) < 1e-9


def test_what_cannot_be_vmapped_says_so_and_works():
    class Stubborn(toy.Net):
        def forward(self, x):
            if x.sum() > 1e9:  # a decision by the numbers
                return super().forward(-x)
            return super().forward(x)

    made = replace(run("fedavg", 1), model=Stubborn().double())
    with pytest.warns(SlowPath, match="Stubborn is trained site by site"):
        [together] = last([made], Stacked(stacking=True))
    [alone] = last([made], InProcess())
    assert torch.equal(alone.state.model.vector, together.state.model.vector)


def test_small_models_are_stacked_and_large_ones_are_not():
    def training(model):
        made = replace(run("fedavg", 1), model=model.double())
        visit = made.method.local_update(
            made.method.broadcast(made.method.init(made.model, made.names), 0),
            made.job(made.sites[0], 0), {},
        )  # fmt: skip
        request = next(visit)
        assert isinstance(request, Training)
        return request

    small = training(toy.Net())
    assert Stacked().together(small)
    assert not Stacked(stacking=False).together(small)
    large = training(build("small-cnn", outputs=3, channels=1, width=256))
    assert not Stacked().together(large)
    assert form(small, begin(small)) != form(large, begin(large))


def test_programs_serve_round_after_round_and_are_let_go_when_unused():
    engine = Stacked(stacking=True)
    seen = []
    recipe = toy.steps(toy.RECIPE, first_label_smoothing=0.1)
    for _ in rounds([run("fedavg", KEPT + 2, recipe=recipe)], engine):
        seen.append(set(engine.programs.values()))
    assert sum(map(len, engine.forms.values())) == 2  # smoothed, and not
    assert seen[0] < seen[1], "the first round's are kept for a while"
    assert seen[1] - seen[0] == seen[-1], "the later rounds share theirs"
    assert seen[0].isdisjoint(seen[-1])


def test_pools_go_with_the_programs_that_read_them():
    """Sites with stores of their own, two of three by turns: each pair has a pool of its own."""
    made = run("fedavg", 12, participation=2)
    own = [replace(s, train=Examples(s.train.x, s.train.y)) for s in made.federation.sites]
    made = replace(made, federation=replace(made.federation, sites=tuple(own)))
    engine, pairs, counts = Stacked(stacking=True), list[tuple[str, ...]](), list[int]()
    for [(_, done)] in rounds([made], engine):
        pairs.append(tuple(r.site for r in done.replies))
        counts.append(len(engine.pools))
        assert {id(stores.x) for stores in engine.pools} == {key[4] for key in engine.programs}
    late = [len(set(pairs[max(0, k + 1 - KEPT) : k + 1])) for k in range(len(pairs))]
    assert counts == late
    assert min(counts[2:]) < len(set(pairs)) == 3


def test_the_first_stretch_is_short():
    assert [len(s) for s in stretches(range(10, 200))] == [8, 16, 32, 64, 64, 6]
    assert [t for s in stretches(range(3, 20)) for t in s] == list(range(3, 20))
    with warnings.catch_warnings():
        assert list(stretches(range(0))) == []


def test_networks_that_feddg_built_alike_are_stacked():
    """Two seeds of a named network are one form, as long as their options are the same."""
    nets = [
        build("small-cnn", i, channels=1, outputs=3, width=w) for i, w in ((0, 4), (1, 4), (2, 8))
    ]
    plans = [plan(net) for net in nets]
    assert plans[0] == plans[1] != plans[2]


@pytest.mark.parametrize("spec", ["copa-uda(threshold=0.45)", "kd3a(gate=(0.4, 0.4))", "shot"])
def test_servers_of_several_runs_are_stacked(spec):
    """They train on as many examples as each has labelled, another number in every round."""
    runs = [run(spec, 3, seed=seed) for seed in (0, 1)]
    together = last(runs, Stacked(stacking=True))
    alone = [last([run(spec, 3, seed=seed)], InProcess())[0] for seed in (0, 1)]
    for one, other in zip(alone, together, strict=True):
        a, b = (
            flatten({"model": k.state.model.vector, "notes": k.state.notes}) for k in (one, other)
        )
        assert a.keys() == b.keys()
        assert max((a[k] - b[k]).abs().max().item() for k in a if a[k].numel()) < 1e-8
        if "labelled" in one.state.trace:
            assert one.state.trace["labelled"] == other.state.trace["labelled"] > 0
