"""Heart Disease and the scaling by sums that it shares with the CSV loader."""

import pytest
import torch

from feddg.data import heart_disease, scaling
from feddg.data.domain import (
    Collection,
    Domain,
    Examples,
    federation,
    leave_one_domain_out,
    nested_sources,
)
from feddg.data.transforms import prepared
from feddg.errors import ConfigError, DataError
from feddg.seeds import generator
from feddg.tasks import Classification

NAN = float("nan")
NAMES = heart_disease.HOSPITALS


def test_four_hospitals_as_published():
    data = heart_disease.load()
    assert data.names == NAMES
    assert [len(d.examples) for d in data.domains] == [303, 294, 123, 200]
    assert [int(d.examples.y.sum()) for d in data.domains] == [139, 106, 115, 149]
    assert all(d.examples.x.shape[1] == len(heart_disease.COLUMNS) == 26 for d in data.domains)
    assert data.task == Classification(("healthy", "disease"), metric="balanced_accuracy")


def test_parse_by_hand():
    """Pressure 0 and cholesterol 0 are missing; a 0 elsewhere is a value; > 0 is disease."""
    text = "63,1,4,0,0,0,1,?,1,-.5,NaN,,3,4\n50,0,1,120,200,1,0,150,0,0,1,0,7,0\n"
    parsed = heart_disease.parse(text, "x.data")
    expected = [63, 1, 4, NAN, NAN, 0, 1, NAN, 1, -0.5, NAN, NAN, 3]
    assert str(parsed.x[0, :13].tolist()) == str([float(v) for v in expected])
    assert parsed.x[0, 13:].tolist() == [0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 0]
    assert not parsed.x[1, 13:].any()
    assert parsed.y.tolist() == [1, 0]
    with pytest.raises(DataError, match=r"x\.data, row 1: 3 columns where 14"):
        heart_disease.parse("1,2,3\n", "x.data")


def test_switzerland_never_measured_cholesterol():
    column = heart_disease.COLUMNS.index("cholesterol_missing")
    assert heart_disease.load()["switzerland"].examples.x[:, column].all()


@pytest.mark.parametrize("target", NAMES)
def test_prepared_sources_are_standardised_and_finite(target):
    """Pooled over the sources, the known values of every column have mean 0 and std 1."""
    data = heart_disease.load(target=target)
    raw = torch.cat([d.examples.x for d in data.domains if d.name != target])
    x = prepared(raw.double(), data.prepare)
    for column in range(13):
        known = x[:, column][~raw[:, column].isnan()]
        assert known.mean().item() == pytest.approx(0, abs=1e-6)
        assert known.std(correction=0).item() == pytest.approx(1, abs=1e-6)
    assert (x[:, :13][raw[:, :13].isnan()] == 0).all()  # the mean, standardised
    assert prepared(data[target].examples.x, data.prepare).isfinite().all()


def test_an_indicator_that_never_varies_becomes_0():
    """Sources never miss an age; a target that does must not meet an untrained weight."""
    data = heart_disease.load(target="va")
    column = heart_disease.COLUMNS.index("age_missing")
    row = torch.ones(1, 26)
    assert prepared(row, data.prepare)[0, column] == 0
    assert prepared(row, data.prepare)[0, heart_disease.COLUMNS.index("thal_missing")] == 1


def test_without_a_target_all_hospitals_count():
    everyone = heart_disease.load().prepare
    assert everyone == heart_disease.load(sources=NAMES).prepare
    assert everyone != heart_disease.load(target="va").prepare
    nested = heart_disease.load(target="va", sources=["cleveland"]).prepare
    assert nested == heart_disease.load(target="hungarian", sources=["cleveland"]).prepare


def domains(**tables):
    return tuple(
        Domain(name, Examples(scaling.with_indicators(torch.tensor(x)), torch.zeros(len(x))))
        for name, x in tables.items()
    )


def test_sums_by_hand():
    """Known values 1, 3 | 5: n = 3, Σ = 9, Σ² = 35; mean 3, std √(35/3 − 9) = √(8/3)."""
    a, b = (scaling.Sums.of(torch.tensor(v)) for v in ([[1.0], [3.0], [NAN]], [[5.0]]))
    total = a + b
    assert (total.rows, total.count.item(), total.total.item()) == (4, 3, 9)
    assert total.squares.item() == 35
    assert total.mean.item() == 3
    assert total.std.item() == pytest.approx((8 / 3) ** 0.5)


def test_sums_of_sites_are_the_sums_of_the_pool():
    x = torch.randn(60, 4, generator=generator("x")).double()
    whole, parts = scaling.Sums.of(x), scaling.Sums.of(x[:11]) + scaling.Sums.of(x[11:])
    assert torch.allclose(whole.mean, parts.mean)
    assert torch.allclose(whole.std, x.std(0, correction=0))


@pytest.mark.parametrize("value", [0.1, 1e8 / 3, -7.0])
def test_a_constant_column_has_std_0_and_a_never_seen_one_too(value):
    sums = scaling.Sums.of(torch.tensor([[value, NAN]] * 7))
    assert sums.std.tolist() == [0, 0]
    assert sums.mean[1] == 0


def test_the_target_tells_nothing_under_sources_and_something_under_site():
    """Effect: other values at the target leave `sources` as it was, but change `site`."""
    sites = {"a": [[1.0], [2.0]], "b": [[3.0], [NAN]]}
    one = domains(**sites, t=[[5.0], [6.0]])
    other = domains(**sites, t=[[500.0], [NAN]])
    made = [scaling.scaled(d, "sources", "t", None, indicators=True) for d in (one, other)]
    assert made[0][1] == made[1][1]
    moved = [scaling.scaled(d, "sources", "a", None, indicators=True)[1] for d in (one, other)]
    assert moved[0] != moved[1]
    own = [scaling.scaled(d, "site", "t", None, indicators=True)[0][2] for d in (one, other)]
    assert not torch.equal(own[0].examples.x, own[1].examples.x)


def test_site_scaling_by_hand():
    """Site a: 1, 3 → mean 2, std 1 → −1, 1; the gap is 0 with its indicator 1."""
    done, prepare, seen = scaling.scaled(
        domains(a=[[1.0], [3.0], [NAN]], b=[[9.0], [9.0]]), "site", None, None, indicators=True
    )
    assert not prepare
    assert not seen
    assert done[0].examples.x.tolist() == [[-1, 0], [1, 0], [0, 1]]
    assert not done[1].examples.x.any()  # constant columns


def test_no_scaling_fills_with_the_sources_mean():
    done, prepare, seen = scaling.scaled(
        domains(a=[[1.0], [3.0]], t=[[NAN], [70.0]]), "none", "t", None, indicators=True
    )
    assert seen == ("a",)
    assert prepared(done[1].examples.x, prepare).tolist() == [[2, 1], [70, 0]]


def test_only_training_rows_count_where_splits_are_official():
    domain = domains(a=[[1.0], [3.0], [800.0]])[0]
    split = Domain("a", domain.examples, {"train": torch.tensor([0, 1]), "test": torch.tensor([2])})
    _, prepare, _ = scaling.scaled((split,), "sources", None, None, indicators=True)
    assert prepare[0].describe()["fill"] == [2, 0]


def test_what_is_held_out_must_not_have_shaped_the_scaling():
    """Opened without a target, every hospital's sums are in; with one, it can be held out."""
    everyone = heart_disease.load()
    assert everyone.scaled_on == NAMES
    with pytest.raises(DataError, match=r"statistics of va are in .* with target='va'"):
        leave_one_domain_out(everyone, "va")
    with pytest.raises(DataError, match=r"statistics of va, hungarian .* as sources="):
        federation(everyone, ["cleveland"], ["va"], ["hungarian"])
    assert len(federation(everyone, NAMES, []).sites) == 4
    own = heart_disease.load(target="va")
    assert own.scaled_on == NAMES[:3]
    assert len(leave_one_domain_out(own, "va").sites) == 3
    assert len(nested_sources(own, NAMES, "va")) == 3
    with pytest.raises(DataError, match="statistics of hungarian"):
        leave_one_domain_out(own, "hungarian")
    assert leave_one_domain_out(heart_disease.load("site"), "va").collection.scaled_on == ()


def test_protocols_say_what_was_seen():
    assert heart_disease.load().protocol == "scaled by sources"
    assert "target's unlabelled" in heart_disease.load("site").protocol
    assert not heart_disease.load("site").prepare


def test_wrong_choices():
    with pytest.raises(ConfigError, match="did you mean 'sources'"):
        heart_disease.load("source")
    with pytest.raises(ConfigError, match="did you mean 'hungarian'"):
        heart_disease.load(target="hungary")
    with pytest.raises(DataError, match="is the target and a source"):
        heart_disease.load(target="va", sources=["va", "cleveland"])
    with pytest.raises(DataError, match="no domain besides the target"):
        scaling.scaled(domains(a=[[1.0]]), "sources", "a", None, indicators=True)


def test_leave_one_out_with_one_domain_is_an_error():
    alone = Collection("tiny", domains(a=[[1.0]]), heart_disease.TASK)
    with pytest.raises(DataError, match=r"one domain only \(a\)"):
        leave_one_domain_out(alone, "a")


def test_a_linear_model_learns_the_unseen_hospital():
    """Effect: 200 full-batch steps beat chance by far on Hungary, which took no part."""
    data = heart_disease.load(target="hungarian")
    fed = leave_one_domain_out(data, "hungarian")
    x = prepared(torch.cat([s.train.x for s in fed.sites]), data.prepare)
    y = torch.cat([s.train.y for s in fed.sites])
    w = torch.zeros(26, 2, requires_grad=True)
    for _ in range(200):
        (slope,) = torch.autograd.grad(data.task.loss(x @ w, y), w)
        w = (w - 0.3 * slope).detach().requires_grad_()
    seen = fed.targets[0].examples
    scores = data.task.scores(prepared(seen.x, data.prepare) @ w.detach(), seen.y)
    assert scores["balanced_accuracy"] > 0.7
    assert scores["auc"] > 0.8
