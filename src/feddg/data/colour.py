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
        """In place, in memory that stays in the cache."""
        out, active = torch.empty_like(value), self.active(value)
        whole = value.dtype == torch.uint8
        x = torch.empty_like(value[:1], dtype=torch.float32 if whole else value.dtype)
        room = torch.empty_like(x[0, 0].expand(4, -1, -1))
        for i, (fs, turns) in enumerate(zip(factors.tolist(), order.tolist(), strict=True)):
            x.copy_(value[i : i + 1])
            for k in (k for k in turns if active[k]):
                turn_(x[0], fs[HUE], room) if k == HUE else self.blend_(x, k, fs[k], whole)
            out[i] = x[0].round_().to(torch.int16) if whole else x[0]  # faster than at once
        return out

    @staticmethod
    def blend_(x: Tensor, kind: int, factor: float, whole: bool) -> None:
        if kind == BRIGHTNESS:
            x.mul_(factor)
        else:
            base = luminance(x)
            base = base.mean() if kind == CONTRAST else base
            x.mul_(factor).add_(base, alpha=1 - factor)
        if whole:
            x.clamp_(0, TOP)

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
            out = value.clone()
            for i in draw["grey"].nonzero()[:, 0].tolist():
                out[i] = greyed(value[i : i + 1])[0]
            return out
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
    hue = torch.copysign((g + b - r - low) / chroma.clamp_min(TINY) + 1, g - b)
    away = (hue + 6 * turns) - constant(PEAKS, x)[:, None, None]
    away = (away - 6 * (away * (1 / 6)).round()).abs()
    return low + chroma * (2 - away).clamp(0, 1)


def turn_(x: Tensor, turns: float, room: Tensor) -> None:
    """`turned` of one image in place; `room` is four planes of its size."""
    (r, g, b), (low, chroma, hue, other) = x, room
    torch.minimum(torch.minimum(r, g, out=low), b, out=low)
    torch.maximum(torch.maximum(r, g, out=chroma), b, out=chroma).sub_(low)
    torch.add(g, b, out=hue).sub_(r).sub_(low)
    hue.div_(torch.clamp_min(chroma, TINY, out=other)).add_(1)
    torch.copysign(hue, torch.sub(g, b, out=other), out=hue).add_(6 * turns)
    for plane, peak in zip(x, PEAKS, strict=True):
        torch.sub(hue, peak, out=plane)
        plane.sub_(torch.mul(plane, 1 / 6, out=other).round_(), alpha=6)
        plane.abs_().neg_().add_(2).clamp_(0, 1).mul_(chroma).add_(low)


TINY = 1e-12  # instead of no chroma at all, where there is no hue either
