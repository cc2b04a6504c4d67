"""Images by frequency: the amplitude carries style, the phase carries content."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from feddg.data.levels import levels
from feddg.errors import ConfigError
from feddg.local import Job
from feddg.trees import Tensors, part


def need_images(job: Job, method: str) -> None:
    """Refuse tables: a spectrum or a patch needs rows and columns of pixels."""
    shape = tuple(job.train.store.shape)
    if len(shape) != 4:
        raise ConfigError(
            f"{method} needs images (example, channel, row, column), but {job.name}'s data has the"
            f" shape {shape}; choose a method that works on any data, such as fedprox"
        )


def mixed(x: Tensor, other: Tensor, share: Tensor) -> Tensor:
    """Images with the phase of `x` and the amplitude (1 - share) |F x| + share |F other|."""
    spectrum = torch.fft.rfft2(x)  # half of it: that of a real image is symmetric
    amplitude = torch.lerp(spectrum.abs(), torch.fft.rfft2(other).abs(), share)
    return torch.fft.irfft2(torch.polar(amplitude, spectrum.angle()), s=x.shape[-2:])


@part()
class AmplitudeMix:
    """Other images' amplitudes, for the whole batch with probability p or not at all.

    Image i gets (1 - l) |F x_i| + l |F x_j| for a shuffled j and its own l ~ U(0, strength).
    """

    p: float
    strength: float
    at: str = ""

    def draw(self, rng: Generator, n: int) -> Tensors:
        return {
            "on": torch.rand((), generator=rng) < self.p,
            "other": torch.randperm(n, generator=rng),
            "share": self.strength * torch.rand(n, 1, 1, 1, generator=rng),
        }

    def apply(self, value: Tensor, draw: Tensors) -> Tensor:
        whole = value.dtype == torch.uint8
        x = value.float() if whole else value
        both = mixed(x, x[draw["other"]], draw["share"])
        return torch.where(draw["on"], levels(both) if whole else both, value)


def half_width(images: Tensor, window: float) -> int:
    """b of the (2b+1)-wide square about frequency zero; window 0 is that frequency alone."""
    return int(min(images.shape[-2:]) * window)


def low_amplitude(x: Tensor, b: int) -> Tensor:
    """The centred amplitude spectrum's middle, ... x (2b+1) x (2b+1), over the number of pixels.

    So at frequency zero it is |mean of x|, whatever the size of the image.
    """
    amplitude = torch.fft.fftshift(torch.fft.fft2(x, norm="forward").abs(), dim=(-2, -1))
    h, w = (n // 2 for n in x.shape[-2:])
    return amplitude[..., h - b : h + b + 1, w - b : w + b + 1]


def with_low_amplitude(x: Tensor, low: Tensor, share: Tensor) -> Tensor:
    """`x` with its low frequencies' amplitude moved to `low` by `share`; its phase stays."""
    spectrum = torch.fft.fftshift(torch.fft.fft2(x, norm="forward"), dim=(-2, -1))
    b = low.shape[-1] // 2
    (rows, columns), (h, w) = x.shape[-2:], (n // 2 for n in x.shape[-2:])
    about = (w - b, max(columns - w - b - 1, 0), h - b, max(rows - h - b - 1, 0))
    inside = F.pad(torch.ones_like(low), about)
    amplitude = torch.lerp(spectrum.abs(), F.pad(low, about), share * inside)
    changed = torch.fft.ifftshift(torch.polar(amplitude, spectrum.angle()), dim=(-2, -1))
    return torch.fft.ifft2(changed, norm="forward").real
