"""Which round is reported. The rule's name stands in every table's title.

The default never looks at the target; `oracle` does, and is named for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from feddg.benchmark.records import Record
from feddg.errors import ConfigError, unknown

Score = Callable[[Record, str], float | None]  # a round's score by a metric; None: no data for it


@dataclass(frozen=True)
class Rule:
    """Picks the round with the best score, the earliest of equals; no score: the last round."""

    name: str
    line: str
    score: Score | None = None

    def pick(self, records: Sequence[Record], metric: str) -> Record:
        if not records:
            raise ConfigError("there are no rounds to select from yet")
        if self.score is None:
            return records[-1]
        scored = [(self.score(r, metric), r) for r in records]
        known = [(s, r) for s, r in scored if s is not None]
        if not known:
            raise ConfigError(
                f"selection {self.name!r} needs {self.line}, which this run does not have"
            )
        return max(known, key=lambda pair: pair[0])[1]


def mean_of(prefix: str) -> Score:
    def score(record: Record, metric: str) -> float | None:
        found = [v[metric] for k, v in record["scores"].items() if k.startswith(prefix)]
        return fmean(found) if found else None

    return score


RULES = {
    r.name: r
    for r in (
        Rule("last", "the last round"),
        Rule("source-val", "validation data at the sources", mean_of("val/")),
        Rule("domain-val", "a validation domain", mean_of("validation/")),
        Rule("oracle", "the target's labels", mean_of("test/")),
    )
}


def rule(name: str) -> Rule:
    if name not in RULES:
        raise unknown("selection", name, RULES)
    return RULES[name]
