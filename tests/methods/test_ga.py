"""GA: gaps, Eq. 3, and who counts when somebody is away."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.errors import ConfigError, SiteFailure
from feddg.local import Evaluation, evaluate
from feddg.method import Reveals
from feddg.methods.fedavg import FedAvg
from feddg.methods.ga import GA
from feddg.packets import Inbox, Reply, State
from feddg.weights import Weights
from tests import toy
from tests.methods import quadratic

THIRDS = {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}


def test_equation_3_by_hand():
    """Gaps 0.5, 0.1, 0.3: mu = 0.3, deviations 0.2, -0.2, 0, the largest 0.2. With d^r = 0.03:

    a' = 1/3 + 0.03, 1/3 - 0.03, 1/3, which sums to 1 already.
    """
    a = GA().adjusted(THIRDS, {"a": 0.5, "b": 0.1, "c": 0.3}, 0.03)
    assert a == pytest.approx({"a": 1 / 3 + 0.03, "b": 1 / 3 - 0.03, "c": 1 / 3})


def test_the_largest_deviation_moves_by_d_and_none_by_more():
    """Gaps 0, 0, 0.3: mu = 0.1, deviations -0.1, -0.1, 0.2: moves -d/2, -d/2, d.

    Gaps 0, 0, -0.3: deviations 0.1, 0.1, -0.2: moves d/2, d/2, -d; Eq. 3 as printed divides by
    the signed maximum 0.1 and moves d, d, -2d.
    """
    up, down = {"a": 0.0, "b": 0.0, "c": 0.3}, {"a": 0.0, "b": 0.0, "c": -0.3}
    third = 1 / 3
    assert GA().adjusted(THIRDS, up, 0.1) == pytest.approx(
        {"a": third - 0.05, "b": third - 0.05, "c": third + 0.1}
    )
    assert GA().adjusted(THIRDS, down, 0.1) == pytest.approx(
        {"a": third + 0.05, "b": third + 0.05, "c": third - 0.1}
    )
    assert GA(signed=True).adjusted(THIRDS, down, 0.1) == pytest.approx(
        {"a": third + 0.1, "b": third + 0.1, "c": third - 0.2}
    )
    assert GA(signed=True).adjusted(THIRDS, up, 0.1) == GA().adjusted(THIRDS, up, 0.1)


def test_weights_are_clipped_at_zero_and_renormalised():
    """a = (0.9, 0.05, 0.05), d = 0.2, gaps 1, 0, 0.5: a' = 1.1, -0.15 -> 0, 0.05; sum 1.15.

    Capped at 1: 1, 0, 0.05; sum 1.05.
    """
    a, gaps = {"a": 0.9, "b": 0.05, "c": 0.05}, {"a": 1.0, "b": 0.0, "c": 0.5}
    want = {"a": 1.1 / 1.15, "b": 0.0, "c": 0.05 / 1.15}
    assert GA().adjusted(a, gaps, 0.2) == pytest.approx(want)
    capped = {"a": 1 / 1.05, "b": 0.0, "c": 0.05 / 1.05}
    assert GA(capped=True).adjusted(a, gaps, 0.2) == pytest.approx(capped)


def test_without_mu_by_hand():
    """Gaps 0.2, -0.1, 0 over the largest size 0.2: moves d, -d/2, 0 with d = 0.06; sum 1.03."""
    a = GA(centred=False).adjusted(THIRDS, {"a": 0.2, "b": -0.1, "c": 0.0}, 0.06)
    third = 1 / 3
    want = {"a": (third + 0.06) / 1.03, "b": (third - 0.03) / 1.03, "c": third / 1.03}
    assert a == pytest.approx(want)


@pytest.mark.parametrize(
    "gaps", [{}, {"a": 0.7}, {"a": 0.1, "b": 0.1, "c": 0.1}, {"a": 0.0, "b": 0.0}]
)
@pytest.mark.parametrize("signed", [False, True])
def test_equal_gaps_move_nothing(gaps, signed):
    """(0.1 + 0.1 + 0.1) / 3 is not 0.1 in floating point: without a guard d^r falls on everyone."""
    a = {"a": 0.5, "b": 0.3, "c": 0.2}
    assert GA(signed=signed).adjusted(a, gaps, 0.05) == a
    assert sum([0.1, 0.1, 0.1]) / 3 != 0.1


def test_gaps_that_are_all_zero_move_nothing_without_mu_either():
    a = {"a": 0.5, "b": 0.5}
    assert GA(centred=False).adjusted(a, {"a": 0.0, "b": 0.0}, 0.05) == a


def test_nobody_left_keeps_the_weights():
    """Without mu all may be clipped: a = 1/2 each, both gaps -1, d = 0.6."""
    a = {"a": 0.5, "b": 0.5}
    assert GA(centred=False).adjusted(a, {"a": -1.0, "b": -1.0}, 0.6) == a


def test_sites_without_a_gap_keep_their_weight():
    """Of a, b, c, d at 1/4 only a and b have gaps, 0.4 and 0.2: mu is 0.3, not 0.15."""
    quarter = dict.fromkeys("abcd", 0.25)
    a = GA().adjusted(quarter, {"a": 0.4, "b": 0.2}, 0.05)
    assert a == pytest.approx({"a": 0.3, "b": 0.2, "c": 0.25, "d": 0.25})


def test_the_step_decays_by_hand():
    """R = 4, d = 0.08: d^r = 0.08, 0.06, 0.04, 0.02; two rounds' delay adds 0.04."""
    assert [GA(step=0.08).size(r, 4) for r in range(4)] == pytest.approx([0.08, 0.06, 0.04, 0.02])
    assert [GA(step=0.08, decay=False).size(r, 4) for r in range(4)] == pytest.approx([0.08] * 4)
    late = [GA(step=0.08, delay=2).size(r, 4) for r in range(4)]
    assert late == pytest.approx([0.12, 0.1, 0.08, 0.06])


def test_two_rounds_by_hand():
    """Sites a (t = 8) and b (t = -4), loss (w - t)^2, from w = 0; two steps quarter the distance.

    Round 0: a ends at 6, its loss 4; b at -3, its loss 1. No gaps: 1/2 each, w = 1.5.
    Round 1 of R = 4: a's gap is 6.5^2 - 4 = 38.25, b's 5.5^2 - 1 = 29.25; mu = 33.75, deviations
    +-4.5, so a moves by d^1 = 3/4 * 0.2 to 0.65 and b to 0.35. From 1.5, a ends at
    8 - 6.5/4 = 6.375, b at -4 + 5.5/4 = -2.625: w = 0.65 * 6.375 - 0.35 * 2.625 = 3.225.
    """
    done = quadratic.history("ga(step=0.2)", 4)
    assert quadratic.weights(done)[:2] == pytest.approx([1.5, 3.225])
    assert [r.notes for r in done[0].replies] == [{}, {}]
    assert [r.notes["ga"] for r in done[1].replies] == pytest.approx([38.25, 29.25])
    assert done[0].state.trace["ga"] == {"weights": {"a": 0.5, "b": 0.5}, "gaps": {}}
    assert done[1].state.trace["ga"]["weights"] == pytest.approx({"a": 0.65, "b": 0.35})
    assert done[1].state.trace["ga"]["gaps"] == pytest.approx({"a": 38.25, "b": 29.25})
    assert done[1].state.notes["ga"] == done[1].state.trace["ga"]["weights"]


def test_the_gap_is_that_of_the_models_themselves():
    """In eval mode, on the training data: once more from the packets of a run."""
    run = toy.run(GA(), 3)
    done = list(toy.history(run))
    for before, now in pairwise(done):
        for site, own, reply in zip(run.sites, before.replies, now.replies, strict=True):
            sent, mine = (
                evaluate(
                    Evaluation(
                        run.method.predictor(p, run.model), site.train, run.job(site, 0).task
                    )
                )
                for p in (before.state, own)
            )
            assert reply.notes["ga"] == sent["loss"] - mine["loss"]


@pytest.mark.parametrize(
    ("options", "score", "sign", "part"),
    [
        ({"gap": "accuracy"}, "accuracy", -1, "train"),
        ({"on": "val"}, "loss", 1, "val"),
        ({"gap": "accuracy", "on": "val"}, "accuracy", -1, "val"),
    ],
)
def test_other_gaps(options, score, sign, part):
    run = toy.run(GA(**options), 2)
    first, second = toy.history(run)
    for site, own, reply in zip(run.sites, first.replies, second.replies, strict=True):
        data, task = getattr(site, part), run.job(site, 0).task
        sent, mine = (
            evaluate(Evaluation(run.method.predictor(p, run.model), data, task))[score]
            for p in (first.state, own)
        )
        assert reply.notes["ga"] == pytest.approx(sign * (sent - mine))


def test_late_joiners_and_absentees():
    """c joins in round 2: no gap before round 3, 1/3 until then, its share kept out of the merge.

    With two asked a round, a site that was away compares with the last model it trained.
    """
    fed = toy.federation()
    late = replace(fed.sites[2], joins=2)
    run = toy.run(GA(step=0.1), 4, federation=replace(fed, sites=(*fed.sites[:2], late)))
    done = list(toy.history(run))
    assert [set(k.state.trace["ga"]["gaps"]) for k in done] == [
        set(), {"dawn", "noon"}, {"dawn", "noon"}, {"dawn", "noon", "dusk"},
    ]  # fmt: skip
    assert [k.state.notes["ga"]["dusk"] for k in done[:3]] == pytest.approx([1 / 3] * 3)
    shares = done[1].state.trace["weights"]
    say = done[1].state.notes["ga"]
    assert shares == pytest.approx({k: say[k] / (say["dawn"] + say["noon"]) for k in shares})
    away = toy.run(GA(), 6, participation=2)
    seen: set[str] = set()
    for k in toy.history(away):
        here = {r.site for r in k.replies}
        assert set(k.state.trace["ga"]["gaps"]) == here & seen
        seen |= here


def test_those_present_share_evenly_where_none_has_weight():
    run = quadratic.run("ga")
    start = Weights.of(run.model)
    replies = [
        Reply(site=k, model=replace(start, vector=start.vector + u), weight=9.0)
        for k, u in (("a", 1.0), ("b", 3.0))
    ]
    state = State(model=start, notes={"ga": {"a": 0.0, "b": 0.0, "c": 1.0}})
    work = run.method.aggregate(state, replies, run.job(None, 0))
    with pytest.raises(StopIteration) as end:
        next(work)
    assert end.value.value.model.vector.item() == pytest.approx(2.0)


class Heads(FedAvg):
    """A method that predicts with a note, not with its model."""

    reveals = Reveals({"head": "an offset"})

    def init(self, model, sites):
        return State(model=Weights.of(model), notes={"head": 5.0})

    def broadcast(self, state, round):
        return Inbox(round=round, model=state.model, notes=state.notes)

    def local_update(self, inbox, job, memory):
        yield from ()
        reply = Reply(site=job.name, model=inbox.model, weight=7.0).noting("head", 2.0)
        return reply, {**memory, "mine": 1.0}

    def aggregate(self, state, replies, job):
        yield from ()
        return state.tracing("says", [r.weight for r in replies])

    def predictor(self, packet, model):
        offset = packet.notes["head"]

        class Offset(nn.Module):
            def forward(self, x):
                return 0 * x + offset

        return Offset()


def test_it_judges_what_the_inner_method_predicts_with():
    """Inbox and reply, heads included, as COPA has them; its notes and trace survive.

    What was sent says 5, a site's own 2. a (t = 8): 3^2 - 6^2 = -27; b (t = -4): 9^2 - 6^2 = 45.
    mu = 9, deviations -36 and 36: d = 0.1 moves 1/2 to 0.4 and 0.6.
    """
    plain = quadratic.run("fedavg")
    run = replace(plain, method=GA(Heads(), step=0.1, decay=False))
    _, done = toy.history(run)
    assert [r.notes for r in done.replies] == [
        {"head": 2.0, "ga": -27.0},
        {"head": 2.0, "ga": 45.0},
    ]
    assert done.state.trace["says"] == pytest.approx([0.4, 0.6])
    assert done.state.notes == {"head": 5.0, "ga": pytest.approx({"a": 0.4, "b": 0.6})}


def test_ppdg_is_weighed_by_a():
    done = toy.final(compose("ga+ppdg"), 3, federation=toy.at_odds())
    say = done.state.trace["ga"]["weights"]
    assert len(set(say.values())) == 3
    assert done.state.trace["weights"] == pytest.approx(say)


def test_the_official_preset():
    ga = compose("ga:official")
    assert isinstance(ga, GA)
    assert (ga.gap, ga.on, ga.centred, ga.capped) == ("accuracy", "val", False, True)
    assert ga.size(1, 40) == pytest.approx(0.2 / 3 * 1.025)


def test_only_a_number_more_is_revealed():
    reveals = compose("ga+ppdg").reveals
    assert set(reveals.notes) == {"ga"}
    assert reveals.server_sees == "gram"
    assert compose("ga").reveals.server_sees == "numbers"


def test_refusals():
    with pytest.raises(ConfigError, match="both decide how much say each site has"):
        compose("ga+arfl")
    with pytest.raises(ConfigError, match="gap of ga 'auc'"):
        compose("ga(gap='auc')")
    with pytest.raises(ConfigError, match="step must not be negative"):
        compose("ga(step=-0.1)")


def test_validation_gaps_need_validation_data():
    with pytest.raises(SiteFailure, match="dawn has no validation data"):
        toy.final(compose("ga(on='val')"), federation=toy.federation(share=0.0))


def test_accuracy_gaps_need_accuracy():
    with pytest.raises(SiteFailure, match="the task has loss, pearson_r; take gap='loss'"):
        quadratic.history("ga(gap='accuracy')")


def test_weights_are_finite_numbers_that_sum_to_one():
    for done in toy.history(toy.run(GA(step=0.5), 6)):
        say = torch.tensor(list(done.state.notes["ga"].values()))
        assert say.min() >= 0
        assert say.sum() == pytest.approx(1.0)


def test_goes_around_what_it_judges():
    with pytest.raises(ConfigError, match="GA goes around FedProx"):
        compose("fedprox+ga")
