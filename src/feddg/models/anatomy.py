"""Where a network's head and its layers of interest are, by the names of its submodules."""

from dataclasses import dataclass

from torch import nn

from feddg.errors import ConfigError


@dataclass(frozen=True)
class Anatomy:
    """The network's last layer, and the layers on whose outputs methods act by default.

    The output is head(features). `taps` go from early to late (CSAC's calibration, MixStyle).
    """

    head: str
    taps: tuple[str, ...] = ()

    @property
    def features(self) -> str:
        """The tap that holds the head's input."""
        return f"{self.head}:in"


def anatomy(model: nn.Module) -> Anatomy:
    """A module's own `anatomy`, or a guess: the last linear layer, the last three convolutions."""
    own = getattr(model, "anatomy", None)
    if isinstance(own, Anatomy):
        return own
    modules = dict(model.named_modules())
    linear = [k for k, m in modules.items() if isinstance(m, nn.Linear)]
    if not linear:
        raise ConfigError(
            f"{type(model).__name__} has no linear layer that could be its head; give it an"
            " attribute `anatomy = Anatomy(head=..., taps=...)`"
        )
    convolutions = [k for k, m in modules.items() if isinstance(m, nn.Conv1d | nn.Conv2d)]
    return Anatomy(linear[-1], tuple((convolutions or linear[:-1])[-3:]))
