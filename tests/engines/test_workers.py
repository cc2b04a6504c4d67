"""Worker processes compute what one process computes, bit for bit, and never linger."""

import os
from dataclasses import replace

import pytest
import torch

from feddg.catalogue import compose
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import Question, rounds
from feddg.engines.workers import Workers
from feddg.errors import SiteFailure
from tests import toy


def last(runs, engine):
    *_, done = rounds(runs, engine)
    return [k for _, k in done]


def questions(runs, done):
    return [Question(r, k.state, ("test/night",)) for r, k in zip(runs, done, strict=True)]


def test_same_bits_as_one_process_for_several_runs_at_once():
    runs = [toy.run(compose("fedprox"), seed=s) for s in (0, 1)]
    with Workers(runs=runs, count=2) as engine:
        spread = last(runs, engine)
        scores = engine.score(
            [Question(r, k.state, ("test/night",)) for r, k in zip(runs, spread, strict=True)]
        )
    alone = last(runs, InProcess())
    for a, b in zip(spread, alone, strict=True):
        assert torch.equal(a.state.model.vector, b.state.model.vector)
        assert [r.site for r in a.replies] == [r.site for r in b.replies]
    assert scores == InProcess().score(questions(runs, alone))


def test_memory_travels_with_the_visit():
    recipe = toy.steps(toy.RECIPE, optimizer_state="keep")
    runs = [toy.run(compose("fedavg"), recipe=recipe)]
    with Workers(runs=runs, count=2) as engine:
        [spread] = last(runs, engine)
        assert engine.memories(runs[0]).keys() == {"dawn", "noon", "dusk"}
    [alone] = last(runs, InProcess())
    assert torch.equal(spread.state.model.vector, alone.state.model.vector)


def test_a_failing_site_is_named_and_the_round_goes_on_where_enough_remain():
    fed = toy.federation()
    broken = replace(fed.sites[1], train=replace(fed.sites[1].train, y=torch.full((64,), 7)))
    fed = replace(fed, sites=(fed.sites[0], broken, fed.sites[2]))
    runs = [toy.run(compose("fedavg"), federation=fed, min_sites=2)]
    with Workers(runs=runs, count=2) as engine:
        [k] = last(runs, engine)
    assert [f.site for f in k.failures] == ["noon"]
    assert len(k.replies) == 2
    strict = [toy.run(compose("fedavg"), federation=fed)]
    with pytest.raises(SiteFailure, match="noon"):
        last(strict, InProcess())


def test_workers_end_with_the_engine():
    engine = Workers(runs=[toy.run(compose("fedavg"))], count=2)
    pids = [p.pid for p, _ in engine.pool if p.pid]
    assert len(pids) == 2
    engine.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_dead_worker_is_reported_in_words():
    runs = [toy.run(compose("fedavg"))]
    with Workers(runs=runs, count=1) as engine:
        engine.pool[0][0].kill()
        with pytest.raises(SiteFailure, match="worker process died"):
            last(runs, engine)


def test_one_question_is_answered_by_all_workers_in_its_order():
    """Three parts for two workers: the largest alone, the others together; or one for each."""
    run = toy.run(compose("fedavg"))
    state = run.method.init(run.model, run.names)
    question = Question(run, state, tuple(run.judged))
    with Workers(runs=[run], count=2) as engine:
        [scores] = engine.score([question])
        groups = engine.pieces(question, 1)
    assert list(scores) == list(run.judged)
    assert [scores] == InProcess().score([question])
    assert groups[0] == ("test/night",)
    assert sorted(p for g in groups for p in g) == sorted(run.judged)


def test_workers_end_at_once_where_something_went_wrong():
    """In the midst of a visit: nobody waits for it."""
    engine = Workers(runs=[toy.run(compose("fedavg"))], count=2)
    processes = [p for p, _ in engine.pool]
    with pytest.raises(KeyboardInterrupt), engine:
        raise KeyboardInterrupt
    assert not any(p.is_alive() for p in processes)
    assert [p.exitcode for p in processes] == [-9, -9]
