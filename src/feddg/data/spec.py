"""What is known of a data set that has a name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feddg.data.domain import Collection
from feddg.errors import ConfigError, unknown

Parser = Callable[[str], Any]


def one_of(kind: str, known: Iterable[str]) -> Parser:
    def parse(text: str) -> str:
        if text not in known:
            raise unknown(kind, text, known)
        return text

    return parse


def names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def unlike(path: Path) -> float:
    return 0.0


def whole(values: Mapping[str, Any]) -> str:
    return ""


@dataclass(frozen=True)
class DataSpec:
    """An entry of `feddg data list`; `options` turns the text of an option into its value.

    counts    the published number of examples of every domain, for `feddg data check`
    layouts   the layouts on disk that are recognised, each in words
    survey    for images: what lies there, undecoded, with all that is wrong; takes what `open`
              does but how images are read
    lacking   for those without a survey: what a look at the files, and not into them, finds missing
              of what these options would open, in a sentence; "" where nothing is
    likeness  1 where a folder has the layout of this very set, less where something is missing
    made_of   other sets; where all of them are at hand this one is
    yours     the user's own data: `root` has no default
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
    survey: Callable[..., Any] | None = None
    lacking: Callable[[Mapping[str, Any]], str] = whole
    likeness: Callable[[Path], float] = unlike
    made_of: tuple[str, ...] = ()
    yours: bool = False

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
