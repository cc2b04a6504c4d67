"""What a term runs besides the step's one forward pass: the head alone, or another batch."""

from collections.abc import Sequence

from torch import Tensor
from torch.func import functional_call

from feddg.local import Forward
from feddg.training import forward
from feddg.trees import Tensors


def head_values(fwd: Forward, head: str) -> Tensors:
    """The head's parameters and buffers, by the names within it."""
    return {
        k.removeprefix(f"{head}."): v for k, v in fwd.values.items() if k.startswith(f"{head}.")
    }


def through_head(fwd: Forward, head: str, z: Tensor, values: Tensors | None = None) -> Tensor:
    """The outputs for features `z`, by the head's own values or by others."""
    own = head_values(fwd, head) if values is None else values
    return functional_call(fwd.module.get_submodule(head), own, (z,))


def again(fwd: Forward, x: Tensor, taps: Sequence[str] = ()) -> tuple[Tensor, Tensors]:
    """Outputs and taps of another batch, by the same weights and in training mode.

    Batch norm's running statistics follow the first batch only. Transforms of taps, such as
    MixStyle, are not applied.
    """
    return forward(fwd.module, fwd.apart, x, taps, training=True)
