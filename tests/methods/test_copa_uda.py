"""COPA with unlabelled data of the target: Algorithm 2."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call

from feddg.catalogue import compose
from feddg.engines.inprocess import InProcess
from feddg.errors import ConfigError
from feddg.methods.copa_uda import COPAUDA, TARGET
from feddg.methods.shot import extractor
from feddg.packets import State
from feddg.parts.heads import head_layout
from feddg.parts.votes import agreement_weights, agreements, pseudo_labels
from feddg.training import forward
from feddg.weights import Layout, Weights, load
from tests import toy

LOW = "copa-uda(threshold=0.4)"


class Heard(InProcess):
    """Keeps what the sites are sent and what they reply."""

    def exchange(self, posts):
        answers = super().exchange(posts)
        self.posts, self.answers = [*getattr(self, "posts", []), *posts], answers
        return answers


def probabilities(run, shared, heads, x):
    """The mean softmax of heads on an extractor, head by head."""
    first = Weights.of(run.model).select(lambda k: k.startswith("head."))
    whole = shared.joined(first, Layout.of(run.model))
    z = extractor(whole, run.model).eval()(x)
    at, head = head_layout(run.model), run.model.get_submodule("head")
    found = []
    for vector in heads:
        values = {k.removeprefix("head."): v for k, v in at.views(vector).items()}
        found.append(functional_call(head, values, (z,)).softmax(1))
    return torch.stack(found).mean(0)


@pytest.mark.parametrize("counted", ["all", "sure"])
def test_reference_weights_of_a_round(counted):
    """Eq. 7 with each site's new head and the others' as sent, then Eq. 8, then Eq. 6."""
    spec = f"copa-uda(threshold=0.45, epochs=0, branch='none', counted='{counted}')"
    run = toy.run(compose(spec), 4)
    *_, before, last = toy.history(run)
    sent = before.state.notes["heads"]
    x = toy.at_server(run).x
    found = []
    for reply in last.replies:
        heads = {**sent, reply.site: reply.notes["heads"][reply.site]}
        found.append(probabilities(run, reply.model, heads.values(), x))
    p = torch.stack(found)
    label, confidence = pseudo_labels(p, "mean")
    heard = confidence > (0.45 if counted == "sure" else 0)
    weights = agreement_weights(agreements(p, label, heard))
    assert len(set(weights)) > 1
    named = dict(zip(run.names, weights, strict=True))
    assert last.state.trace["weights"] == pytest.approx(named)
    mean = sum(w * r.model.vector for w, r in zip(weights, last.replies, strict=True))
    torch.testing.assert_close(last.state.model.vector, mean)
    assert last.state.trace["labelled"] == (confidence > 0.45).double().mean().item()


def test_reference_tuning():
    """L_t, one step on all images: CE(C_t F_t(x)) + Σ_j CE(C_j F_t(x)), A being the identity.

    C_t begins as the head that all began with, and the C_j are those that the sites have sent.
    """
    spec = "copa-uda(threshold=0.0, agreement=False, branch='cofc-plain', epochs={})"
    recipe = toy.steps(toy.RECIPE, batch_size=64, momentum=0.0)
    run = toy.run(compose(spec.format(1)), 1, recipe=recipe)
    first = run.method.init(run.model, run.names).notes["head"]
    merged = toy.final(compose(spec.format(0)), 1, recipe=recipe)
    x, at = toy.at_server(run).x, head_layout(run.model)
    p = [
        probabilities(run, r.model, [r.notes["heads"][r.site], first, first], x)
        for r in merged.replies
    ]
    label, _ = pseudo_labels(torch.stack(p), "mean")

    layout = Layout.of(run.model)
    net = load(run.model, merged.state.model.joined(Weights(first, at), layout))
    logits, taps = forward(net, {}, x, ("head:in",), training=True)
    loss, head = F.cross_entropy(logits, label), run.model.get_submodule("head")
    for vector in merged.state.notes["heads"].values():
        values = {k.removeprefix("head."): v for k, v in at.views(vector).items()}
        loss = loss + F.cross_entropy(functional_call(head, values, (taps["head:in"],)), label)
    slopes = torch.autograd.grad(loss, list(net.parameters()))
    expected = {
        k: v - recipe.lr * g for (k, v), g in zip(net.named_parameters(), slopes, strict=True)
    }

    [done] = toy.history(run)
    found = {**done.state.model.views(), **at.views(done.state.notes["heads"][TARGET])}
    for k, v in expected.items():
        torch.testing.assert_close(found[k], v)


@pytest.mark.parametrize("early", [False, True])
def test_the_targets_head_is_frozen_at_the_sites_after_its_first_tuning(early):
    run, engine = toy.run(compose(f"copa-uda(threshold=0.4, from_start={early})"), 3), Heard()
    done = list(toy.history(run, engine))
    assert all(k.state.trace["labelled"] > 0 for k in done)
    sent = [post.inbox.notes["heads"] for post in engine.posts]
    assert [TARGET in heads for heads in sent] == [early, True, True]
    for before, heads in zip(done, sent[1:], strict=False):
        assert torch.equal(before.state.notes["heads"][TARGET], heads[TARGET])
    assert all(set(r.notes["heads"]) == {r.site} for k in done for r in k.replies)
    assert not torch.equal(sent[1][TARGET], sent[2][TARGET])  # the server goes on tuning it


def test_without_agreement_all_have_the_same_say():
    done = toy.final(compose("copa-uda(threshold=0.4, agreement=False)"), 2)
    assert done.state.trace["labelled"] > 0
    assert set(done.state.trace["weights"].values()) == {1 / 3}


def test_without_labels_there_is_no_targets_head():
    done = toy.final(compose("copa-uda(threshold=1.1, counted='sure')"), 2)
    assert TARGET not in done.state.notes["heads"]
    assert done.state.trace["labelled"] == 0
    assert set(done.state.trace["weights"].values()) == {1 / 3}


def test_the_source_heads_stand_still_while_the_server_tunes():
    done = toy.final(compose(LOW), 1)
    for reply in done.replies:
        own = reply.notes["heads"][reply.site]
        assert torch.equal(done.state.notes["heads"][reply.site], own)


def test_all_trained_heads_vote():
    run = toy.run(compose(LOW), 2)
    *_, done = toy.history(run)
    x = toy.images(3, 5).x
    heads = done.state.notes["heads"]
    assert set(heads) == {*run.names, TARGET}
    found = run.method.predictor(done.state, run.model).eval()(x)
    expected = probabilities(run, done.state.model, heads.values(), x)
    torch.testing.assert_close(found.exp(), expected)
    early = replace(run, method=compose("copa-uda(threshold=1.0, from_start=True)"))
    *_, kept = toy.history(early)  # an untrained C_t has no vote
    found = run.method.predictor(kept.state, run.model).eval()(x)
    expected = probabilities(
        run, kept.state.model, [kept.state.notes["heads"][k] for k in run.names], x
    )
    torch.testing.assert_close(found.exp(), expected)


def test_states_know_what_a_predictor_needs():
    run = toy.run(compose(LOW), 1)
    [done] = toy.history(run)
    kept = {k: v for k, v in done.state.notes.items() if k in COPAUDA.deploys}
    bare = State(model=done.state.model, notes=kept)
    x = toy.images(3, 5).x
    a, b = (run.method.predictor(s, run.model).eval()(x) for s in (done.state, bare))
    assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("labels='median'", "did you mean 'mean'"),
        ("branch='consistency'", "frozen in every round"),
        ("iterate=False", "frozen in every round"),
        ("alpha=(1.0, 2.0)", "agreement=False"),
        ("weights='size'", "agreement=False"),
        ("branch='augmented', target_head=False", "take another branch"),
        ("threshold=-1.0", "threshold"),
        ("epochs=-1", "epochs"),
    ],
)
def test_nonsense_is_refused(options, word):
    with pytest.raises(ConfigError, match=word):
        compose(f"copa-uda({options})")


def test_a_site_cannot_have_the_targets_name():
    fed = toy.federation()
    sites = (replace(fed.sites[0], name=TARGET), *fed.sites[1:])
    with pytest.raises(ConfigError, match="cannot be called 'target'"):
        toy.final(compose("copa-uda"), 1, federation=replace(fed, sites=sites))


def test_two_masters_of_the_weights_are_refused():
    with pytest.raises(ConfigError, match="how much say"):
        compose("ga+copa-uda")
