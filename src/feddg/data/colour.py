"""Colour jitter and grayscale: on uint8 images as torchvision's, each image with its own draw."""

import torch
from torch import Generator, Tensor

from feddg.constants import constant
from feddg.data.levels import TOP, fused, levels, singly
from feddg.errors import ConfigError
from feddg.trees import Tensors, part

LUMA = (0.299, 0.587, 0.114)  # ITU-R 601
BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)
PEAKS = (0.0, 2.0, -2.0)  # the hues of red, green and blue, in sixths of the circle
Factor = Tensor | float


@part()
class Jitter:
    """Brightness, contrast, saturation and hue, in an order of each image's own.

    As torchvision's ColorJitter: x ← fx + (1 − f)·base, f in 1 ± what is given, where base is
    black for the brightness, the mean of the image's luminance for the contrast, the pixel's
    luminance for the saturation; the hue turns by ± `hue` of the circle in HSV. Images that have
    not three channels keep hue and saturation; their luminance is the mean of the channels.
    """

    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.4
    at: str = ""

    def __post_init__(self) -> None:
        if not all(0 <= v <= 1 for v in self.widths[:HUE]) or not 0 <= self.hue <= 0.5:
            given = ", ".join(f"{v:g}" for v in self.widths)
            raise ConfigError(
                "jitter: brightness, contrast and saturation must be in 0…1 and hue in 0…0.5,"
                f" not {given}"
            )

    @property
    def widths(self) -> tuple[float, ...]:
        return self.brightness, self.contrast, self.saturation, self.hue

    def draw(self, rng: Generator, n: int) -> Tensors:
        """`factors` n×4 by number (the hue in turns); `order` n×4: which is first, second, …"""
        spread = (2 * torch.rand(n, 4, generator=rng) - 1) * torch.tensor(self.widths)
        factors = spread + torch.tensor([1.0, 1.0, 1.0, 0.0])
        return {"factors": factors, "order": torch.rand(n, 4, generator=rng).argsort(1)}

    def apply(self, value: Tensor, draw: Tensors) -> Tensor:
        if program := fused(value, 3):
            return program.jitter(value, draw["factors"], draw["order"])
        jittered = self.one_by_one if singly(value) else self.at_once
        return jittered(value, draw["factors"], draw["order"])

    def active(self, value: Tensor) -> tuple[bool, ...]:
        colours = value.shape[1] == 3
        return tuple(w > 0 and (i < SATURATION or colours) for i, w in enumerate(self.widths))

    def one_by_one(self, value: Tensor, factors: Tensor, order: Tensor) -> Tensor:
        out, active = torch.empty_like(value), self.active(value)
        whole = value.dtype == torch.uint8
        for i, (fs, turns) in enumerate(zip(factors.tolist(), order.tolist(), strict=True)):
            x = value[i : i + 1]
            x = x.float() if whole else x
            for k in (k for k in turns if active[k]):
                x = turned(x, fs[HUE]) if k == HUE else self.blended(x, k, fs[k], whole)
            out[i] = x[0].round().to(torch.int16) if whole else x[0]  # which is faster than at once
        return out

    @staticmethod
    def blended(x: Tensor, kind: int, factor: float, whole: bool) -> Tensor:
        if kind == BRIGHTNESS:
            x = x * factor
        else:
            base = luminance(x)
            base = base.mean() if kind == CONTRAST else base
            x = (x * factor).add_(base, alpha=1 - factor)
        return x.clamp_(0, TOP) if whole else x

    def at_once(self, value: Tensor, factors: Tensor, order: Tensor) -> Tensor:
        """Three blends before the hue's turn and three after it, half of which do nothing."""
        active, whole = self.active(value), value.dtype == torch.uint8
        x = value.float() if whole else value
        ordered = factors.to(x.dtype).gather(1, order)
        turn = torch.arange(4, device=order.device)
        at = (order == HUE).int().argmax(1, keepdim=True)

        def blends(x: Tensor, some: Tensor, turns: range) -> Tensor:
            for t in turns:
                factor = torch.where(some[:, t], ordered[:, t], 1)[:, None, None, None]
                kind = order[:, t, None, None, None]
                grey = luminance(x)
                base = torch.where(kind == CONTRAST, grey.mean((1, 2, 3), keepdim=True), grey)
                x = torch.lerp(torch.where(kind == BRIGHTNESS, 0, base), x, factor)
                x = x.clamp(0, TOP) if whole else x
            return x

        if not active[HUE]:
            some = order < (HUE if active[SATURATION] else SATURATION)
            x = blends(x, some, range(4))
        else:
            x = turned(
                blends(x, turn < at, range(3)), factors[:, HUE].to(x.dtype)[:, None, None, None]
            )
            x = blends(x, turn > at, range(1, 4))
        return levels(x) if whole else x


@part()
class Grayscale:
    """Every channel becomes the luminance, with probability `p`; only of three channels."""

    p: float = 0.1
    at: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise ConfigError(f"grayscale: p must be a probability, not {self.p:g}")

    def draw(self, rng: Generator, n: int) -> Tensors:
        return {"grey": torch.rand(n, generator=rng) < self.p}

    def apply(self, value: Tensor, draw: Tensors) -> Tensor:
        if value.shape[1] != 3:
            return value
        if program := fused(value, 3):
            return program.grayscale(value, draw["grey"])
        if singly(value):
            rows = draw["grey"].nonzero()[:, 0]
            return value.index_copy(0, rows, greyed(value[rows])) if len(rows) else value
        return torch.where(draw["grey"][:, None, None, None], greyed(value), value)


def greyed(value: Tensor) -> Tensor:
    whole = value.dtype == torch.uint8
    grey = luminance(value.float() if whole else value)
    return (levels(grey) if whole else grey).expand(value.shape)


def luminance(x: Tensor) -> Tensor:
    """B×1×H×W; the mean where there are not three channels."""
    if x.shape[1] != 3:
        return x.mean(1, keepdim=True)
    r, g, b = (x[:, i : i + 1] for i in range(3))
    return (r * LUMA[0]).add(g, alpha=LUMA[1]).add(b, alpha=LUMA[2])


def turned(x: Tensor, turns: Factor) -> Tensor:
    """The hue of HSV further by `turns` of the circle; value and saturation stay.

    With m and M a pixel's least and largest channel, C = M − m, the hue in sixths of the circle,
    counted from red, is ±(1 + (g + b − r − m) / C), with the sign of g − b: in the sextants from
    red to cyan that is g, 2 − r and 2 + b of the channels (x − m) / C, and the others mirror them.
    Back: a channel at a distance d from its own hue is m + C·clamp(2 − d, 0, 1).
    """
    r, g, b = (x[:, i : i + 1] for i in range(3))
    low = torch.minimum(torch.minimum(r, g), b)
    chroma = torch.maximum(torch.maximum(r, g), b) - low
    hue = (g + b).sub_(r).sub_(low).div_(chroma.clamp_min(TINY)).add_(1)
    hue = torch.copysign(hue, g - b) + 6 * turns
    away = hue - constant(PEAKS, x)[:, None, None]
    away = away.sub_((away * (1 / 6)).round_(), alpha=6).abs_()
    return away.neg_().add_(2).clamp(0, 1).mul_(chroma).add_(low)


TINY = 1e-12  # instead of no chroma at all, where there is no hue either
