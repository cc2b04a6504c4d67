"""What every method and composition must do, whoever wrote it."""

from dataclasses import replace

import pytest
import torch

from feddg import wire
from feddg.catalogue import compose, spelled
from feddg.engines.inprocess import InProcess
from feddg.packets import Packet, Reply, State
from tests import toy
from tests.battery import EFFECTS, EFFECTS_WHERE, IDENTITIES, IDENTITIES_WHERE, METHODS, SLOW, ids

each_method = pytest.mark.parametrize("spec", METHODS, ids=ids(METHODS))


def flat(packet: Packet) -> dict[str, torch.Tensor]:
    return wire.flatten({"model": packet.model.vector, "notes": packet.notes})


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor], atol: float = 0.0) -> bool:
    if a.keys() != b.keys():
        return False
    return all(
        torch.equal(a[k], b[k]) if atol == 0 else torch.allclose(a[k], b[k], rtol=0, atol=atol)
        for k in a
    )


def sent(packet):
    assert isinstance(packet, Packet)
    return wire.unpack_packet(wire.pack_packet(packet))


def visited(visit):
    [result] = InProcess().drive([visit])
    assert not isinstance(result, Exception)
    return result


@each_method
def test_learns_a_small_real_task(spec):
    """Three classes of stripes under a shift of background and contrast that no site shows."""
    run = toy.run(compose(spec), SLOW.get(spec, 8))
    *_, last = toy.history(run)
    assert toy.accuracy(run, last) > 0.8


@each_method
def test_same_seed_same_bits(spec):
    method = compose(spec)
    assert same(flat(toy.final(method).state), flat(toy.final(method).state))


@each_method
def test_another_seed_other_bits(spec):
    method = compose(spec)
    assert not same(flat(toy.final(method).state), flat(toy.final(method, seed=1).state))


@each_method
def test_everything_survives_the_wire(spec):
    """Messages, memory and state may be sent or saved at any point."""

    class Wired(InProcess):
        def exchange(self, posts):
            for at, sites in self.kept.items():
                self.kept[at] = {k: wire.unpack(wire.pack(v)) for k, v in sites.items()}
            posts = [replace(p, inbox=wire.unpack_packet(wire.pack_packet(p.inbox))) for p in posts]
            replies = super().exchange(posts)
            return [[sent(r) for r in ours] for ours in replies]

    run = toy.run(compose(spec))
    *_, wired = toy.history(run, Wired())
    assert same(flat(wired.state), flat(toy.final(compose(spec)).state))


@each_method
def test_nothing_mutates_its_inputs(spec):
    """local_update and aggregate are functions of their arguments."""
    run, engine = toy.run(compose(spec)), InProcess()
    method, model, site = run.method, run.model, run.sites[0]
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    state = method.init(model, run.names)
    before = {k: v.clone() for k, v in flat(state).items()}
    inbox = method.broadcast(state, 0)
    _, memory = visited(method.local_update(inbox, run.job(site, 0), {}))
    kept = {k: v.clone() for k, v in wire.flatten(memory).items()}
    reply, _ = visited(method.local_update(inbox, run.job(site, 1), memory))
    sent = {k: v.clone() for k, v in flat(reply).items()}
    [after] = engine.work([method.aggregate(state, [reply], run.job(run.server, 1))])
    assert isinstance(after, State), after
    assert same(flat(state), before)
    assert same(wire.flatten(memory), kept)
    assert same(flat(reply), sent)
    assert same(dict(model.state_dict()), weights)


@each_method
def test_works_with_one_site_and_without_validation(spec):
    fed = toy.federation(share=0.0)
    run = toy.run(compose(spec), federation=replace(fed, sites=fed.sites[:1]))
    *_, last = toy.history(run)
    assert torch.isfinite(last.state.model.vector).all()


@each_method
def test_partial_participation_and_a_late_joiner(spec):
    fed = toy.federation()
    late = replace(fed.sites[2], joins=2)
    run = toy.run(
        compose(spec), 4, federation=replace(fed, sites=(*fed.sites[:2], late)), participation=2
    )
    done = list(toy.history(run))
    turns = run.method.asks(0, run.names)
    assert [len(k.replies) for k in done] == [2 if turns is None else len(turns)] * 4
    assert torch.isfinite(done[-1].state.model.vector).all()


@each_method
def test_declares_all_that_leaves_a_site(spec):
    run = toy.run(compose(spec))
    sent = {key for k in toy.history(run) for r in k.replies for key in r.notes}
    assert sent == set(run.method.reveals.notes)


@each_method
def test_is_spelled_in_full_and_read_back(spec):
    method = compose(spec)
    assert compose(spelled(method)) == method


@each_method
def test_keeps_the_optimizer_where_the_recipe_says_so(spec):
    keep, reset = (
        toy.vector(compose(spec), 4, recipe=toy.steps(toy.RECIPE, optimizer_state=s))
        for s in ("keep", "reset")
    )
    assert not torch.equal(keep, reset)


@pytest.mark.parametrize(("special", "plain", "atol"), IDENTITIES)
def test_identity(special, plain, atol):
    a, b = toy.vector(compose(special)), toy.vector(compose(plain))
    assert torch.equal(a, b) if atol == 0 else torch.allclose(a, b, rtol=0, atol=atol)


@pytest.mark.parametrize(("special", "plain", "atol", "where", "options"), IDENTITIES_WHERE)
def test_identity_under_a_condition(special, plain, atol, where, options):
    a, b = toy.vector(compose(special), **options), toy.vector(compose(plain), **options)
    assert torch.equal(a, b) if atol == 0 else torch.allclose(a, b, rtol=0, atol=atol)


@pytest.mark.parametrize("spec", ["ppdg", "pcgrad"])
def test_no_conflict_where_an_identity_counts_on_it(spec):
    """Their identities with FedAvg say nothing of a toy task on which updates conflict."""

    def conflicts(**options):
        done = toy.history(toy.run(compose(spec), **options))
        return [k.state.trace["conflicts"] for k in done]

    assert not any(conflicts())
    assert any(conflicts(federation=toy.at_odds()))


@pytest.mark.parametrize(("on", "off"), EFFECTS)
def test_effect(on, off):
    assert not torch.allclose(toy.vector(compose(on)), toy.vector(compose(off)), atol=1e-6)


@pytest.mark.parametrize(("on", "off", "where", "options"), EFFECTS_WHERE)
def test_effect_under_a_condition(on, off, where, options):
    a, b = toy.vector(compose(on), **options), toy.vector(compose(off), **options)
    assert not torch.allclose(a, b, atol=1e-6)


def test_the_reply_of_a_site_that_lies_is_refused():
    run = toy.run(compose("fedavg"), min_sites=1)

    class Lying(InProcess):
        def exchange(self, posts):
            [[first, *rest]] = super().exchange(posts)
            assert isinstance(first, Reply)
            return [[first.noting("secret", 1.0), *rest]]

    first = next(iter(toy.history(run, Lying())))
    assert [f.reason for f in first.failures] == ["it sent the undeclared note 'secret'"]
