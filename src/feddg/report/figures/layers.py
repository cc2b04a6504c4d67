"""Which layers stand for a network in a figure: four at most, from early to late."""

from collections.abc import Sequence

from feddg.weights import Layout

FEW = 4


def chief_layers(layout: Layout, most: int = FEW) -> tuple[str, ...]:
    """Layers with weights of two dimensions or more; of many, the last of each of the last blocks.

    Of ResNet-18 these are the last convolutions of its four blocks, as CSAC's figures have it.
    """
    shapes = dict(zip(layout.names, layout.shapes, strict=True))
    sizes = {
        layer: max((len(s) for n, s in shapes.items() if n.rpartition(".")[0] == layer), default=0)
        for layer in layout.layers
    }
    found = [layer for layer, dimensions in sizes.items() if dimensions > 1]
    if len(found) <= most:
        return tuple(found)
    convolutions = [layer for layer in found if sizes[layer] > 2]
    last = {layer.partition(".")[0]: layer for layer in convolutions or found}
    return tuple(last.values())[-most:] if len(last) >= most else spread(found, most)


def spread(layers: Sequence[str], most: int) -> tuple[str, ...]:
    """Evenly from the first to the last."""
    step = (len(layers) - 1) / (most - 1)
    return tuple(layers[round(k * step)] for k in range(most))
