"""Which trainings are the same program on other numbers, so that one can carry them all out."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.utils import _pytree as pytree

from feddg.local import Training
from feddg.training import Begun, all_parts, columns
from feddg.trees import Tensors
from feddg.weights import PLAIN, attributes


@dataclass(frozen=True)
class Form:
    """Equal forms, equal programs. `name` is a short word of it, to find equals quickly."""

    name: tuple[Hashable, ...]
    details: tuple[Any, ...]


def form(request: Training, begun: Begun) -> Form | None:
    """Of a training that begins so; None: by what can be seen of it, it is like no other."""
    job, recipe, data = request.job, request.job.local, request.data
    network = plan(job.model)
    inside, step = outline(begun), emptied(job.step)
    if network is None or inside is None:
        return None
    rows = {i: rows_of(c) for i, c in columns(all_parts(request)).items()}
    n, size = len(data), recipe.batch(len(data))
    even = recipe.drop_last or n % size == 0
    kinds = tuple(type(p).__qualname__ for p in (*job.augment, *job.parts))
    name = (request.start.layout, size, None if even else n, data.shape, data.store.dtype, kinds)
    vector = request.start.vector
    rest = (
        network, inside, step, rows, recipe.make_optimizer(), recipe.label_smoothing, job.task,
        data.y.dtype, data.y.shape[1:], vector.dtype, vector.device, data.store.device,
    )  # fmt: skip
    return Form(name, rest)


def outline(tree: Any) -> tuple[Any, ...] | None:
    """A tree without its numbers. None: it has leaves that are no tensors."""
    leaves, spec = pytree.tree_flatten(tree)
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        return None
    return spec, tuple((leaf.shape, leaf.dtype, leaf.device) for leaf in leaves)


def emptied(step: Any) -> Any:
    """A step without its tensors, which only its draws may read: sites of a stack share it."""
    return pytree.tree_map_only(Tensor, lambda _: None, step)


def rows_of(columns: Tensors) -> dict[str, Any]:
    """What there is for each example, however many they are."""
    return {k: (v.shape[1:], v.dtype) for k, v in columns.items()}


PLANS: "WeakKeyDictionary[nn.Module, tuple[Any, ...]]" = WeakKeyDictionary()


def plan(module: nn.Module) -> tuple[Any, ...] | None:
    """What decides a network's function besides its travelling weights. None: chance, or hooks."""
    if module not in PLANS:
        found = tuple((name, *part(m)) for name, m in module.named_modules())
        PLANS[module] = () if any(None in p for p in found) else found
    return PLANS[module] or None


def part(module: nn.Module) -> tuple[Any, ...]:
    if isinstance(module, _DropoutNd) and module.p > 0:
        return (None,)
    if module._forward_hooks or module._forward_pre_hooks:
        return (None,)
    values = tuple((k, comparable(v)) for k, v in sorted(attributes(module).items()))
    fixed = tuple((k, tuple(v.flatten().tolist())) for k, v in sorted(still(module).items()))
    return type(module), values, fixed


def still(module: nn.Module) -> dict[str, Tensor]:
    """Its own buffers that do not travel: integers, and what is not stored.

    But for batch norm's count of batches, which nobody reads: a device would be waited for.
    """
    unread = {"num_batches_tracked"} if isinstance(module, _BatchNorm) else set()
    stays = module._non_persistent_buffers_set
    return {
        k: v
        for k, v in module.named_buffers(recurse=False)
        if k not in unread and (k in stays or not v.is_floating_point())
    }


def comparable(value: Any) -> Any:
    """Plain values and what is made of them by value, all else as the very object."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, tuple | list):
        return type(value), tuple(map(comparable, value))
    if isinstance(value, Mapping):
        return type(value), tuple((k, comparable(v)) for k, v in value.items())
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), comparable(vars(value))
    return "object", id(value)
