import numpy as np
import pytest
import torch
from torch import Generator, nn

from feddg.errors import ConfigError
from feddg.merges import Gathered, WeightedMean
from feddg.merges.layerwise import ByLayerDivergence, Distance, distances, weights
from feddg.packets import Reply
from feddg.weights import Weights
from tests import toy


class Two(nn.Module):
    """Two layers of two parameters each: a weight and its bias."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(1, 1)
        self.b = nn.Linear(1, 1)


def gathered(rows, say=None, model=None, old=None):
    start = Weights.of(model or Two())
    start = Weights(torch.zeros_like(start.vector) if old is None else old, start.layout)
    replies = [
        Reply(site=f"s{i}", model=Weights(torch.as_tensor(r), start.layout), weight=w)
        for i, (r, w) in enumerate(zip(rows, say or [1.0] * len(rows), strict=True))
    ]
    return Gathered(start, replies, Generator())


# Around its mean (10, 20) layer a has (3, 4), (-6, -8), (3, 4): L2 distances 5, 10, 5; L1 7, 14, 7.
# Around its mean (1, 2) layer b has (2, 0), (-1, -1), (-1, 1): L2 2, √2, √2; L1 2, 2, 2.
ROWS = [
    [13.0, 24.0, 3.0, 2.0],
    [4.0, 12.0, 0.0, 1.0],
    [13.0, 24.0, 0.0, 3.0],
]


def layers(merge, got):
    table = merge(got).trace["layers"]
    return torch.tensor([[table[k][s] for s in got.sites] for k in table], dtype=torch.float64)


def close(a, b):
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=a.dtype), rtol=0, atol=1e-5)


def test_eq_3_and_4_by_hand():
    """w_a = (5, 10, 5)/20. M_a = mean + ¼(3,4) + ½(-6,-8) + ¼(3,4) = mean - (1.5, 2).

    w_b = (2, √2, √2)/(2+2√2) = (0.4142, 0.2929, 0.2929).
    M_b = mean + 0.4142(2,0) + 0.2929(-2,0) = mean + (0.2426, 0).
    """
    got = gathered(ROWS)
    root = 2**0.5
    total = 2 + 2 * root
    close(
        layers(ByLayerDivergence(), got),
        [[0.25, 0.5, 0.25], [2 / total, root / total, root / total]],
    )
    close(
        ByLayerDivergence()(got).step, [8.5, 18.0, 1 + (4 - 2 * root) / total, 2.0]
    )  # from old = 0


def test_l1_by_hand():
    close(
        layers(ByLayerDivergence(distance="l1"), gathered(ROWS)), [[0.25, 0.5, 0.25], [1 / 3] * 3]
    )


def test_cosine_by_hand():
    """(2,0), (0,2), (1,1): the mean is (1,1), at 45°, 45° and 0°: ½, ½, 0; whatever the lengths."""
    rows = [[2.0, 0.0, 2.0, 0.0], [0.0, 2.0, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0]]
    close(layers(ByLayerDivergence(distance="cosine"), gathered(rows)), [[0.5, 0.5, 0]] * 2)


def test_similarity_by_hand():
    """1/5, 1/10, 1/5 -> 0.4, 0.2, 0.4; who sits on the mean takes all."""
    similar = ByLayerDivergence("similarity")
    close(layers(similar, gathered(ROWS))[0], [0.4, 0.2, 0.4])
    rows = [[1.0, 0.0, 1.0, 0.0], [-1.0, 0.0, -1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    close(layers(similar, gathered(rows)), [[0, 0, 1]] * 2)


def test_a_sites_say_multiplies_its_distance():
    """a = (1, 1, 2)/4 and distances 5, 10, 5 to the *plain* mean: 5, 10, 10 of 25."""
    close(layers(ByLayerDivergence(), gathered(ROWS, [1.0, 1.0, 2.0]))[0], [0.2, 0.4, 0.4])
    close(
        layers(ByLayerDivergence("average"), gathered(ROWS, [1.0, 1.0, 2.0])),
        [[0.25, 0.25, 0.5]] * 2,
    )


def test_per_tensor_weighs_a_bias_by_itself():
    """Layer b's weight lies at 2, -1, -1 and its bias at 0, -1, 1 around the mean."""
    table = ByLayerDivergence(per="tensor")(gathered(ROWS)).trace["layers"]
    assert list(table) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    close(torch.tensor(list(table["b.weight"].values())), [0.5, 0.25, 0.25])
    close(torch.tensor(list(table["b.bias"].values())), [0.0, 0.5, 0.5])


@pytest.mark.parametrize("distance", ["l2", "l1"])
def test_equal_distances_are_the_mean(distance):
    """In either layer the four sites stand at the corners of a square, whose middle is (5, 5)."""
    corners = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0]]) + 5
    got = gathered(torch.cat([corners, corners.roll(1, 0)], dim=1))
    close(ByLayerDivergence(distance=distance)(got).step, WeightedMean()(got).step)


def test_two_sites_have_a_half_each():
    rows = torch.randn(2, 4)
    close(layers(ByLayerDivergence(), gathered(rows)), [[0.5, 0.5]] * 2)


@pytest.mark.parametrize("strategy", ["divergence", "similarity"])
@pytest.mark.parametrize("distance", ["l2", "l1", "cosine"])
def test_equal_models_keep_the_sites_say(strategy, distance):
    """Σ dist = 0, exactly: also with an odd number of odd values."""
    rows = [[0.1, 0.7, -0.3, 0.9]] * 3
    merge = ByLayerDivergence(strategy, distance)
    close(layers(merge, gathered(rows, [1.0, 2.0, 1.0])), [[0.25, 0.5, 0.25]] * 2)
    close(merge(gathered(rows)).step, rows[0])


def test_one_site_is_itself():
    merge = ByLayerDivergence()
    close(merge(gathered(ROWS[:1])).step, ROWS[0])


def test_average_is_the_weighted_mean_bit_for_bit():
    got = gathered(torch.randn(3, 4), [1.0, 2.0, 3.0], old=torch.randn(4))
    assert torch.equal(ByLayerDivergence("average")(got).step, WeightedMean()(got).step)


def test_batch_norms_affine_parameters_are_a_layer_and_its_buffers_are_not():
    model = toy.Net()
    n = len(Weights.of(model).vector)
    got = gathered(torch.randn(3, n), model=model)
    merged = ByLayerDivergence()(got)
    assert list(merged.trace["layers"]) == ["early.0", "early.1", "late.0", "dense.1", "head"]
    assert len(merged.step) == got.old.layout.cut < n


@pytest.mark.parametrize("deviation", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
def test_weights_are_exact_however_close_the_models_are(deviation):
    """Against the definition in extended precision; a Gram matrix in float32 fails from 1e-3 on."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal(5000)
    size = np.array([[1.0], [1.1], [1.3], [1.6]])
    rows = common * (1 + deviation * size * rng.standard_normal((4, 5000)))
    rows = torch.tensor(rows, dtype=torch.float32)
    exact = rows.numpy().astype(np.longdouble)
    mean = exact.mean(0)
    unit = mean / np.sqrt((mean**2).sum())
    wanted: dict[Distance, np.ndarray] = {
        "l2": np.sqrt(((exact - mean) ** 2).sum(1)),
        "l1": np.abs(exact - mean).sum(1),
        "cosine": 1 - (exact @ unit) / np.sqrt((exact**2).sum(1)),
    }
    for kind, d in wanted.items():
        w = weights(distances(list(rows), kind), torch.full((4,), 0.25).double(), "divergence")
        truth = torch.tensor((d / d.sum()).astype(np.float64))
        torch.testing.assert_close(w, truth, rtol=1e-5, atol=0)


def test_blocks_change_nothing(monkeypatch):
    rows = list(torch.randn(3, 1000))
    kinds: list[Distance] = ["l2", "l1", "cosine"]
    for kind in kinds:
        whole = distances(rows, kind)
        monkeypatch.setattr("feddg.merges.layerwise.BLOCK", 64)
        torch.testing.assert_close(distances(rows, kind), whole)
        monkeypatch.undo()


def test_what_the_server_must_see():
    seen = [ByLayerDivergence(distance=d).sees for d in ("l2", "l1", "cosine")]
    assert seen == ["gram", "everything", "everything"]
    assert ByLayerDivergence("average").sees == "sums"


def test_a_misspelt_strategy_is_named():
    with pytest.raises(ConfigError, match="did you mean 'divergence'"):
        ByLayerDivergence("divergance")  # type: ignore[arg-type]
