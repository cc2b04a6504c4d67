"""Another normalisation for a given network, in place of its batch norm or where it has none."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import ceil
from typing import Literal, TypeVar

from torch import nn

from feddg.errors import ConfigError, unknown
from feddg.models.norms import (
    HBIN,
    HalfInstanceNorm,
    InstanceNorm,
    ResidualInstanceNorm,
    SwitchableNorm,
)

Make = Callable[[nn.BatchNorm2d], nn.Module]


@dataclass(frozen=True)
class Kind:
    """What a batch norm becomes, and in which first share of the depth where no place is named."""

    make: Make
    depth: float = 1.0


KINDS: dict[str, Kind] = {
    "bn": Kind(lambda bn: bn),
    "in": Kind(InstanceNorm.from_batch),
    "hbin": Kind(HBIN.from_batch),
    "sn": Kind(SwitchableNorm.from_batch),
    "ibn-a": Kind(HalfInstanceNorm.from_batch, 3 / 4),
    "ibn-b": Kind(lambda bn: nn.Sequential(bn, InstanceNorm(bn.num_features, affine=True)), 1 / 2),
}
Normalisation = Literal["bn", "in", "hbin", "sn", "ibn-a", "ibn-b", "none"]
MARK = "normalisation"
T = TypeVar("T")


def normalised(model: nn.Module, kind: str, where: Sequence[str] = ()) -> nn.Module:
    """A copy of `model` with layers of `kind`: "bn", "in", "hbin", "sn", "ibn-a", "ibn-b".

    Batch norm is replaced, everywhere or in the submodules that `where` names. A network without
    batch norm gets the layer after each convolution, before what follows (ReLU, or a pool that
    commutes with it). "none" changes nothing, nor does "bn" where there is batch norm, nor what
    has been done already; all else that would change nothing is an error.

    IBN as published, for residual networks: "ibn-a" the first norm of each block in the first 3/4
    of the stages; "ibn-b" instance norm in the stem and after the sum of the last block of each
    stage in the first half. In plain networks: in the first 3/4 and half of the layers, rounded
    up ("ibn-b" after the batch norm, there being no sum).
    """
    if kind == "none":
        return model
    if kind not in KINDS:
        raise unknown("normalisation", kind, [*KINDS, "none"])
    asked = (kind, tuple(where))
    done = getattr(model, MARK, asked if kind == "bn" and batch_norms(model) else None)
    if done == asked:
        return model
    if done is not None:
        raise ConfigError(f"the network's normalisation is {done[0]!r} already, not {kind!r}")
    fresh = deepcopy(model)
    if batch_norms(fresh):
        replace(fresh, kind, where)
    else:
        insert(fresh, kind, where)
    fresh.__dict__[MARK] = asked
    return fresh


def replace(model: nn.Module, kind: str, where: Sequence[str]) -> None:
    make = KINDS[kind].make
    for name in chosen(candidates(model, kind, bool(where)), where, kind):
        old = model.get_submodule(name)
        if isinstance(old, nn.BatchNorm2d):
            stem = kind == "ibn-b" and bool(blocks(model))
            model.set_submodule(name, InstanceNorm.from_batch(old) if stem else make(old))
        else:
            model.set_submodule(name, ResidualInstanceNorm(old))


def insert(model: nn.Module, kind: str, where: Sequence[str]) -> None:
    """The convolution becomes Sequential(convolution, layer) under its old name."""
    convolutions = [k for k, m in model.named_modules() if isinstance(m, nn.Conv2d)]
    picked = chosen(early(convolutions, 1.0 if where else KINDS[kind].depth), where, kind)
    partly = kind.startswith("ibn")  # its other layers have batch norm
    for name in convolutions if partly and not where else picked:
        convolution: nn.Conv2d = model.get_submodule(name)  # type: ignore[assignment]
        bn = nn.BatchNorm2d(convolution.out_channels).to(convolution.weight)
        layer = KINDS[kind].make(bn).to(convolution.weight) if name in picked else bn
        model.set_submodule(name, nn.Sequential(convolution, layer))


def candidates(model: nn.Module, kind: str, everywhere: bool) -> list[str]:
    """Batch norms (of IBN-b: the stem's, and whole blocks) that `kind` could change, in order."""
    norms, residual, depth = batch_norms(model), blocks(model), KINDS[kind].depth
    if depth == 1.0 or not residual:
        return norms if everywhere else early(norms, depth)
    stages: dict[str, list[str]] = {}
    for name in residual:
        stages.setdefault(name.rpartition(".")[0], []).append(name)
    inside = list(stages.values()) if everywhere else early(list(stages.values()), depth)
    if kind == "ibn-a":
        return [f"{block}.bn1" for stage in inside for block in stage]
    stem = [n for n in norms[:1] if not n.startswith(tuple(f"{b}." for b in residual))]
    return [*stem, *(block for stage in inside for block in (stage if everywhere else stage[-1:]))]


def chosen(names: list[str], where: Sequence[str], kind: str) -> list[str]:
    """Those that stand at a place of `where`, or all; none at all is an error."""
    picked = [n for n in names if not where or any(f"{n}.".startswith(f"{w}.") for w in where)]
    empty = [w for w in where if not any(f"{n}.".startswith(f"{w}.") for n in names)]
    if empty or not picked:
        place = f"at {empty[0]!r}" if empty else "in this network"
        raise ConfigError(
            f"normalisation {kind!r} would change nothing {place}: there is no 2-d batch norm to"
            " replace and no 2-d convolution without one to follow; norm='none' leaves it as it is"
        )
    return picked


def early(names: list[T], share: float) -> list[T]:
    return names[: ceil(share * len(names))]


def batch_norms(model: nn.Module) -> list[str]:
    return [k for k, m in model.named_modules() if isinstance(m, nn.BatchNorm2d)]


def blocks(model: nn.Module) -> list[str]:
    """Residual blocks as ResNets name their parts, torchvision's among them."""
    parts = {"conv1", "bn1", "conv2", "bn2", "relu"}
    return [k for k, m in model.named_modules() if parts <= {n for n, _ in m.named_children()}]
