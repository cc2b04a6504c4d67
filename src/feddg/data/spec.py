"""What is known of a data set that has a name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from feddg.data.domain import Collection
from feddg.errors import ConfigError, unknown

Parser = Callable[[str], Any]


@dataclass(frozen=True)
class DataSpec:
    """An entry of `feddg data list`; `options` turns the text of an option into its value.

    counts    the published number of examples of every domain, for `feddg data check`
    layouts   the layouts on disk that are recognised, each in words
    """

    name: str
    title: str
    summary: str
    size: str
    licence: str
    source: str
    layout: str
    protocols: tuple[str, ...]
    embedded: bool
    open: Callable[..., Collection]
    options: Mapping[str, Parser]
    targeted: bool = False  # whether `open` wants to know which domain is the target
    notes: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    layouts: tuple[str, ...] = ()

    def parse(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Options as values; a misspelt name or an impossible value is a `ConfigError`."""
        for name in given:
            if name not in self.options:
                raise unknown(f"option of {self.name}", name, self.options)
        values = {}
        for name, text in given.items():
            try:
                values[name] = self.options[name](text)
            except ValueError:
                raise ConfigError(f"option {name}={text!r} of {self.name} is no number") from None
        return values
