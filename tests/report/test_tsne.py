"""t-SNE: blobs come apart, the divergence falls, the same seed gives the same bits."""

from math import exp, log

import pytest
import torch

from feddg.errors import ConfigError
from feddg.report.tsne import EARLY, affinities, tsne
from feddg.seeds import generator

LABELS = torch.arange(3).repeat_interleave(30)


@pytest.fixture(scope="module")
def blobs():
    """Three Gaussians in ten dimensions, eight standard deviations apart."""
    noise = torch.randn(90, 10, generator=generator("blobs"))
    return noise + 8 * torch.eye(3, 10)[LABELS]


@pytest.fixture(scope="module")
def found(blobs):
    return tsne(blobs, perplexity=15)


def test_three_blobs_come_apart(found):
    """Every point is nearer to all of its own blob than to any of another."""
    far = torch.cdist(found.points, found.points)
    same = LABELS[:, None] == LABELS
    assert far[same].max() < far[~same].min()


def test_the_divergence_falls(found):
    assert found.kl[-1] < found.kl[EARLY] < found.kl[0]
    assert found.kl[-1] < 0.5
    assert all(v > 0 for v in found.kl)


def test_the_same_seed_gives_the_same_bits(blobs):
    a, b, other = (tsne(blobs, seed=s, steps=20).points for s in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, other)


def test_every_row_has_the_perplexity_that_was_asked_for(blobs):
    """p is (p_j|i + p_i|j)/2N; of points on a ring all rows are alike, so that p_j|i = N p_ij."""
    turn = torch.arange(12, dtype=torch.float64) * torch.pi / 6
    p = affinities(torch.stack([turn.cos(), turn.sin()], 1), 3.0) * 12
    entropy = -sum(v * log(v) for v in p[0].tolist() if v > 0)
    assert exp(entropy) == pytest.approx(3, rel=1e-6)
    assert affinities(blobs.double(), 30.0).sum().item() == pytest.approx(1)


def test_scale_and_place_of_the_features_do_not_matter(blobs):
    a = affinities(blobs.double(), 20.0)
    assert torch.allclose(affinities(1000 * blobs.double() + 7, 20.0), a, atol=1e-9)


def test_equal_points_and_what_cannot_be_drawn(blobs):
    twins = torch.cat([blobs[:20], blobs[:20]])
    assert torch.isfinite(tsne(twins, steps=30).points).all()
    assert torch.isfinite(tsne(torch.zeros(5, 3), steps=30).points).all()
    with pytest.raises(ConfigError, match="4 to 1500 points, not 3"):
        tsne(blobs[:3])
    with pytest.raises(ConfigError, match="NaN"):
        tsne(torch.full((5, 2), torch.nan))
