"""Which round is reported. The rule's name stands in every table's title.

The default never looks at the target; `oracle` does, and is named for it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from feddg.errors import ConfigError, unknown
from feddg.tasks import Task

Record = dict[str, Any]  # one line of results.jsonl


@dataclass(frozen=True)
class Rule:
    """Picks the round with the best score, the earliest of equals.

    The score is the mean over the parts whose names begin with `prefix`; without one, the last
    round is picked.
    """

    name: str
    line: str
    prefix: str = ""
    remedy: str = ""

    def check(self, parts: Iterable[str]) -> None:
        """Before training: is there what the rule selects by?"""
        if self.prefix and not any(name.startswith(self.prefix) for name in parts):
            raise ConfigError(
                f"selection {self.name!r} needs {self.line}, which this run does not have;"
                f" {self.remedy}"
            )

    def score(self, record: Record, task: Task) -> float | None:
        """The higher, the better; None where nothing is known."""
        if not self.prefix:
            return None
        parts = [v for k, v in record["scores"].items() if k.startswith(self.prefix)]
        found = [v[task.metric] for v in parts if v.get(task.metric) is not None]
        if not found:
            return None
        return fmean(found) if task.higher_is_better else -fmean(found)

    def pick(self, records: Sequence[Record], task: Task) -> Record:
        if not records:
            raise ConfigError("there are no rounds to select from yet")
        scored = [(self.score(r, task), r) for r in records]
        known = [(s, r) for s, r in scored if s is not None]
        return max(known, key=lambda pair: pair[0])[1] if known else records[-1]


RULES = {
    r.name: r
    for r in (
        Rule("last", "the last round"),
        Rule(
            "source-val", "validation data at the sources", "val/",
            "hold out a share of the sources' data (--share 0.2)",
        ),
        Rule("domain-val", "a validation domain", "validation/", "name one (--validation)"),
        Rule("oracle", "the target's labels", "test/", "hold out a domain (--target)"),
    )
}  # fmt: skip


def rule(name: str) -> Rule:
    if name not in RULES:
        raise unknown("selection", name, RULES)
    return RULES[name]
