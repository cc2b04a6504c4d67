"""The layers that stand for a network."""

import pytest

from feddg.models import build
from feddg.report.figures.layers import chief_layers
from feddg.weights import Layout


@pytest.mark.parametrize(
    ("network", "wanted"),
    [
        ("resnet18", ("layer1.1.conv2", "layer2.1.conv2", "layer3.1.conv2", "layer4.1.conv2")),
        ("rotated-mnist-cnn", ("block1.0", "block2.0", "dense.1", "head")),
        ("alexnet", ("features.0", "features.6", "classifier.1", "classifier.6")),
    ],
)
def test_four_layers_stand_for_a_network(network, wanted):
    """Of eight layers those at 0, 7/3, 14/3 and 7, rounded: 0, 2, 5, 7 of AlexNet's."""
    assert chief_layers(Layout.of(build(network, outputs=3))) == wanted
