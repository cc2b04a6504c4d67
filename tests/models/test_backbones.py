"""Every backbone: its sizes are the published ones, its parts have the names that it says."""

from importlib.util import find_spec

import pytest
import torch
from torch import nn

from feddg._torchvision import torchvision
from feddg.engines.forms import plan
from feddg.errors import ConfigError
from feddg.local import outputs
from feddg.models import anatomy, build, known_models
from feddg.models.mobile import SameConv
from feddg.training import forward
from tests.models.mini import MINIS, mini

# Trained parameters. The digits' by hand, convolution by convolution; the ImageNet networks' as
# torchvision (and timm: EfficientNet-Lite0) publish them, for 1000 classes.
COUNTS = {
    "lenet": 156 + 2_416 + 48_120 + 10_164 + 850,
    "digits-dg-cnn": (27 + 1) * 64 + 3 * (576 + 1) * 64 + 256 * 10 + 10,
    "digit-five-cnn": (
        (75 + 3) * 64 + (1600 + 3) * 64 + (1600 + 3) * 128  # a bias, γ and β to each channel
        + (8192 + 3) * 3072 + (3072 + 3) * 2048 + 2048 * 10 + 10
    ),
    "domainbed-mnist": (9 + 3) * 64 + (576 + 3) * 128 + 2 * (1152 + 3) * 128 + 128 * 10 + 10,
    "rotated-mnist-cnn": 832 + 38_448 + 76_900 + 1_010,
    "alexnet": 61_100_840,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "densenet121": 7_978_856,
    "mobilenetv2": 3_504_872,
    "efficientnet-lite0": 4_652_008,
}  # fmt: skip
TORCHVISION = {
    "alexnet": "alexnet", "densenet121": "densenet121", "mobilenetv2": "mobilenet_v2",
    "resnet18": "resnet18", "resnet34": "resnet34", "resnet50": "resnet50",
    "resnet101": "resnet101",
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_it_has_as_many_parameters_as_published(name):
    with torch.device("meta"):
        model = build(name)
    assert sum(p.numel() for p in model.parameters()) == COUNTS[name]


def test_alexnet_with_batch_norm_is_alexnet_and_its_norms():
    """FedBN's: γ and β of 1,152 channels of convolutions and of twice 4,096 dense units."""
    with torch.device("meta"):
        model = build("alexnet-bn", outputs=1000)
    extra = 2 * (64 + 192 + 384 + 256 + 256 + 4096 + 4096)
    assert sum(p.numel() for p in model.parameters()) == COUNTS["alexnet"] + extra


@pytest.mark.parametrize("name", TORCHVISION)
def test_it_is_torchvisions_by_name_and_value(name):
    """The same keys in the same order, and the same outputs from the same weights."""
    theirs = torchvision().models.get_model(TORCHVISION[name], weights=None).eval()
    ours = build(name).eval()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    x = torch.rand(2, 3, 64, 64)
    assert torch.equal(ours(x), theirs(x))


@pytest.mark.parametrize("name", MINIS)
def test_head_and_taps_are_where_it_says(name):
    """The output is the head's, of `features`; taps are maps, and later ones are no larger."""
    model, x = mini(name).eval(), MINIS[name].images(2)
    parts = anatomy(model)
    assert isinstance(model.get_submodule(parts.head), nn.Linear)
    output, seen = forward(model, {}, x, [*parts.taps, parts.features])
    assert torch.equal(output, model.get_submodule(parts.head)(seen[parts.features]))
    assert output.shape == (2, 3)
    assert len(parts.taps) >= 2
    maps = [seen[tap] for tap in parts.taps]
    assert all(m.dim() == 4 and m.isfinite().all() for m in maps)
    sides = [m.shape[-1] for m in maps]
    assert sides == sorted(sides, reverse=True)


@pytest.mark.parametrize("name", MINIS)
def test_what_a_tap_has_seen_stays_as_it_was(name):
    """Nothing after a tap works in place on what the tap shows."""
    model, x = mini(name).eval(), MINIS[name].images(2)
    taps, kept = anatomy(model).taps, {}

    def keep(tap, value):
        kept[tap] = value.clone()
        return value

    seen = forward(model, {}, x, taps, keep)[1]
    assert all(torch.equal(seen[tap], kept[tap]) for tap in taps)


@pytest.mark.parametrize("name", MINIS)
def test_one_site_by_vmap_is_one_site_alone(name):
    """functional_call and vmap run it, in eval mode, over stacked parameters."""
    one, other = (mini(name, seed).eval().double() for seed in (0, 1))
    x = MINIS[name].images(2).double()
    stacked = {k: torch.stack([v, other.state_dict()[k]]) for k, v in one.state_dict().items()}
    both = torch.vmap(lambda values: torch.func.functional_call(one, values, (x,)))(stacked)
    assert both[0].allclose(one(x), rtol=1e-8, atol=0)
    assert both[1].allclose(other(x), rtol=1e-8, atol=0)
    assert not both[0].allclose(both[1], rtol=1e-2, atol=0)


@pytest.mark.parametrize("name", [n for n in MINIS if n != "mlp"])
def test_the_same_seed_gives_the_same_values(name):
    one, same, other = mini(name), mini(name), mini(name, seed=1)
    head = f"{anatomy(one).head}.weight"
    assert all(torch.equal(v, same.state_dict()[k]) for k, v in one.state_dict().items())
    assert not torch.equal(one.state_dict()[head], other.state_dict()[head])


def test_the_table_of_minis_has_them_all():
    assert {n for n in known_models() if n != "mlp"} <= set(MINIS)


@pytest.mark.parametrize("name", ["resnet18", "densenet121", "mobilenetv2", "torchvision:resnet18"])
def test_eight_channels_and_one_output_as_for_poverty_map(name):
    model = build(name, outputs=1, channels=8).eval()
    assert model(torch.rand(2, 8, 64, 64)).shape == (2, 1)


@pytest.mark.parametrize(
    ("name", "size", "least"),
    [("lenet", 11, 12), ("digits-dg-cnn", 15, 16), ("digit-five-cnn", 3, 4)],
)
def test_images_too_small_for_it_are_refused(name, size, least):
    with pytest.raises(ConfigError, match=f"size of images for {name} must be at least {least}"):
        build(name, size=size)
    assert build(name, channels=1, size=least).eval()(torch.rand(1, 1, least, least)).shape


@pytest.mark.parametrize(("size", "stride", "kernel"), [(8, 2, 3), (7, 2, 3), (9, 2, 5), (8, 1, 5)])
def test_same_padding_is_tensorflows(size, stride, kernel):
    """ceil(size / stride) pixels; the odd row of zeros is below and to the right.

    The last position starts at (out - 1) stride and must reach kernel pixels on: so
    (out - 1) stride + kernel - size zeros in all, the smaller half of them first.
    """
    conv = SameConv(1, 1, kernel, stride, bias=False)
    x = torch.rand(1, 1, size, size)
    out = (size + stride - 1) // stride
    zeros = (out - 1) * stride + kernel - size
    before = zeros // 2
    padded = torch.zeros(1, 1, size + zeros, size + zeros)
    padded[..., before : before + size, before : before + size] = x
    expected = nn.functional.conv2d(padded, conv.weight, stride=stride)
    assert expected.shape[-1] == out
    assert torch.equal(conv(x), expected)


def test_what_makes_no_module_is_refused():
    with pytest.raises(ConfigError, match="'collections:Counter' makes a Counter, not a torch mod"):
        build("collections:Counter")


def test_dropout_acts_in_training_only():
    model, x = mini("alexnet"), MINIS["alexnet"].images(2)
    assert not torch.equal(model.train()(x), model(x))
    assert torch.equal(outputs(model, x, ()), outputs(model, x, ()))


@pytest.mark.parametrize("name", ["mobilenetv2", "efficientnet-lite0"])
def test_mobile_networks_have_no_chance_of_their_own_unless_asked(name):
    """So they have a form, by which engines stack and record them."""
    calm = build(name, width=0.1).train()
    chance = build(name, width=0.1, dropout=0.2).train()
    x = torch.rand(2, 3, 32, 32)
    assert torch.equal(calm(x), calm(x))
    assert not torch.equal(chance(x), chance(x))
    assert plan(calm) is not None
    assert plan(chance) is None


def test_extras_that_these_tests_need_are_there():
    assert find_spec("torchvision")
