import json
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from feddg.catalogue import compose
from feddg.data.domain import Examples
from feddg.engines.inprocess import InProcess
from feddg.errors import ConfigError, SiteFailure
from feddg.local import Job
from feddg.packets import State
from feddg.parts import calibration
from feddg.parts.calibration import acquisition
from feddg.parts.features import Remembered, tap_features
from feddg.parts.matching import attention
from feddg.recipe import Recipe
from feddg.tasks import Classification
from feddg.training import order
from feddg.weights import load
from tests import toy
from tests.methods import stacked
from tests.parts.test_alignment import literal_mmd


def visits(spec, rounds=3, engine=None, **options):
    """The rounds and what every site remembers after them."""
    engine, run = engine or InProcess(), toy.run(compose(spec), rounds, **options)
    return list(toy.history(run, engine)), engine.memories(run)


def test_eq_2_by_hand():
    """Two classes, alpha = 0.1: p = (0.95, 0.05) for class 0.

    Logits (ln 3, 0): -log q = ln 4/3 and ln 4, so the loss is 0.95 ln(4/3) + 0.05 ln 4.
    """
    logits, y = torch.tensor([[3.0, 1.0]]).log(), torch.tensor([0])
    wanted = 0.95 * torch.tensor(4 / 3).log() + 0.05 * torch.tensor(4.0).log()
    torch.testing.assert_close(Classification(("a", "b")).loss(logits, y, 0.1), wanted)


def test_round_0_is_acquisition_and_its_model_stays_as_the_teacher():
    """The first visit is FedAvg's with smoothed labels, bit for bit, for the first epochs."""
    recipe = toy.steps(toy.RECIPE, first_epochs=3, first_label_smoothing=0.1)
    plain = toy.final(compose("fedavg(weights='uniform')"), 1, recipe=recipe).replies
    own = toy.steps(recipe, first_label_smoothing=None)
    [first], memory = visits("csac", 1, recipe=own)
    for a, b in zip(first.replies, plain, strict=True):
        assert torch.equal(a.model.vector, b.model.vector)
        assert a.steps == b.steps
        assert torch.equal(memory[a.site]["csac"]["teacher"], a.model.vector)
        assert not a.notes


@pytest.mark.parametrize(("teacher", "stays"), [("first", True), ("latest", False)])
def test_which_model_teaches(teacher, stays):
    done, memory = visits(f"csac(teacher='{teacher}')")
    wanted = done[0] if stays else done[-1]
    for reply in wanted.replies:
        assert torch.equal(memory[reply.site]["csac"]["teacher"], reply.model.vector)


def test_a_late_joiner_acquires_first():
    """In round 2 it makes the first round's steps with smoothed labels; the others calibrate."""
    fed = toy.federation()
    late = replace(fed.sites[2], joins=2)
    recipe = toy.steps(toy.RECIPE, first_epochs=5)
    options = {"federation": replace(fed, sites=(*fed.sites[:2], late)), "recipe": recipe}
    done, memory = visits("csac", 4, **options)
    *others, joined = done[2].replies
    assert joined.site == late.name
    assert joined.steps == recipe.at(0).length(len(late.train))
    assert set(joined.losses) == {"TaskLoss", "total"}
    assert not joined.notes
    assert all("alignment" in r.losses and r.notes for r in others)
    assert "alignment" in done[3].replies[2].losses
    assert torch.equal(memory[late.name]["csac"]["teacher"], joined.model.vector)
    hard, _ = visits("csac(label_smoothing=0)", 3, **options)
    assert hard[2].replies[2].steps == joined.steps
    assert hard[2].replies[2].losses != joined.losses


def test_a_late_joiners_rate_is_that_of_its_round():
    recipe = Recipe(epochs=2, first_epochs=6, batch_size=10, schedule="cosine", lr=1.0)
    n, job = 40, Job(None, toy.Net(), Classification(("a",)), recipe, 0, rounds=10)
    for r in (0, 4):
        found = acquisition(replace(job, round=r), 0.1)
        assert found.local.label_smoothing == 0.1
        rates = found.recipe.rates(r, 10, n)
        assert len(rates) == 6 * 4
        assert rates[0] == recipe.rates(r, 10, n)[0]
        stepwise = acquisition(replace(job, recipe=replace(recipe, per="step"), round=r), 0.1)
        rates = stepwise.recipe.rates(r, 10, n)
        assert rates == sorted(rates, reverse=True)
        assert len(rates) == 6 * 4
        assert min(rates) >= 0


@pytest.mark.parametrize("cache", ["on", "off"])
@pytest.mark.parametrize(
    ("options", "position", "channel"), [("", True, True), (", position=False", False, True)]
)
def test_eq_11_by_hand_for_one_step(cache, options, position, channel):
    """One step of SGD from the fused model M: M - lr grad(lam Σ alpha_lm MMD(A_l, B_m) + CE).

    Pair by pair, with the projections of the first calibration.
    """
    recipe = toy.steps(toy.RECIPE, steps=1, first_steps=2, momentum=0.0)
    engine = stacked.Listening()
    spec = f"csac(lam=0.7, cache_features='{cache}'{options})"
    done, _ = visits(spec, 2, engine, recipe=recipe, norm=False)
    request = engine.heard[3]  # the first site's second visit
    job, model = request.job, request.job.model
    term = job.parts[-1]
    fused = load(model, done[0].state.model)
    local = load(model, done[0].replies[0].model)
    rows = order(request)[0]
    x, y = job.train.x[rows], job.train.y[rows]

    def maps(net):
        early = net.early(x)
        return early, net.late(early)

    def conv(side, tap, f, stride):
        own = term.project.layout.views(term.projection)
        weight, bias = own[f"{side}:{tap}.weight"], own[f"{side}:{tap}.bias"]
        return F.conv2d(f, weight.permute(0, 3, 1, 2), bias, stride).flatten(2).mT

    a = [
        conv("fused", t, f, s)
        for t, f, s in zip(("early", "late"), maps(fused), (1, 1), strict=True)
    ]
    b = [
        conv("local", t, f, s)
        for t, f, s in zip(("early", "late"), maps(local), (1, 1), strict=True)
    ]
    alpha = attention(torch.stack(a).detach(), torch.stack(b).detach(), position, channel)
    align = sum(
        alpha[i, j] * literal_mmd(u.flatten(1), v.flatten(1), True) / 5  # five kernels' mean
        for i, u in enumerate(a)
        for j, v in enumerate(b)
    )
    loss = 0.7 * align + F.cross_entropy(fused(x), y)
    parameters = dict(fused.named_parameters())
    slopes = torch.autograd.grad(loss, list(parameters.values()))
    wanted = torch.cat(
        [(w - 0.05 * g).flatten() for w, g in zip(parameters.values(), slopes, strict=True)]
    )
    reply = done[1].replies[0]
    torch.testing.assert_close(reply.model.parameters, wanted, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(reply.losses["total"], loss.item(), rtol=1e-4, atol=1e-5)
    assert 0.7 * align.item() == pytest.approx(reply.losses["alignment"], rel=1e-4)


def test_frozen_batch_norm_statistics_teach():
    """L^h is in eval mode: cached or not, its features agree although it has batch norm."""
    a, b = (toy.vector(compose(f"csac(cache_features='{c}')")) for c in ("on", "off"))
    torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_features_are_computed_once_a_teacher(monkeypatch):
    computed = []
    monkeypatch.setattr(calibration, "FEATURES", Remembered())
    monkeypatch.setattr(calibration, "SAMPLE", 2)

    def counted(module, x, *rest):
        computed.append(len(x))
        return tap_features(module, x, *rest)

    monkeypatch.setattr(calibration, "tap_features", counted)
    done, _ = visits("csac", 5)
    assert len(done) == 5
    assert [n for n in computed if n > 2] == [36, 48, 60]  # every example of each site, once


class Doubled:
    """An augmentation without chance: it doubles a batch."""

    at = ""

    def draw(self, rng, n):
        return {}

    def apply(self, value, draw):
        return 2 * value


def doubled():
    fed = toy.federation()
    return replace(fed, collection=replace(fed.collection, augment=(Doubled(),)))


def test_augmented_images_are_shown_to_the_teacher():
    """As if the doubled images were the data: no cached feature of the plain ones is used."""
    fed = toy.federation()

    def twice(site):
        return replace(site, train=Examples(2 * site.train.x, site.train.y))

    plain = replace(fed, sites=tuple(twice(s) for s in fed.sites))
    a = toy.vector(compose("csac(cache_features='off')"), federation=plain)
    b = toy.vector(compose("csac"), federation=doubled())
    torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_changed_inputs_are_shown_to_the_teacher_although_its_features_are_cached():
    """mixed images come from a wrapper inside, of which CSAC knows nothing when it caches."""
    a, b = (toy.vector(compose(f"csac(cache_features='{c}')+am(p=1)")) for c in ("on", "off"))
    torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def test_caching_augmented_images_is_refused():
    with pytest.raises(SiteFailure, match="the images are augmented"):
        toy.final(compose("csac(cache_features='on')"), federation=doubled())


def test_a_budget_bounds_the_cache(monkeypatch):
    monkeypatch.setattr(calibration, "BUDGET", 1000)
    engine = stacked.Listening()
    visits("csac", 2, engine)
    assert not any(r.job.parts[-1].columns for r in engine.heard[3:])


@pytest.mark.parametrize("proj", ["trained", "frozen", "renewed"])
def test_the_life_of_projections(proj):
    engine = stacked.Listening()
    _, memory = visits(f"csac(proj='{proj}')", 3, engine)
    one, other, _, two = (engine.heard[i].job.parts[-1].projection for i in (3, 4, 5, 6))
    assert torch.equal(one, two) == (proj == "frozen")
    assert not torch.equal(one, other)  # every site has its own
    kept = memory[engine.heard[3].job.name].get("learned", {}).get("csac")
    assert (kept is None) == (proj == "frozen")
    if proj == "trained":
        assert (two - one).abs().max() < 0.2 < (other - one).abs().max()  # it went on from there


@pytest.mark.parametrize(
    "options", ["kernels='sum'", "over='fused'", "sides='shared'", "proj='frozen'", "lam=0.3"]
)
def test_every_reading_has_an_effect(options):
    a, b = toy.vector(compose("csac")), toy.vector(compose(f"csac({options})"))
    assert (a - b).abs().max() > 1e-6


def test_one_proj_for_both_sides_is_half_as_large():
    engine = stacked.Listening()
    visits("csac(sides='shared')", 2, engine)
    visits("csac", 2, engine)
    shared, apart = (engine.heard[i].job.parts[-1].projection for i in (3, 9))
    assert 2 * len(shared) == len(apart)


def test_without_cross_entropy_only_acquisition_has_it():
    done, _ = visits("csac(cross_entropy=False)", 2)
    assert set(done[0].replies[0].losses) == {"TaskLoss", "total"}
    assert set(done[1].replies[0].losses) == {"alignment", "total"}


def test_the_record_has_layer_weights_and_projected_variances():
    done, _ = visits("csac", 2)
    first, second = (json.loads(json.dumps(d.state.trace)) for d in done)
    assert list(first["layers"]) == ["early.0", "early.1", "late.0", "dense.1", "head"]
    for row in first["layers"].values():
        assert sum(row.values()) == pytest.approx(1)
    assert "csac" not in first
    spread = second["csac"]["variance"]
    assert set(spread) == {"dawn", "noon", "dusk"}
    assert all(v > 0 for site in spread.values() for v in site.values())


def test_nothing_is_sent_where_nothing_is_aligned():
    assert compose("csac").reveals.notes.keys() == {"csac"}
    assert not compose("csac(alignment='none')").reveals.notes
    done, _ = visits("csac(alignment='none')")
    assert not any(r.notes for d in done for r in d.replies)


def test_logits_need_no_projection():
    engine = stacked.Listening()
    visits("csac:official", 2, engine)
    term = engine.heard[3].job.parts[-1]
    assert term.taps == ("head",)
    assert term.project is None
    assert term.how.estimator == "off-diagonal"


def test_official_features_are_32_channels():
    engine = stacked.Listening()
    visits("csac:official(alignment='cross')", 2, engine)
    assert engine.heard[3].job.parts[-1].project.to == (32, 3, 3)  # 7 x 7 where there are as many


def test_runs_under_vmap():
    stacked.check("csac")
    stacked.check("csac(cache_features='off', proj='frozen', discrepancy='mse')")


def test_what_cannot_be_is_said():
    with pytest.raises(ConfigError, match="unknown alignment of csac 'crss'; did you mean 'cross'"):
        compose("csac(alignment='crss')")
    with pytest.raises(ConfigError, match="no loss left"):
        compose("csac(alignment='none', cross_entropy=False)")
    with pytest.raises(ConfigError, match="both decide how the replies become one model"):
        compose("csac+fedmedian")
    with pytest.raises(SiteFailure, match="unknown layer of Net 'lte'; did you mean 'late'"):
        toy.final(compose("csac(layers=('lte',))"))


@pytest.mark.parametrize("note", [torch.zeros(3), torch.zeros(2, 4), torch.tensor(1.0), {"a": 1.0}])
def test_a_broken_note_is_left_out_of_the_record_and_ends_nothing(note):
    engine, run = InProcess(), toy.run(compose("csac"), 2)
    *_, done = toy.history(run, engine)
    broken, *others = done.replies
    broken = replace(broken, notes={**broken.notes, "csac": note})
    work = run.method.aggregate(done.state, [broken, *others], run.job(None, 1))
    [after] = engine.work([work])
    assert isinstance(after, State)
    assert set(after.trace["csac"]["variance"]) == {r.site for r in others}
