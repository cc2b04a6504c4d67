"""The one loop: who is asked, who answers, and what happens when too few do."""

import gc
import re
from dataclasses import replace

import pytest
import torch

from feddg.catalogue import compose
from feddg.engines import cores, one_thread, open_engine
from feddg.engines.compute import Compute
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import rounds
from feddg.engines.workers import Workers
from feddg.errors import ConfigError, SiteFailure
from feddg.guard import Guard
from feddg.methods.fedavg import FedAvg
from feddg.methods.scaffold import Scaffold
from feddg.packets import Reply
from tests import toy


def asked(n=6, **options):
    run = toy.run(compose("fedavg"), n, **options)
    return [[s.name for s in run.asked(k)] for k in range(n)]


def test_all_are_asked():
    assert asked() == [["dawn", "noon", "dusk"]] * 6


@pytest.mark.parametrize(("share", "count"), [(2, 2), (1, 1), (0.5, 2), (0.3, 1), (1.0, 3), (9, 3)])
def test_a_share_or_a_number_is_asked(share, count):
    """0.5 of three sites is two, 0.3 is one: rounded up."""
    assert [len(names) for names in asked(participation=share)] == [count] * 6


def test_who_is_asked_is_seeded_by_round_and_in_the_sites_order():
    a, b, c = (
        asked(12, participation=2),
        asked(12, participation=2),
        asked(12, participation=2, seed=1),
    )
    assert a == b != c
    assert len({tuple(names) for names in a}) == 3, "all pairs come up"
    everyone = ["dawn", "noon", "dusk"]
    assert all(names == sorted(names, key=everyone.index) for names in a)


def test_late_joiners_are_asked_from_their_round_on():
    fed = toy.federation()
    late = replace(fed, sites=(fed.sites[0], replace(fed.sites[1], joins=2), fed.sites[2]))
    names = asked(4, federation=late)
    assert names == [
        ["dawn", "dusk"],
        ["dawn", "dusk"],
        ["dawn", "noon", "dusk"],
        ["dawn", "noon", "dusk"],
    ]


def test_nobody_has_joined():
    fed = toy.federation()
    late = replace(fed, sites=tuple(replace(s, joins=1) for s in fed.sites))
    with pytest.raises(ConfigError, match="no site has joined by round 0"):
        list(toy.history(toy.run(compose("fedavg"), federation=late)))


def test_only_those_who_were_asked_move_the_model():
    """With one site asked, the model is that site's."""
    run = toy.run(compose("fedavg"), 1, participation=1)
    [k] = toy.history(run)
    [reply] = k.replies
    torch.testing.assert_close(k.state.model.vector, reply.model.vector, atol=1e-6, rtol=1e-5)


class Broken(FedAvg):
    """Fails at noon from round 1 on, before its first request or after it."""

    late = False

    def local_update(self, inbox, job, memory):
        fails = job.name == "noon" and inbox.round >= 1
        if fails and not self.late:
            raise RuntimeError("out of power")
        result = yield from super().local_update(inbox, job, memory)
        if fails:
            raise RuntimeError("out of power")
        return result


class BrokenLate(Broken):
    late = True


@pytest.mark.parametrize("method", [Broken, BrokenLate])
def test_a_site_that_fails_is_left_out_where_enough_remain(method):
    run = toy.run(method(), 3, min_sites=2)
    done = list(toy.history(run))
    assert [[(f.site, f.reason) for f in k.failures] for k in done] == [
        [], [("noon", "RuntimeError: out of power")], [("noon", "RuntimeError: out of power")],
    ]  # fmt: skip
    assert [len(k.replies) for k in done] == [3, 2, 2]


@pytest.mark.parametrize("minimum", [None, 3])
def test_too_few_good_replies_end_the_run_in_words(minimum):
    run = toy.run(Broken(), 3, min_sites=minimum)
    with pytest.raises(SiteFailure, match=r"round 1: 2 of 3 sites .* 3 are needed\. noon: Runtime"):
        list(toy.history(run))


def test_what_a_failed_site_remembered_stays():
    engine = InProcess()
    recipe = toy.steps(toy.RECIPE, optimizer_state="keep")
    run = toy.run(Broken(), 2, min_sites=2, recipe=recipe)
    first, second = [engine.memories(run)["noon"] for _ in toy.history(run, engine)]
    assert first is second


def test_a_reply_that_the_guard_refuses_is_a_failure():
    run = toy.run(compose("fedavg"), 1, min_sites=1, guard=Guard(largest=1e-9))
    with pytest.raises(SiteFailure, match="update is too large"):
        list(toy.history(run))

    class Poisoned(InProcess):
        def exchange(self, posts):
            [[first, *rest]] = super().exchange(posts)
            assert isinstance(first, Reply)
            bad = replace(first.model, vector=first.model.vector * float("nan"))
            return [[replace(first, model=bad), *rest]]

    [k] = toy.history(toy.run(compose("fedavg"), 1, min_sites=1), Poisoned())
    assert [(f.site, "not finite" in f.reason) for f in k.failures] == [("dawn", True)]
    assert torch.isfinite(k.state.model.vector).all()


def test_runs_of_different_lengths_end_when_they_end():
    runs = [toy.run(compose("fedavg"), n, seed=n) for n in (1, 3)]
    seen = [[(runs.index(r), k.index) for r, k in done] for done in rounds(runs, InProcess())]
    assert seen == [[(0, 0), (1, 0)], [(1, 1)], [(1, 2)]]


def test_it_can_start_anywhere():
    """From round 2 with that round's state it is the third round of the whole."""
    run = toy.run(compose("fedavg"), 3)
    states = [k.state for k in toy.history(run)]
    [[(_, last)]] = rounds([run], InProcess(), [(2, states[1])])
    assert last.index == 2
    assert torch.equal(last.state.model.vector, states[2].model.vector)


def test_a_trace_is_of_its_own_round():
    """The state that comes back from the merge has this round's trace and no older one's."""

    class Tracing(FedAvg):
        def aggregate(self, state, replies, job):
            assert state.trace == {}
            return (yield from super().aggregate(state, replies, job))

    assert all(k.state.trace for k in toy.history(toy.run(Tracing(), 2)))


def test_engines_by_the_number_of_workers():
    runs = [toy.run(compose("fedavg"))]
    threads = torch.get_num_threads()
    with open_engine(runs, 1) as engine:
        assert type(engine) is InProcess
        assert torch.get_num_threads() == 1
    with open_engine(runs, 64) as engine:
        assert isinstance(engine, Workers)
        assert engine.count == 3  # no more than sites
    assert torch.get_num_threads() == threads
    with pytest.raises(ConfigError, match="--workers must be at least 1, not 0"):
        Compute(workers=0)
    assert cores() >= 1


def test_one_thread_is_put_back():
    torch.set_num_threads(2)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


class Malformed(FedAvg):
    """The server stumbles over a note in round 1."""

    def aggregate(self, state, replies, job):
        if job.round == 1:
            _ = replies[0].notes["absent"]
        return (yield from super().aggregate(state, replies, job))


class Eager(Malformed):
    """So early that there is no generator yet."""

    def aggregate(self, state, replies, job):
        if job.round == 1:
            _ = replies[0].notes["absent"]
        return FedAvg.aggregate(self, state, replies, job)


class Dead(FedAvg):
    """Merges finite replies to what is not finite, in round 1."""

    def aggregate(self, state, replies, job):
        after = yield from super().aggregate(state, replies, job)
        factor = float("inf") if job.round == 1 else 1.0
        return replace(after, model=replace(after.model, vector=after.model.vector * factor))


class Mute(FedAvg):
    def broadcast(self, state, round):
        if round == 1:
            raise ValueError("nothing to say")
        return super().broadcast(state, round)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (Broken, r"round 1: 2 of 3 sites"),
        (Malformed, r"round 1: .*Malformed.* failed at the server: KeyError: 'absent'"),
        (Eager, r"round 1: .*Eager.* failed at the server: KeyError"),
        (Dead, r"round 1: the model that .*Dead.* merged is not finite"),
        (Mute, r"round 1: .*Mute.* failed at the server: ValueError: nothing to say"),
    ],
)
def test_a_run_that_fails_leaves_and_the_others_go_on(method, words):
    bad, good = toy.run(method(), 3), toy.run(compose("fedavg"), 3)
    left = []
    steps = list(rounds([bad, good], InProcess(), None, lambda r, e: left.append((r, str(e)))))
    assert [[r is good for r, _ in done] for done in steps] == [[False, True], [True], [True]]
    [(who, why)] = left
    assert who is bad
    assert re.search(words, why)
    alone = list(toy.history(good))[-1]
    assert torch.equal(steps[-1][0][1].state.model.vector, alone.state.model.vector)
    with pytest.raises(SiteFailure, match=words):
        list(toy.history(bad))


def test_the_same_trouble_of_several_sites_is_said_once():
    class Dark(FedAvg):
        def local_update(self, inbox, job, memory):
            raise RuntimeError("no light" if job.name == "noon" else "no power")

    with pytest.raises(SiteFailure, match=r"dawn, dusk: Run\w+: no power; noon: Run\w+: no light$"):
        list(toy.history(toy.run(Dark())))


class Hiccup(FedAvg):
    """Noon's model is NaN in round 1, and well again after it."""

    def local_update(self, inbox, job, memory):
        reply, memory = yield from super().local_update(inbox, job, memory)
        if job.name == "noon" and inbox.round == 1:
            dead = replace(reply.model, vector=reply.model.vector * float("nan"))
            reply = replace(reply, model=dead)
        return reply, memory


@pytest.mark.parametrize("workers", [1, 2])
def test_a_refused_reply_leaves_the_sites_memory_as_it_was(workers):
    """Scaffold's control would be NaN for good, and the site refused for ever."""
    run = toy.run(Scaffold(Hiccup()), 3, min_sites=2)
    controls, failures = [], []
    with open_engine([run], workers) as engine:
        for k in toy.history(run, engine):
            controls.append(engine.memories(run)["noon"]["scaffold"])
            failures.append([f.site for f in k.failures])
    assert failures == [[], ["noon"], []]
    assert torch.equal(controls[0], controls[1])
    assert torch.isfinite(controls[2]).all()
    assert not torch.equal(controls[1], controls[2])


def test_a_reply_in_anothers_name_is_the_failure_of_the_site_that_was_asked():
    class Posing(FedAvg):
        def local_update(self, inbox, job, memory):
            reply, memory = yield from super().local_update(inbox, job, memory)
            return replace(reply, site="dawn"), memory

    [k] = toy.history(toy.run(Posing(), 1, min_sites=1))
    assert [f.site for f in k.failures] == ["noon", "dusk"]


def test_a_run_that_is_gone_leaves_no_memory_behind():
    """Else another of the same engine could inherit it: Python uses the ids of the dead again."""
    engine, run = InProcess(), toy.run(compose("csac"), 1)
    list(toy.history(run, engine))
    assert set(engine.memories(run)) == {"dawn", "noon", "dusk"}
    del run
    gc.collect()
    assert not engine.kept
    assert not engine.staged
