"""What happens to a batch before the model sees it: batched, pure, storable as JSON.

A transform is a part of local training (see `feddg.trees.part`). Deterministic ones (all that
stand here) stay with the deployed model; `describe` writes them and `transform_from` reads them.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from feddg.constants import constant
from feddg.data.levels import singly
from feddg.errors import DataError, unknown
from feddg.trees import part

Draw = dict[str, Tensor]
Numbers = tuple[float, ...]


class Transform(Protocol):
    """Of a batch (`at` is empty) or of a named tap to its like, under `vmap` too."""

    @property
    def at(self) -> str: ...
    def draw(self, rng: torch.Generator, n: int) -> Draw:
        """The chance for a batch of `n`, every example its own; {} if there is none."""
        ...

    def apply(self, value: Tensor, draw: Draw) -> Tensor: ...
    def describe(self) -> dict[str, Any]: ...


@part()
class Scale:
    """Pixels 0…255 to float32: (value / 255 − mean) / std per channel, dimension 1.

    Images (four dimensions) come out in channels_last, which CPU convolutions are faster with.
    """

    mean: Numbers = (0.0,)
    std: Numbers = (1.0,)
    at: str = ""

    kind: ClassVar[str] = "scale"

    def __post_init__(self) -> None:
        _check(self.kind, self.mean, self.std)
        if min(self.std) == 0:
            raise DataError("scale: std must not contain 0")

    def draw(self, rng: torch.Generator, n: int) -> Draw:
        return {}

    def apply(self, value: Tensor, draw: Draw) -> Tensor:
        if value.dtype == torch.uint8 and singly(value):
            last = torch.channels_last
            out = torch.empty_like(value, dtype=torch.float32, memory_format=last)
            for place, image in zip(out, value, strict=True):
                place.copy_(self.scaled(image.float()[None])[0])
            return out
        return self.scaled(_channels_last(value))

    def scaled(self, value: Tensor) -> Tensor:
        if not any(self.mean) and set(self.std) == {1.0}:
            return value * (1 / 255)
        factor = tuple(1 / (255 * s) for s in self.std)
        offset = tuple(-m / s for m, s in zip(self.mean, self.std, strict=True))
        return value * _beside(factor, value) + _beside(offset, value)

    def describe(self) -> dict[str, Any]:
        return _described(self.kind, self.at, mean=self.mean, std=self.std)


@part()
class Full:
    """Half-precision values to float32, images in channels_last; nothing else changes."""

    at: str = ""

    kind: ClassVar[str] = "full"

    def draw(self, rng: torch.Generator, n: int) -> Draw:
        return {}

    def apply(self, value: Tensor, draw: Draw) -> Tensor:
        return _channels_last(value)

    def describe(self) -> dict[str, Any]:
        return _described(self.kind, self.at)


@part()
class Standardise:
    """(value − mean) / std per column, dimension 1; 0 where std is 0 (a constant column)."""

    mean: Numbers
    std: Numbers
    at: str = ""

    kind: ClassVar[str] = "standardise"

    def __post_init__(self) -> None:
        _check(self.kind, self.mean, self.std)

    def draw(self, rng: torch.Generator, n: int) -> Draw:
        return {}

    def apply(self, value: Tensor, draw: Draw) -> Tensor:
        factor = tuple(1 / s if s else 0.0 for s in self.std)
        return (value - _beside(self.mean, value)) * _beside(factor, value)

    def describe(self) -> dict[str, Any]:
        return _described(self.kind, self.at, mean=self.mean, std=self.std)


@part()
class Impute:
    """Missing values (NaN) become `fill`, one number per column, dimension 1."""

    fill: Numbers
    at: str = ""

    kind: ClassVar[str] = "impute"

    def draw(self, rng: torch.Generator, n: int) -> Draw:
        return {}

    def apply(self, value: Tensor, draw: Draw) -> Tensor:
        return torch.where(value.isnan(), _beside(self.fill, value), value)

    def describe(self) -> dict[str, Any]:
        return _described(self.kind, self.at, fill=self.fill)


KINDS: dict[str, type[Any]] = {t.kind: t for t in (Scale, Full, Standardise, Impute)}


def transform_from(described: Mapping[str, Any]) -> Transform:
    """The transform that `describe` wrote down."""
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in described.items()}
    kind = str(fields.pop("kind", ""))
    if kind not in KINDS:
        raise unknown("transform", kind, KINDS)
    try:
        made: Transform = KINDS[kind](**fields)
    except TypeError as why:
        raise DataError(f"transform {kind!r} has the wrong fields ({why})") from None
    return made


def prepared(value: Tensor, transforms: tuple[Transform, ...]) -> Tensor:
    """`value` after all of `transforms`, which must be free of chance."""
    for transform in transforms:
        value = transform.apply(value, {})
    return value


def _check(kind: str, mean: Numbers, std: Numbers) -> None:
    if not mean or len(mean) != len(std):
        raise DataError(f"{kind}: mean has {len(mean)} numbers and std {len(std)}; give as many")


def _described(kind: str, at: str, **numbers: Numbers) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": kind, **{k: list(v) for k, v in numbers.items()}}
    return {**found, "at": at} if at else found


def _beside(numbers: Numbers, value: Tensor) -> Tensor:
    """One number per index of dimension 1, shaped to broadcast."""
    tensor = constant(numbers, value)
    return tensor if len(numbers) == 1 else tensor.view(-1, *(1,) * (value.dim() - 2))


def _channels_last(value: Tensor) -> Tensor:
    """As float32; conversion and layout in one copy."""
    if value.dim() != 4:
        return value.float()
    try:
        return value.to(torch.float32, memory_format=torch.channels_last)
    except RuntimeError:  # under vmap there is a fifth dimension, and the layout is vmap's matter
        return value.float()


IMAGENET = Scale((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
