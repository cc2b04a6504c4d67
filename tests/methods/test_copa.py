from copy import deepcopy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from feddg.catalogue import compose
from feddg.data.domain import Collection, Domain, Examples, leave_one_domain_out
from feddg.data.randaugment import RandAugment
from feddg.data.transforms import Scale
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import Run
from feddg.errors import ConfigError
from feddg.heads import Branch, Consistency, FrozenHeads, OwnHead, Vote, assembled, head_layout
from feddg.local import Forward
from feddg.methods.copa import COPA
from feddg.models import Anatomy, build
from feddg.models.norms import HBIN
from feddg.packets import Inbox, Reply, State
from feddg.recipe import Recipe
from feddg.tasks import Classification, Regression
from feddg.training import forward
from feddg.weights import Layout, Weights, load
from tests import toy
from tests.methods import stacked

PLAIN = "norm='none', branch='none'"
STEP = Recipe(steps=1, lr=0.1, batch_size=10**6)


class Line(nn.Module):
    """F(x) = w x and C(z) = (z, 0): one number each, for work by hand."""

    anatomy = Anatomy("head")

    def __init__(self) -> None:
        super().__init__()
        self.extractor = nn.Linear(1, 1, bias=False)
        self.head = nn.Linear(1, 2, bias=False)
        with torch.no_grad():
            self.extractor.weight.fill_(1.0)
            self.head.weight.copy_(torch.tensor([[1.0], [0.0]]))

    def forward(self, x):
        return self.head(self.extractor(x))


def one_pass(module: nn.Module, x, y, task=None, draw=None, learned=None) -> Forward:
    layout = Layout.of(module)
    weights = Weights.of(module)
    theta = {"model": weights.parameters.clone().requires_grad_(), **(learned or {})}
    own = {k: v.clone() for k, v in layout.buffers().views(weights.buffers).items()}
    values = {**layout.parameters().views(theta["model"]), **own}
    logits, taps = forward(module, values, x, ("head:in",), training=True)
    task = task or Classification(("a", "b", "c"))
    return Forward(
        module, task, layout.parameters(), theta, values, x, y, logits, taps, draw=draw or {}
    )


def sigmoid(v: float) -> float:
    return 1 / (1 + torch.tensor(-v).exp().item())


def test_reference_equation_5_by_hand():
    """One example x = 1 of class a, F(x) = w x with w = 1, two frozen heads (1, 0) and (2, 0).

    CE of head (c, 0) is log(1 + e^(-c w)): the sum is log(1 + e^-1) + log(1 + e^-2), and its
    slope in w is -sigmoid(-1) - 2 sigmoid(-2). The own head, and the frozen, get none.
    """
    net, at = Line(), head_layout(Line())
    heads = torch.tensor([[1.0, 0.0], [2.0, 0.0]], requires_grad=True)
    fwd = one_pass(net, torch.ones(1, 1), torch.tensor([0]))
    loss = FrozenHeads(heads.detach(), Branch(at, "head")).loss(fwd)
    expected = torch.tensor([-1.0, -2.0]).exp().log1p().sum()
    torch.testing.assert_close(loss, expected)
    [slope] = torch.autograd.grad(loss, fwd.theta["model"])
    by_hand = -sigmoid(-1.0) - 2 * sigmoid(-2.0)
    torch.testing.assert_close(slope, torch.tensor([by_hand, 0.0, 0.0]), atol=1e-6, rtol=1e-6)


def test_reference_equation_5_on_augmented_images():
    """Value and gradient of Σ_j CE(C'_j F(A(x))) as plain PyTorch has them, batch norm included."""
    net = toy.Net()
    x, y = toy.images(0, 16).x, toy.images(0, 16).y
    augment = RandAugment(p=0.9)
    draw = augment.draw(torch.Generator().manual_seed(5), 16)
    at = head_layout(net)
    heads = torch.randn(2, at.size)
    fwd = one_pass(net, x, y, draw=draw)
    term = FrozenHeads(heads, Branch(at, "head", augment))
    loss = term.loss(fwd)
    [slope] = torch.autograd.grad(loss, fwd.theta["model"])

    twin = deepcopy(net).train()
    z = twin.dense(twin.late(twin.early(augment.apply(x, draw))))
    each = [F.cross_entropy(F.linear(z, h[:48].view(3, 16), h[48:]), y) for h in heads.unbind(0)]
    total = torch.stack(each).sum()
    total.backward()
    torch.testing.assert_close(loss, total)
    for name, value in Layout.of(net).parameters().views(slope).items():
        mine = twin.get_parameter(name).grad
        torch.testing.assert_close(
            value, torch.zeros_like(value) if mine is None else mine, atol=1e-5, rtol=1e-4
        )
    assert not torch.allclose(
        FrozenHeads(heads, Branch(at, "head")).loss(fwd), loss
    )  # effect of A(.)


def test_the_second_pass_moves_running_statistics_only_where_asked():
    net = toy.Net()
    data, at = toy.images(0, 16), head_layout(net)
    augment = RandAugment(p=0.9)
    draw = augment.draw(torch.Generator().manual_seed(5), 16)
    after = {}
    for statistics in (False, True):
        fwd = one_pass(net, data.x, data.y, draw=draw)
        plain = fwd.values["early.1.running_mean"].clone()
        branch = Branch(at, "head", augment, statistics)
        FrozenHeads(torch.randn(2, at.size), branch).loss(fwd)
        after[statistics] = torch.equal(fwd.values["early.1.running_mean"], plain)
    assert after == {False: True, True: False}


def test_reference_own_head_on_augmented_images_trains_it_too():
    """CE of (1, 0) on x = 1: slope -sigmoid(-1) in w, and ∓sigmoid(-1) in the head's rows."""
    net = Line()
    fwd = one_pass(net, torch.ones(1, 1), torch.tensor([0]))
    loss = OwnHead(Branch(head_layout(net), "head")).loss(fwd)
    [slope] = torch.autograd.grad(loss, fwd.theta["model"])
    s = sigmoid(-1.0)
    torch.testing.assert_close(slope, torch.tensor([-s, -s, s]))


def test_reference_consistency_by_hand():
    """Two classes, of which p and q are the first's: the loss is 2 (q - p)^2.

    Own head (1, 0) gives p = sigmoid(1), the expert; the others, (2, 0) and (0, 0), give the
    mean q = (sigmoid(2) + 1/2) / 2. The expert is constant, so that the own head gets no
    gradient; the others do.
    """
    net, at = Line(), head_layout(Line())
    heads = torch.tensor([[2.0, 0.0], [0.0, 0.0]], requires_grad=True)
    fwd = one_pass(net, torch.ones(1, 1), torch.tensor([0]), learned={"heads": heads})
    loss = Consistency(heads.detach(), Branch(at, "head")).loss(fwd)
    p, q = sigmoid(1.0), (sigmoid(2.0) + 0.5) / 2
    torch.testing.assert_close(loss, torch.tensor(2 * (q - p) ** 2))
    w, others = torch.autograd.grad(loss, [fwd.theta["model"], heads])
    assert torch.equal(w[1:], torch.zeros(2))
    assert w[0] != 0
    # dq/dc_j = q_j (1 - q_j) / 2 at z = 1
    q0 = sigmoid(2.0)
    assert others[0, 0].item() == pytest.approx(4 * (q - p) * q0 * (1 - q0) / 2, rel=1e-4)


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
        assert torch.equal(a.state.model.vector, shared.vector)
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


def test_assembled_by_hand():
    """Copies 1 and 4 with say 1 and 2: 3. A single copy is kept to the bit, and so is no copy."""
    old = Weights.of(Line())

    def reply(site, say, **heads):
        heads = {k: torch.tensor([v]) for k, v in heads.items()}
        return Reply(model=old, site=site, weight=say, notes={"heads": heads})

    before = {k: torch.tensor([0.1]) for k in "abc"}
    after = assembled(before, [reply("a", 1.0, a=1.0, b=0.3), reply("b", 2.0, a=4.0)])
    assert {k: v.item() for k, v in after.items()} == {
        "a": pytest.approx(3.0),
        "b": torch.tensor(0.3).item(),
        "c": torch.tensor(0.1).item(),
    }


def test_vote_by_hand():
    """Outputs (0, log 3) and (0, 0): p = (1/4, 3/4) and (1/2, 1/2), mean (3/8, 5/8)."""
    heads = [nn.Linear(1, 2) for _ in range(2)]
    with torch.no_grad():
        for head, value in zip(heads, (3.0, 1.0), strict=True):
            head.weight.zero_()
            head.bias.copy_(torch.tensor([1.0, value]).log())
    z = torch.zeros(1, 1)
    torch.testing.assert_close(Vote(heads)(z).exp(), torch.tensor([[3 / 8, 5 / 8]]))
    mean = torch.tensor([[0.0, torch.tensor(3.0).log() / 2]])
    torch.testing.assert_close(Vote(heads, "logits")(z), mean)


def test_one_output_is_a_value_and_is_averaged():
    """PPDG runs COPA on PovertyMap, a regression."""
    heads = [nn.Linear(1, 1) for _ in range(2)]
    z = torch.randn(5, 1)
    torch.testing.assert_close(Vote(heads)(z), (heads[0](z) + heads[1](z)) / 2)
    at = Layout.of(heads[0])
    net = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))
    net.__dict__["anatomy"] = Anatomy("1")
    layout = head_layout(net)
    fwd = one_pass_regression(net)
    term = FrozenHeads(torch.randn(2, at.size), Branch(layout, "1"))
    assert torch.isfinite(term.loss(fwd))


def one_pass_regression(net: nn.Module) -> Forward:
    layout, weights = Layout.of(net), Weights.of(net)
    theta = {"model": weights.parameters}
    values = layout.parameters().views(theta["model"])
    x, y = torch.randn(4, 2), torch.randn(4)
    logits, taps = forward(net, values, x, ("1:in",), training=True)
    return Forward(net, Regression(), layout, theta, values, x, y, logits, taps)


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
