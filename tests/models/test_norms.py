from typing import Any

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad

from feddg.models.norms import (
    HBIN,
    HalfInstanceNorm,
    InstanceNorm,
    ResidualInstanceNorm,
    SwitchableNorm,
)

Values = dict[str, torch.Tensor]
KINDS: list[Any] = [HBIN, SwitchableNorm, InstanceNorm, HalfInstanceNorm]


def pretrained(width: int = 6) -> nn.BatchNorm2d:
    bn = nn.BatchNorm2d(width)
    for value in bn.state_dict().values():
        if value.is_floating_point():
            nn.init.uniform_(value, 0.5, 2.0)
    return bn


def images() -> torch.Tensor:
    return torch.randn(5, 6, 4, 3) * 2 + torch.arange(5)[:, None, None, None]


def only(layer: nn.Module, statistic: int) -> None:
    """All of the mix on one statistic."""
    for name in ("mean_logits", "var_logits"):
        with torch.no_grad():
            logits = layer.get_parameter(name).fill_(-200.0)
            logits[statistic] = 200.0


def test_reference_hbin_by_hand():
    """Eq. (2)-(4) on two images of one channel and two pixels, (1, 3) and (5, 11).

    mu_in = 2, 8; sigma2_in = 1, 9. mu_bn = 5; sigma2_bn = ((1 + 4) + (9 + 64)) / 2 - 25 = 14.
    Logits (log 3, 0) for the means: 3/4 and 1/4, so mu = 4.25 and 5.75. Equal logits for the
    variances: sigma2 = 7.5 and 11.5. With gamma = 2, beta = 1.
    """
    layer = HBIN(1, eps=1e-5)
    with torch.no_grad():
        layer.mean_logits.copy_(torch.tensor([3.0, 1.0]).log())
        layer.weight.fill_(2.0)
        layer.bias.fill_(1.0)
    x = torch.tensor([[1.0, 3.0], [5.0, 11.0]]).view(2, 1, 1, 2)
    expected = torch.tensor(
        [
            [2 * (1 - 4.25) / 7.5**0.5 + 1, 2 * (3 - 4.25) / 7.5**0.5 + 1],
            [2 * (5 - 5.75) / 11.5**0.5 + 1, 2 * (11 - 5.75) / 11.5**0.5 + 1],
        ]
    )
    torch.testing.assert_close(layer(x).view(2, 2), expected, atol=1e-5, rtol=1e-5)


def test_reference_at_test_the_running_statistics_stand_in():
    """As above with running mean 1 and variance 3: mu = (1 + 2) / 2, sigma2 = (3 + 1) / 2."""
    layer = HBIN(1).eval()
    layer.running_mean.fill_(1.0)
    layer.running_var.fill_(3.0)
    x = torch.tensor([1.0, 3.0]).view(1, 1, 1, 2)
    expected = (torch.tensor([1.0, 3.0]) - 1.5) / 2**0.5
    torch.testing.assert_close(layer(x).flatten(), expected, atol=1e-5, rtol=1e-5)
    assert layer.running_mean.item() == 1.0


def test_reference_switchable_norm_by_hand():
    """One image of two channels, (1, 3) and (5, 11).

    LN has mean 5 and variance 14; a batch of one makes BN = IN. Thirds: channel 1 has
    mu = (2 + 2 + 5) / 3 and sigma2 = (1 + 1 + 14) / 3.
    """
    x = torch.tensor([[1.0, 3.0], [5.0, 11.0]]).view(1, 2, 1, 2)
    expected = torch.stack(
        [
            (x[0, 0, 0] - 3) / (16 / 3) ** 0.5,
            (x[0, 1, 0] - 7) / ((9 + 9 + 14) / 3) ** 0.5,
        ]
    )
    torch.testing.assert_close(SwitchableNorm(2)(x)[0, :, 0], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("cls", [HBIN, SwitchableNorm])
def test_identity_all_batch_norm(cls):
    """In training, in its buffers, and at test."""
    bn = pretrained()
    layer = cls.from_batch(bn)
    only(layer, 0)
    for _ in range(3):
        x = images()
        torch.testing.assert_close(layer(x), bn(x), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(layer.running_mean, bn.running_mean, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(layer.running_var, bn.running_var, atol=1e-6, rtol=1e-6)
    x = images()
    torch.testing.assert_close(layer.eval()(x), bn.eval()(x), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_identity_all_instance_norm(training):
    bn = pretrained()
    layer, plain = HBIN.from_batch(bn).train(training), InstanceNorm.from_batch(bn).train(training)
    only(layer, 1)
    x = images()
    torch.testing.assert_close(layer(x), plain(x), atol=1e-6, rtol=1e-5)


def test_identity_all_layer_norm():
    layer, x = SwitchableNorm(6), images()
    only(layer, 2)
    torch.testing.assert_close(
        layer(x), nn.functional.layer_norm(x, x.shape[1:]), atol=1e-6, rtol=1e-5
    )


def test_starts_from_the_pretrained_half_and_half():
    bn = pretrained()
    layer = HBIN.from_batch(bn)
    assert torch.equal(layer.weight, bn.weight)
    assert torch.equal(layer.bias, bn.bias)
    for name in ("running_mean", "running_var"):
        assert torch.equal(layer.get_buffer(name), bn.get_buffer(name))
    for logits in (layer.mean_logits, layer.var_logits):
        assert torch.equal(logits.softmax(0), torch.tensor([0.5, 0.5]))
    layer.weight.data.zero_()
    assert bn.weight.min() > 0  # a copy


def test_an_image_with_a_style_of_its_own_loses_it_to_instance_norm():
    """Effect: brightness and contrast of one image do not matter where all is IN."""
    layer, x = HBIN(6), images()
    styled = x.clone()
    styled[0] = 3 * x[0] + 5
    assert not torch.allclose(layer(x)[0], layer(styled)[0], atol=0.1)
    only(layer, 1)
    torch.testing.assert_close(layer(x)[0], layer(styled)[0], atol=1e-4, rtol=1e-4)


def test_ibn_a_is_instance_norm_on_one_half_and_batch_norm_on_the_other():
    bn = pretrained(7)
    layer, x = HalfInstanceNorm.from_batch(bn), torch.randn(4, 7, 3, 3)
    after = layer(x)
    instance = InstanceNorm.from_batch(bn)(x)
    torch.testing.assert_close(after[:, :3], instance[:, :3])
    torch.testing.assert_close(after[:, 3:], bn(x)[:, 3:])


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("cls", [HBIN, SwitchableNorm])
def test_under_autocast_it_computes_in_float32(cls, training):
    """A convolution's bfloat16 is normalised, and its slope found, as float32 is: the same bits."""
    bn, x = pretrained(), images().bfloat16()
    found = []
    for given in (x, x.float()):
        layer, given = cls.from_batch(bn).train(training), given.requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=given.dtype == torch.bfloat16):
            after = layer(given)
        assert after.dtype == torch.float32
        slopes = torch.autograd.grad((after * after.cos()).sum(), [*layer.parameters(), given])
        found.append([after, layer.running_mean, layer.running_var, *slopes])
    for low, plain in zip(*found, strict=True):
        assert torch.equal(low, plain.to(low.dtype))


class Block(nn.Module):
    """A residual block as torchvision writes it."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.downsample = None

    def forward(self, x):
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + x)


def test_ibn_b_normalises_the_sum_before_the_last_relu():
    block, x = Block(), torch.randn(2, 4, 5, 5)
    layer = ResidualInstanceNorm(block)
    inner = block.bn2(block.conv2(block.relu(block.bn1(block.conv1(x))))) + x
    torch.testing.assert_close(layer(x), nn.functional.instance_norm(inner).relu())
    layer.set_submodule("norm", nn.Identity())
    torch.testing.assert_close(layer(x), block(x))


@pytest.mark.parametrize("cls", KINDS, ids=lambda c: c.__name__)
def test_runs_under_functional_call_and_vmap_and_leaves_the_module_alone(cls):
    """Two sites' values and batches at once: outputs, gradients and buffers as one by one."""
    layer = cls.from_batch(pretrained())
    before = {k: v.clone() for k, v in layer.state_dict().items()}
    learned = dict(layer.named_parameters())
    kept = {k: v for k, v in layer.named_buffers() if v.is_floating_point()}
    count = {k: v for k, v in layer.named_buffers() if not v.is_floating_point()}

    def run(parameters: Values, buffers: Values, x: torch.Tensor) -> tuple[Values, Values]:
        def loss(p):
            own = {k: v.clone() for k, v in buffers.items()}  # written in place
            zero = {k: x.new_zeros((), dtype=torch.long) for k in count}
            return (functional_call(layer, {**p, **own, **zero}, (x,)) * x.cos()).sum(), own

        slope: Any = grad(loss, has_aux=True)
        slope, own = slope(parameters)
        return slope, own

    two = [{k: v.detach() * s for k, v in learned.items()} for s in (1.0, 1.5)]
    held = [{k: v * s for k, v in kept.items()} for s in (1.0, 1.5)]
    xs = torch.stack([images(), images()])
    stacked = [{k: torch.stack([a[k], b[k]]) for k in a} for a, b in (two, held)]
    together = torch.vmap(run)(stacked[0], stacked[1], xs)
    for i in range(2):
        alone = run(two[i], held[i], xs[i])
        for one, both in zip(alone, together, strict=True):
            for k in one:
                torch.testing.assert_close(both[k][i], one[k], atol=1e-4, rtol=1e-4)
    for k, v in layer.state_dict().items():
        assert torch.equal(v, before[k])
