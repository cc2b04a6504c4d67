"""Visits in pieces: nobody idles, and the bits are those of one go."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.engines.alone import Paused, train, train_on
from feddg.engines.inprocess import InProcess, visit
from feddg.engines.loop import Post, first_state, rounds
from feddg.engines.pieces import Handed, cuts, shifted, whole
from feddg.engines.workers import Workers
from feddg.local import Trained
from feddg.method import Reveals
from feddg.methods.fedavg import FedAvg
from feddg.wire import pack, unpack
from tests import toy


def test_mcnaughtons_rule_by_hand():
    """Five units on two workers: 2.5 each. Three fit in part into the first line, half of one.

    On three, 3, 2 and 2 need 3 for the longest alone, and nothing is cut.
    """
    assert whole([1.0] * 5, 2) == 3.0
    assert cuts([1.0] * 5, 2) == [1.0, 1.0, 0.5, 1.0, 1.0]
    assert cuts([1.0] * 5, 4) == [1.0, 0.75, 0.5, 0.25, 1.0]
    assert cuts([3.0, 2.0, 2.0], 3) == [1.0] * 3
    assert cuts([1.0] * 6, 2) == [1.0] * 6
    assert cuts([], 2) == []


class Dropping(toy.Net):
    """With chance of its own."""

    def __init__(self):
        super().__init__()
        self.dense.append(nn.Dropout(0.3))


def training(method="fedavg", **options):
    run = toy.run(compose(method), **options)
    post = Post(run, run.method.broadcast(first_state(run), 0), list(run.sites))
    return next(visit(post, run.sites[0], {}))


@pytest.mark.parametrize("until", [1, 3])
@pytest.mark.parametrize("method", ["fedavg", "mixstyle", "scaffold"])
def test_a_paused_training_goes_on_over_the_wire_to_the_same_bits(method, until):
    """Momentum, batch norm's statistics, draws, dropout and the last epoch's losses included."""
    request = training(method)
    request = replace(request, job=replace(request.job, model=Dropping()))
    first = train_on(request, until=until)
    assert isinstance(first, Paused)
    torch.rand(3)  # elsewhere the global stream is another
    rest = train_on(request, Paused(unpack(pack(first.tree))))
    alone = train(request)
    assert isinstance(rest, Trained)
    assert torch.equal(rest.model.vector, alone.model.vector)
    assert rest.losses == alone.losses


def test_a_visit_is_handed_over_with_what_it_was_told():
    """GA evaluates before it trains: in its second round the answer goes along."""
    run = toy.run(compose("ga"))
    state = first_state(run)
    site = run.sites[0]
    memory = {"ga": 0.5}
    post = Post(run, run.method.broadcast(state, 1), [site])
    handed = shifted(visit(post, site, memory), until=2)
    assert isinstance(handed, Handed)
    assert [s.keys() >= {"loss"} for s in handed.answers] == [True]
    ended, alone = (shifted(visit(post, site, memory), since=at) for at in (handed, None))
    assert isinstance(ended, tuple)
    assert isinstance(alone, tuple)
    (reply, _), (whole, _) = ended, alone
    assert torch.equal(reply.model.vector, whole.model.vector)
    assert reply.notes == whole.notes


def test_workers_cut_a_visit_and_keep_the_bits(monkeypatch):
    """Sites of 18, 24 and 30 steps: two workers need 42 whole, 36 cut."""
    run = toy.run(compose("fedavg"), recipe=toy.steps(toy.RECIPE, epochs=6))
    handed = []
    plain = Workers.spread

    def spied(self, order, task, arrived):
        def watched(at, head, packets):
            handed.append("answers" in head)
            return arrived(at, head, packets)

        plain(self, order, task, watched)

    monkeypatch.setattr(Workers, "spread", spied)
    with Workers(runs=[run], count=2) as engine:
        *_, [(_, spread)] = rounds([run], engine)
    *_, [(_, alone)] = rounds([run], InProcess())
    assert sum(handed) == 3  # one a round
    assert torch.equal(spread.state.model.vector, alone.state.model.vector)
    assert [r.losses for r in spread.replies] == [r.losses for r in alone.replies]


class Several(FedAvg):
    """Asks for two things at once, first or last in a visit; what it is told is in the notes."""

    first = True
    reveals = Reveals({"several": "the loss and the outputs"})

    def local_update(self, inbox, job, memory):
        def both(packet):
            model = self.predictor(packet, job.model)
            scores, found = yield [job.evaluation(model), job.prediction(model)]
            return {"loss": scores["loss"], "outputs": found}

        if self.first:
            told = yield from both(inbox)
        reply, memory = yield from super().local_update(inbox, job, memory)
        if not self.first:
            told = yield from both(reply)
        return reply.noting("several", told), memory


class AtTheEnd(Several):
    first = False


@pytest.mark.parametrize(("kind", "pieces"), [(Several, 1), (AtTheEnd, 2)])
def test_requests_that_come_together_are_answered_together(kind, pieces):
    """Whoever asks so before the training makes it in one go; after it, the rest is another's."""
    run = toy.run(kind())
    site = run.sites[0]
    post = Post(run, run.method.broadcast(first_state(run), 0), [site])
    [alone] = InProcess().drive([visit(post, site, {})])
    found = [shifted(visit(post, site, {}), until=2)]
    if isinstance(found[0], Handed):
        found.append(shifted(visit(post, site, {}), since=found[0]))
    assert len(found) == pieces
    assert isinstance(found[-1], tuple)
    assert isinstance(alone, tuple)
    assert bits(found[-1][0]) == bits(alone[0])


@pytest.mark.parametrize("kind", [Several, AtTheEnd])
def test_workers_answer_requests_that_come_together_to_the_same_bits(kind):
    """Of sites of 18, 24 and 30 steps one is cut."""
    run = toy.run(kind(), 2, recipe=toy.steps(toy.RECIPE, epochs=6))
    with Workers(runs=[run], count=2) as engine:
        *_, [(_, spread)] = rounds([run], engine)
    *_, [(_, alone)] = rounds([run], InProcess())
    assert list(map(bits, spread.replies)) == list(map(bits, alone.replies))


def bits(reply):
    told = reply.notes["several"]
    return reply.model.vector.tolist(), told["loss"], told["outputs"].tolist()


def test_a_visit_that_fails_in_its_first_piece_is_a_failure_of_its_site():
    request = training()
    wrong = replace(request.data, y=torch.full((len(request.data),), 9))

    def failing():
        yield replace(request, data=wrong)

    assert isinstance(shifted(failing(), until=2), Exception)
