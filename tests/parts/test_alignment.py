from math import exp

import pytest
import torch

from feddg.errors import ConfigError
from feddg.parts.alignment import Rows, variances
from feddg.parts.discrepancy import mmd
from feddg.parts.matching import Matching, attention
from feddg.parts.projections import Projections, as_map


def close(a, b, atol=1e-5):
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=a.dtype), rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("size", "to", "kernel", "stride"),
    [(12, 4, 3, 3), (28, 7, 4, 4), (4, 4, 1, 1), (13, 6, 3, 2), (7, 1, 7, 7)],
)
def test_kernel_and_stride_are_the_size_ratio(size, to, kernel, stride):
    """13 -> 6: stride 2 and kernel 13 - 5·2 = 3, so that every pixel is seen."""
    features = {"early": torch.randn(2, 3, size, size), "last": torch.randn(2, 5, to, to)}
    project = Projections.of(features)
    assert project.to == (5, to, to)
    assert project.window(project.sizes[0]) == ([kernel] * 2, [stride] * 2)
    out = project("fused", project.layout.views(project.init(torch.Generator())), features)
    assert out.shape == (2, 2, to * to, 5)


def test_eq_5_by_hand():
    """A 2x2 map to one pixel: Σ weight·x + bias = 1 + 2·2 + 3·3 + 4·4 + 10 = 40."""
    features = {"a": torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), "b": torch.tensor([[[[5.0]]]])}
    project = Projections.of(features)
    own = [1.0, 2.0, 3.0, 4.0, 10.0, 2.0, -1.0]
    convolutions = project.layout.views(torch.tensor([*own, *(0.0 for _ in own)]))
    close(project("fused", convolutions, features), [[[[40.0]]], [[[9.0]]]])


@pytest.mark.parametrize(("size", "last"), [(12, 4), (13, 6)])
def test_patches_are_projected_like_their_maps(size, last):
    """Where windows do not overlap, Proj is linear in patches; else the map is kept as it is."""
    features = {"a": torch.randn(2, 3, size, size), "b": torch.randn(2, 5, last, last)}
    project = Projections.of(features)
    own, kept = project.layout.views(project.init(torch.Generator())), project.cut(features)
    assert kept["a"].shape == ((2, 16, 27) if size == 12 else (2, 3, 13, 13))
    close(project("local", own, kept, cut=True), project("local", own, features))


def test_a_kernel_of_one_pixel_is_a_convolution_all_the_same():
    features = {"a": torch.randn(2, 3, 4, 4), "b": torch.randn(2, 5, 4, 4)}
    project = Projections.of(features)
    own = project.layout.views(project.init(torch.Generator()))
    for out, tap in zip(project("fused", own, features), "ab", strict=True):
        weight, bias = own[f"fused:{tap}.weight"], own[f"fused:{tap}.bias"]
        close(
            out.mT.unflatten(-1, (4, 4)),
            torch.conv2d(features[tap], weight.permute(0, 3, 1, 2), bias),
        )


def test_a_dense_feature_is_projected_by_a_linear_map():
    features = {"maps": torch.randn(3, 4, 6, 6), "dense": torch.randn(3, 10)}
    project = Projections.of(features)
    own = project.layout.views(project.init(torch.Generator()))
    weight, bias = own["local:dense.weight"], own["local:dense.bias"]
    wanted = features["dense"] @ weight[:, 0, 0].T + bias
    close(project("local", own, features)[1, :, 0], wanted)
    with pytest.raises(ConfigError, match="2 to 4 dimensions, not 5"):
        as_map(torch.zeros(1, 1, 1, 1, 1))


def test_the_public_codes_size_and_an_early_small_layer():
    features = {"a": torch.zeros(1, 3, 28, 28), "b": torch.zeros(1, 5, 14, 14)}
    assert Projections.of(features, channels=32, size=7).to == (32, 7, 7)
    assert Projections.of(dict(reversed(features.items()))).to == (3, 14, 14)


def test_each_side_and_layer_has_its_own_convolution_and_torchs_initial_scale():
    features = {"a": torch.zeros(1, 3, 8, 8), "b": torch.zeros(1, 4, 4, 4)}
    project = Projections.of(features)
    own = project.layout.views(project.init(torch.Generator().manual_seed(0)))
    assert not torch.equal(own["fused:a.weight"], own["local:a.weight"])
    for name, inputs in (("fused:a", 3 * 2 * 2), ("local:b", 4)):
        weight, bias = own[f"{name}.weight"], own[f"{name}.bias"]
        assert 0.9 * inputs**-0.5 < weight.abs().max() <= inputs**-0.5
        assert bias.abs().max() <= inputs**-0.5
    drawn = torch.empty(48).uniform_(-1, 1, generator=torch.Generator().manual_seed(0))
    first = drawn.view(4, 3, 2, 2) / 12**0.5  # as torch's own convolution would have it
    close(own["fused:a.weight"].permute(0, 3, 1, 2), first)


def test_eq_7_to_9_by_hand():
    """c = 1, d = 2. A = (1, 3); B_1 = (2, 2), B_2 = (0, 0).

    A'B_1 = [[2, 2], [6, 6]], average 4; AB_1' = 8; both 0 with B_2.
    alpha = ½ (e^4/(e^4+1) + e^8/(e^8+1)) for B_1.
    """
    a = torch.tensor([[[[1.0], [3.0]]]])  # layers x B x d x c
    b = torch.tensor([[[[2.0], [2.0]]], [[[0.0], [0.0]]]])
    p, c = exp(4) / (exp(4) + 1), exp(8) / (exp(8) + 1)
    close(attention(a, b, True, True), [[(p + c) / 2, 1 - (p + c) / 2]])
    close(attention(a, b, True, False), [[p, 1 - p]])
    close(attention(a, b, False, True), [[c, 1 - c]])
    close(attention(a, b, False, False), [[0.5, 0.5]])


def test_alpha_over_the_fused_layers_is_eq_7_to_9_with_the_sides_exchanged():
    """TKDE's prose: a local layer chooses among the fused ones, so columns sum to 1."""
    a, b = torch.randn(3, 4, 5, 6), torch.randn(2, 4, 5, 6)
    found = attention(a, b, True, True, "fused")
    close(found, attention(b, a, True, True).T)
    close(found.sum(0), [1.0, 1.0])
    close(attention(a, b, False, False, "fused"), torch.full((3, 2), 1 / 3))


def test_attention_by_means_is_attention_by_maps():
    """Against the d x d and c x c maps themselves, averaged over map and batch; rows sum to 1."""
    a, b = torch.randn(2, 5, 3, 4).double(), torch.randn(3, 5, 3, 4).double()
    a, b = a.mT, b.mT  # c x d, as in the paper
    position = torch.einsum("lbci,mbcj->lmbij", a, b).mean((2, 3, 4)).softmax(1)
    channel = torch.einsum("lbid,mbjd->lmbij", a, b).mean((2, 3, 4)).softmax(1)
    close(attention(a.mT, b.mT, True, True), (position + channel) / 2, 1e-12)


def literal_mmd(x, y, biased):
    """The definition, pair by pair."""
    n = len(x)
    points = torch.cat([x, y])
    apart = ((points[:, None] - points[None]) ** 2).sum(2)
    scale = apart.detach().mean()
    kernel = torch.stack([torch.exp(-apart / (2 * scale * 3.0**k)) for k in range(-3, 2)]).sum(0)
    xx, yy, xy = kernel[:n, :n], kernel[n:, n:], kernel[:n, n:]
    if biased:
        return xx.mean() + yy.mean() - 2 * xy.mean()
    off = 1 - torch.eye(n)
    return (xx * off).sum() / (n * (n - 1)) + (yy * off).sum() / (n * (n - 1)) - 2 * xy.mean()


def test_mmd_by_hand():
    """One point a side, t apart: the mean d² of the four ordered pairs is t²/2.

    So the kernels across are exp(-3^-k), whatever t; MMD² = 5 + 5 - 2 Σ exp(-3^-k).
    """
    wanted = 10 - 2 * sum(exp(-(3.0**-k)) for k in range(-3, 2))
    for t in (1.0, 30.0):
        a, b = torch.zeros(1, 1, 2), torch.tensor([[[t, 0.0]]])
        close(mmd(a, b), [[wanted]])


@pytest.mark.parametrize("biased", [True, False])
def test_mmd_of_all_pairs_of_layers_is_mmd_of_each(biased):
    a, b = torch.randn(2, 6, 5).double() + 3, 2 * torch.randn(3, 6, 5).double()
    wanted = [[literal_mmd(x, y, biased) for y in b] for x in a]
    close(mmd(a, b, biased), wanted, 1e-10)


def test_mmd_of_equal_samples_is_zero_and_stays_finite():
    a = torch.randn(1, 8, 4)
    close(mmd(a, a), [[0.0]])
    flat = torch.ones(1, 8, 4, requires_grad=True)
    [slope] = torch.autograd.grad(mmd(flat, torch.ones(1, 8, 4)).sum(), flat)
    assert torch.isfinite(slope).all()


def test_mmd_keeps_its_digits_far_from_the_origin():
    """A common shift changes no distance; float32 would lose them all in |x|² - 2xy + |y|²."""
    a, b = torch.randn(1, 16, 8), 1.5 * torch.randn(1, 16, 8)
    close(mmd(a + 1000, b + 1000), mmd(a, b), 1e-3)


def test_eq_6_and_lambda():
    """lam Σ_l Σ_m alpha_lm D_lm, the same-layer sum with alpha = 1, and the mean squared error."""
    a, b = torch.randn(2, 4, 3, 5), torch.randn(2, 4, 3, 5)
    alpha, d = attention(a, b, True, True), mmd(a.flatten(2), b.flatten(2))
    close(Matching(0.6, kernels="sum")(a, b), 0.6 * (alpha * d).sum())
    close(Matching(1.0, "same")(a, b), (d[0, 0] + d[1, 1]) / 5)
    errors = torch.stack([torch.stack([(x - y).square().mean() for y in b]) for x in a])
    close(Matching(1.0, discrepancy="mse")(a, b), (alpha * errors).sum())


def test_the_mean_of_the_five_kernels_is_a_fifth_of_their_sum():
    a, b = torch.randn(2, 4, 3, 5), torch.randn(2, 4, 3, 5)
    close(5 * Matching()(a, b), Matching(kernels="sum")(a, b))
    mse = Matching(kernels="sum", discrepancy="mse")(a, b)  # which has no kernels
    close(mse, Matching(discrepancy="mse")(a, b))


def test_with_one_proj_for_both_sides_equal_models_are_aligned_already():
    """D(Proj M_l, Proj L_l) = 0 where M = L; with a Proj each it is not."""
    features = {"a": torch.randn(6, 3, 12, 12), "b": torch.randn(6, 5, 4, 4)}
    for shared, number in ((True, 2), (False, 4)):
        project = Projections.of(features, shared=shared)
        assert len(project.layout.names) == 2 * number  # a weight and a bias each
        own = project.layout.views(project.init(torch.Generator().manual_seed(1)))
        a, b = (project(side, own, features) for side in ("fused", "local"))
        same = Matching(1.0, "same")(a, b)
        assert (same < 1e-6) == shared


def test_alpha_is_detached():
    a = torch.randn(2, 4, 3, 5, requires_grad=True)
    b = torch.randn(2, 4, 3, 5)
    alpha = attention(a, b, True, True).detach()
    [wanted] = torch.autograd.grad((alpha * mmd(a.flatten(2), b.flatten(2)) / 5).sum(), a)
    [found] = torch.autograd.grad(Matching(1.0)(a, b), a)
    close(found, wanted)


def test_rows_of_one_form_are_alike_whatever_their_number():
    a, b = Rows(t=torch.zeros(3, 2)), Rows(t=torch.ones(5, 2))
    assert a == b
    assert hash(a) == hash(b)
    assert a != Rows(t=torch.zeros(3, 4))
    assert a != Rows()


def test_variances_by_hand():
    """(0, 2) varies by 1 around its mean, (3, 3) not at all."""
    a = torch.tensor([0.0, 2.0]).view(1, 2, 1, 1)
    assert variances(a, torch.full((1, 2, 1, 1), 3.0)).tolist() == [1.0, 0.0]
