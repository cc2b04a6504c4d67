import pytest
import torch
from torch import nn

from feddg._torchvision import torchvision
from feddg.errors import ConfigError
from feddg.models import anatomy, build
from feddg.models.normalise import KINDS, normalised
from feddg.models.norms import (
    HBIN,
    HalfInstanceNorm,
    InstanceNorm,
    ResidualInstanceNorm,
    SwitchableNorm,
)
from tests import toy

LAYER = {"hbin": HBIN, "in": InstanceNorm, "sn": SwitchableNorm, "ibn-a": HalfInstanceNorm}


def at(model: nn.Module, cls: type) -> list[str]:
    return [k for k, m in model.named_modules() if isinstance(m, cls)]


@pytest.mark.parametrize("kind", LAYER)
def test_batch_norm_is_replaced_and_keeps_its_name(kind):
    model = toy.Net()
    fresh = normalised(model, kind)
    assert at(fresh, LAYER[kind])[0] == "early.1"
    assert at(fresh, nn.BatchNorm2d) == (["early.1.batch"] if kind == "ibn-a" else [])
    assert at(model, nn.BatchNorm2d) == ["early.1"]  # the given network is left alone


@pytest.mark.parametrize("kind", KINDS)
def test_without_batch_norm_it_follows_each_convolution_before_relu(kind):
    model = build("rotated-mnist-cnn")
    fresh = normalised(model, kind)
    x = torch.rand(4, 1, 28, 28)
    for name in ("block1", "block2"):
        chain = fresh.get_submodule(f"{name}.0")
        assert isinstance(chain, nn.Sequential)
        assert isinstance(chain[0], nn.Conv2d)
        assert len(chain) == 2
        assert isinstance(fresh.get_submodule(f"{name}.2"), nn.ReLU)
    assert fresh(x).shape == (4, 10)
    assert not torch.allclose(fresh(x), model(x))


def test_taps_stay_valid():
    fresh = normalised(build("rotated-mnist-cnn"), "hbin")
    parts = anatomy(fresh)
    assert parts == anatomy(build("rotated-mnist-cnn"))
    for name in (parts.head, *parts.taps):
        fresh.get_submodule(name)


def test_early_layers_of_plain_networks():
    """Of two layers: 3/4 rounded up is both, half is the first; others get batch norm."""
    fresh = normalised(build("rotated-mnist-cnn"), "ibn-b")
    assert at(fresh, InstanceNorm) == ["block1.0.1.1"]
    assert at(fresh, nn.BatchNorm2d) == ["block1.0.1.0", "block2.0.1"]
    assert len(at(normalised(build("rotated-mnist-cnn"), "ibn-a"), HalfInstanceNorm)) == 2


def test_at_named_places():
    fresh = normalised(build("rotated-mnist-cnn"), "hbin", ("block2",))
    assert at(fresh, HBIN) == ["block2.0.1"]


def test_done_twice_is_done_once():
    once = normalised(toy.Net(), "hbin")
    assert normalised(once, "hbin") is once
    with pytest.raises(ConfigError, match="'hbin' already"):
        normalised(once, "in")


@pytest.mark.parametrize("kind", ["none", "bn"])
def test_what_has_batch_norm_keeps_it(kind):
    model = toy.Net()
    assert normalised(model, kind) is model


@pytest.mark.parametrize(
    ("model", "where"),
    [
        (build("mlp", inputs=3, outputs=2), ()),
        (toy.Net(), ("late",)),
        (toy.Net(), ("early", "nowhere")),
        (build("rotated-mnist-cnn"), ("head",)),
    ],
    ids=["a table's network", "no norm there", "no such place", "no convolution there"],
)
def test_what_would_change_nothing_is_refused(model, where):
    with pytest.raises(ConfigError, match="would change nothing"):
        normalised(model, "hbin", where)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ConfigError, match="did you mean 'hbin'"):
        normalised(toy.Net(), "hbni")


def test_resnets_as_published():
    """PACS: all of ResNet-18's batch norms. Office-Home: the first, and those of the first block.

    IBN-a: the first norm of each block in stages 1-3. IBN-b: instance norm in the stem and after
    the sum of the last blocks of stages 1 and 2.
    """
    with torch.random.fork_rng():
        net = torchvision().models.resnet18(num_classes=3)
    x = torch.rand(2, 3, 32, 32)
    assert len(at(normalised(net, "hbin"), HBIN)) == 20
    assert at(normalised(net, "hbin", ("bn1", "layer1.0")), HBIN) == [
        "bn1",
        "layer1.0.bn1",
        "layer1.0.bn2",
    ]
    assert at(normalised(net, "ibn-a"), HalfInstanceNorm) == [
        f"layer{s}.{b}.bn1" for s in (1, 2, 3) for b in (0, 1)
    ]
    b = normalised(net, "ibn-b")
    assert at(b, ResidualInstanceNorm) == ["layer1.1", "layer2.1"]
    assert at(b, InstanceNorm) == ["bn1", "layer1.1.norm", "layer2.1.norm"]
    assert b(x).shape == (2, 3)
    assert set(net.state_dict()) - set(b.state_dict()) == {
        "bn1.running_mean",
        "bn1.running_var",
        "bn1.num_batches_tracked",
    }


def test_pretrained_statistics_are_taken_over():
    net = toy.Net()
    net(torch.randn(8, 1, 12, 12) + 3)
    fresh = normalised(net, "hbin").get_buffer("early.1.running_mean")
    torch.testing.assert_close(fresh, net.get_buffer("early.1.running_mean"))
    assert fresh.abs().max() > 0
