from dataclasses import replace

import pytest
import torch
from torch import nn

from feddg.catalogue import compose
from feddg.data.domain import Collection, Domain, Examples, leave_one_domain_out
from feddg.data.transforms import Scale
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import Run
from feddg.errors import ConfigError
from feddg.methods.copa import COPA
from feddg.models import build
from feddg.models.norms import HBIN
from feddg.packets import Inbox, State
from feddg.parts.heads import FrozenHeads, Vote, head_layout
from feddg.recipe import Recipe
from feddg.tasks import Classification
from feddg.weights import Layout, Weights, load
from tests import toy
from tests.methods import stacked
from tests.parts.test_heads import Line, sigmoid

PLAIN = "norm='none', branch='none'"
STEP = Recipe(steps=1, lr=0.1, batch_size=10**6)


def tables(values, labels, prepare=(), dtype=torch.float32) -> Collection:
    domains = tuple(
        Domain(name, Examples(torch.tensor(v, dtype=dtype), torch.tensor(t)))
        for (name, v), t in zip(values.items(), labels, strict=True)
    )
    return Collection("lines", domains, Classification(("a", "b")), prepare)


def test_reference_one_round_by_hand():
    """Two sites, one step each of rate 0.1; F and C = (c, d) start at 1 and (1, 0).

    Site a has x = 1 of class a, b has x = 2 of class b. Round 0's frozen head is the other's
    initial one, equal to one's own, so Eq. 5 is twice the CE for F and once for C.
    a: CE = log(1 + e^-w(c-d)), slope by the margin m = w (c - d) x is -s(-1); dw = 2 * -s(-1),
    dc = -s(-1), dd = s(-1).  b: the margin is 2, slope s(2); dw = 2 * 2 s(2), dc = 2 s(2).
    F is the mean (Eq. 6), whatever the sites' sizes; C stays apart.
    """
    lines = tables({"a": [[1.0]], "b": [[2.0]], "t": [[1.0]]}, [[0], [1], [0]])
    run = Run(
        compose("copa(norm='none')"), Line(), leave_one_domain_out(lines, "t"), STEP, rounds=1
    )
    [done] = toy.history(run)
    sa, sb = sigmoid(-1.0), sigmoid(2.0)
    w = (1 + 0.1 * 2 * sa + 1 - 0.1 * 4 * sb) / 2
    torch.testing.assert_close(done.state.model.vector, torch.tensor([w]))
    heads = done.state.notes["heads"]
    torch.testing.assert_close(heads["a"], torch.tensor([1 + 0.1 * sa, -0.1 * sa]))
    torch.testing.assert_close(heads["b"], torch.tensor([1 - 0.2 * sb, 0.2 * sb]))
    # The prediction: log of the mean of both heads' softmax on w x
    p = [torch.softmax(w * 3.0 * heads[k], 0) for k in "ab"]
    predictor = run.method.predictor(done.state, run.model)
    torch.testing.assert_close(predictor(torch.tensor([[3.0]]))[0], ((p[0] + p[1]) / 2).log())


@pytest.mark.parametrize(
    ("options", "shares"),
    [
        ("", [1 / 3, 1 / 3, 1 / 3]),
        ("weights='size'", [48 / 192, 64 / 192, 80 / 192]),
        ("weights='size', alpha=(1, 1, 2)", [0.25, 0.25, 0.5]),
    ],
)
def test_reference_equation_6(options, shares):
    run = toy.run(compose(f"copa({options})"), 1, federation=toy.federation(share=0.0))
    [done] = toy.history(run)
    expected = sum(a * r.model.vector for a, r in zip(shares, done.replies, strict=True))
    torch.testing.assert_close(done.state.model.vector, expected)


def test_noise_is_white_and_spares_the_statistics():
    quiet, noisy = (toy.final(compose(f"copa(noise={s})"), 1).state.model for s in (0.0, 0.1))
    gap = noisy.parameters - quiet.parameters
    assert gap.std().item() == pytest.approx(0.1, rel=0.1)
    assert gap.mean().abs().item() < 0.02
    assert torch.equal(noisy.buffers, quiet.buffers)


def test_identity_one_site_without_cofc_is_plain_training_with_the_same_normalisation():
    fed = toy.balanced(1)
    for norm in ("hbin", "in"):
        ours = toy.run(compose(f"copa(norm='{norm}', branch='none')"), federation=fed)
        plain = toy.run(compose("fedavg"), federation=fed)
        plain = replace(plain, model=ours.model)
        *_, a = toy.history(ours)
        *_, b = toy.history(plain)
        shared = b.state.model.select(lambda k: not k.startswith("head."))
        # Not to the bit: the two vectors start elsewhere in memory, where kernels differ.
        torch.testing.assert_close(a.state.model.vector, shared.vector, atol=1e-6, rtol=1e-5)
        x = toy.images(3, 20).x
        one = ours.method.predictor(a.state, ours.model).eval()(x)
        other = plain.method.predictor(b.state, plain.model).eval()(x).log_softmax(1)
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_heads_stay_apart_and_travel_as_notes():
    done = toy.final(compose("copa"))
    assert not any(k.startswith("head") for k in done.state.model.layout.names)
    heads = done.state.notes["heads"]
    assert set(heads) == {"dawn", "noon", "dusk"}
    assert not torch.allclose(heads["dawn"], heads["noon"], atol=1e-3)
    for reply in done.replies:
        assert set(reply.notes["heads"]) == {reply.site}
        assert torch.equal(reply.notes["heads"][reply.site], heads[reply.site])


def test_consistency_averages_every_copy_of_a_head():
    """As Fig. 2 has it: all learned classifiers are aggregated, by the sites' say."""
    done = toy.final(compose("copa(branch='consistency')"), 1)
    copies = [r.notes["heads"]["dawn"] for r in done.replies]
    assert len(copies) == 3
    assert not torch.equal(copies[0], copies[1])
    torch.testing.assert_close(done.state.notes["heads"]["dawn"], torch.stack(copies).mean(0))


def test_a_reply_predicts_with_its_own_head():
    run = toy.run(compose("copa"), 1)
    [done] = toy.history(run)
    first, x = done.replies[0], toy.images(3, 9).x
    whole = first.model.joined(
        Weights(first.notes["heads"]["dawn"], head_layout(run.model)), Layout.of(run.model)
    )
    expected = load(run.model, whole).eval()(x).log_softmax(1)
    torch.testing.assert_close(run.method.predictor(first, run.model).eval()(x), expected)


def test_an_untrained_head_has_no_vote():
    """A late joiner's head is the initial one until it has trained."""
    fed = toy.federation()
    late = replace(fed.sites[2], joins=5)
    run = toy.run(compose("copa"), 2, federation=replace(fed, sites=(*fed.sites[:2], late)))
    *_, done = toy.history(run)
    notes = done.state.notes
    assert torch.equal(notes["heads"]["dusk"], notes["head"])
    assert voters(run, done.state) == 2
    start = run.method.init(run.model, run.names)
    assert voters(run, start) == 3


def voters(run: Run, state: State) -> int:
    vote = run.method.predictor(state, run.model).get_submodule("head")
    assert isinstance(vote, Vote)
    return len(vote.heads)


def test_a_stranger_starts_from_the_initial_head():
    run = toy.run(compose("copa(branch='none')"))
    state = run.method.init(run.model, ["somebody", "else"])
    job = run.job(run.sites[0], 0)
    known = run.method.init(run.model, run.names)
    visits = [run.method.local_update(run.method.broadcast(s, 0), job, {}) for s in (state, known)]
    sent = [done[0] for done in InProcess().drive(visits) if not isinstance(done, Exception)]
    one, other = (reply.notes["heads"]["dawn"] for reply in sent)
    assert torch.equal(one, other)


@pytest.mark.parametrize("iterate", [True, False])
def test_without_iteration_no_site_hears_of_another(iterate):
    """What noon holds changes what dawn sends, unless nothing is iterated."""
    fed = toy.federation()
    other = replace(fed.sites[1], train=toy.images(7, 30))
    changed = replace(fed, sites=(fed.sites[0], other, fed.sites[2]))
    a, b = (
        toy.final(compose(f"copa(iterate={iterate})"), 3, federation=f).replies[0]
        for f in (fed, changed)
    )
    assert torch.equal(a.model.vector, b.model.vector) is not iterate
    if not iterate:
        assert torch.equal(a.notes["heads"]["dawn"], b.notes["heads"]["dawn"])


def test_without_iteration_training_goes_on():
    done = list(toy.history(toy.run(compose("copa(iterate=False)"), 3)))
    losses = [r.replies[0].losses["total"] for r in done]
    assert losses[2] < losses[0]
    assert not torch.equal(done[1].replies[0].model.vector, done[2].replies[0].model.vector)


@pytest.mark.parametrize("norm", ["bn", "in", "sn", "ibn-a", "ibn-b"])
def test_effect_of_every_normalisation(norm):
    x, found = toy.images(3, 30).x, []
    for spec in ("copa", f"copa(norm='{norm}')"):
        run = toy.run(compose(spec), 1)
        [done] = toy.history(run)
        found.append(run.method.predictor(done.state, run.model).eval()(x))
    assert not torch.allclose(found[0], found[1], atol=1e-3)


@pytest.mark.parametrize("norm", ["hbin", "sn", "ibn-b"])
def test_networks_without_batch_norm_get_the_layer_inserted(norm):
    run = toy.run(compose(f"copa(norm='{norm}')"), 6, norm=False)
    *_, done = toy.history(run)
    assert toy.accuracy(run, done) > 0.8


def test_a_run_has_the_methods_architecture():
    model = build("tests.toy:Net")
    run = Run(compose("fedprox+copa"), model, toy.federation(), toy.RECIPE, rounds=1)
    assert isinstance(run.model.get_submodule("early.1"), HBIN)
    assert isinstance(model.get_submodule("early.1"), nn.BatchNorm2d)
    assert replace(run, rounds=2).model is run.model
    assert Run(compose("fedprox"), model, toy.federation(), toy.RECIPE, rounds=1).model is model


def heart() -> Run:
    rng = torch.Generator().manual_seed(0)
    x = {k: torch.randn(30, 4, generator=rng).tolist() for k in "abct"}
    lines = tables(x, [[int(row[0] > 0) for row in v] for v in x.values()])
    model = build("mlp", inputs=4, outputs=2)
    return Run(
        compose("copa(norm='none')"), model, leave_one_domain_out(lines, "t"),
        Recipe(epochs=5, lr=0.1), rounds=4,
    )  # fmt: skip


def test_tables_have_cofc_without_augmentation():
    run = heart()
    *_, done = toy.history(run)
    assert done.replies[0].losses["FrozenHeads"] > 0
    plain = replace(run, method=compose("copa(norm='none', branch='cofc-plain')"))
    *_, same = toy.history(plain)
    assert torch.equal(done.state.model.vector, same.state.model.vector)
    off = replace(run, method=compose(f"copa({PLAIN})"))
    *_, other = toy.history(off)
    assert not torch.allclose(done.state.model.vector, other.state.model.vector)


def test_what_a_table_cannot_have_is_refused():
    with pytest.raises(ConfigError, match=r"norm='none' leaves it"):
        replace(heart(), method=compose("copa"))
    run = replace(heart(), method=compose("copa(norm='none', branch='augmented')"), min_sites=1)
    with pytest.raises(Exception, match="needs images"):
        list(toy.history(run))


def test_pixels_are_augmented_between_black_and_white():
    """uint8 images: the range comes through the collection's `prepare`."""
    collection = toy.collection()
    pixels = tuple(
        replace(d, examples=Examples((d.examples.x * 40 + 60).clamp(0, 255).byte(), d.examples.y))
        for d in collection.domains
    )
    bytes_ = replace(collection, domains=pixels, prepare=(Scale((0.5,), (0.25,)),))
    run = toy.run(compose("copa"), 1, federation=leave_one_domain_out(bytes_, "night"))
    heard = stacked.Listening()
    list(toy.history(run, heard))
    [term] = [p for p in heard.heard[0].job.parts if isinstance(p, FrozenHeads)]
    assert term.branch.augment is not None
    assert (term.branch.augment.low, term.branch.augment.high) == ((-2.0,), (2.0,))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("branch='cof'", "did you mean 'cofc'"),
        ("norm='hbni'", "did you mean 'hbin'"),
        ("vote='most'", "unknown vote of copa"),
        ("noise=-1.0", "negative"),
        ("alpha=(1, 0)", "positive"),
        ("chance=2.0", "probability"),
        ("operations=-1", "negative"),
    ],
)
def test_nonsense_is_refused(options, word):
    with pytest.raises(ConfigError, match=word):
        compose(f"copa({options})")


def test_alpha_for_other_sites_is_refused():
    with pytest.raises(ConfigError, match="2 numbers for 3 sites"):
        list(toy.history(toy.run(compose("copa(alpha=(1, 2))"))))


def test_two_masters_of_the_classifier_are_refused():
    with pytest.raises(ConfigError, match="classifiers"):
        compose("fedcsa+copa")


@pytest.mark.parametrize("other", ["ga+copa", "ppdg+copa", "csac+copa", "copa+scaffold"])
def test_composes(other):
    run = toy.run(compose(other), 8)
    *_, done = toy.history(run)
    assert toy.accuracy(run, done) > 0.8


def test_ga_has_the_last_word_on_weights():
    weights = toy.final(compose("ga(step=0.3)+copa"), 3).state.trace["weights"]
    assert len({round(w, 6) for w in weights.values()}) > 1


@pytest.mark.parametrize(
    "options",
    ["", "branch='consistency', norm='sn'", "branch='augmented', norm='ibn-b'", "cutout=4"],
)
def test_many_sites_at_once(options):
    stacked.check(f"copa({options})", atol=1e-4)


def test_states_know_what_a_predictor_needs():
    run = toy.run(compose("copa"), 1)
    [done] = toy.history(run)
    kept = {k: v for k, v in done.state.notes.items() if k in COPA.deploys}
    bare = State(model=done.state.model, notes=kept)
    x = toy.images(3, 5).x
    a, b = (run.method.predictor(s, run.model).eval()(x) for s in (done.state, bare))
    assert torch.equal(a, b)
    assert isinstance(run.method.broadcast(done.state, 1), Inbox)
