"""GA (Zhang et al., CVPR 2023): sites for which merging costs most gain weight in the merge.

R. Zhang, Q. Xu, J. Yao, Y. Zhang, Q. Tian, Y. Wang: Federated Domain Generalization with
Generalization Adjustment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from torch import nn

from feddg.data.domain import Examples
from feddg.errors import ConfigError, check_choices
from feddg.local import Job
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.packets import Inbox, Reply, State
from feddg.tasks import Scores
from feddg.trees import Tree


@dataclass(frozen=True)
class GA(Wrapper):
    """Generalisation adjustment around any method whose merge heeds the sites' weights.

        G_i  = E_i(model sent in round r) - E_i(own model of the last round it took part in)
        a_i' = max(0, a_i + d^r (G_i - mu) / max_j |G_j - mu|),   d^r = (1 - r/R) d
        a_i  = a_i' / sum_j a_j'                                                      (Eq. 3)

    a starts at 1/M over all sites, also those that join later. A site that is absent, or has no
    earlier model, has no gap: its a_i' is a_i, and mu and the maximum are of the others. Equal
    gaps move nothing. The merge uses a, rescaled over the sites present, in place of their
    weights. E is what `predictor` scores, in eval mode and unaugmented: of the model sent, and of
    the reply. Sends: the gap. Keeps at a site: one score.

    step      d; 0 is the uniform control
    gap, on   what E measures (accuracy stands for the error, 1 - accuracy), on which of its data
    centred   subtract mu
    signed    divide by Eq. 3's own max_j (G_j - mu), with which a step can exceed d^r
    capped    clip a_i' at 1, too
    delay     rounds by which the decay lags: d^r = (1 - (r - delay)/R) d

    `official` is what the public code runs: a third of its step 0.2, a decay that starts at
    1 + 1/R (it also runs R + 1 rounds), no mu.
    """

    inner: Method = FedAvg()
    step: float = 0.05
    decay: bool = True
    gap: Literal["loss", "accuracy"] = "loss"
    on: Literal["train", "val"] = "train"
    centred: bool = True
    signed: bool = False
    capped: bool = False
    delay: int = 0

    claims: ClassVar[frozenset[str]] = frozenset({"weights"})
    outermost: ClassVar[bool] = True
    own: ClassVar[Reveals] = Reveals(
        {"ga": "how much worse the model it was sent is on its data than its own last one"},
        server_sees="numbers",
    )
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "official": {
            "step": 0.2 / 3, "gap": "accuracy", "on": "val", "centred": False, "capped": True,
            "delay": 2,
        }
    }  # fmt: skip

    def __post_init__(self) -> None:
        check_choices("ga", self)
        if self.step < 0:
            raise ConfigError(f"ga: step must not be negative, and is {self.step}")
        super().__post_init__()

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        return self.inner.init(model, sites).noting("ga", dict.fromkeys(sites, 1 / len(sites)))

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        data, before = self.data(job), memory.get("ga")
        if before is not None:
            sent = self.badness((yield job.evaluation(self.predictor(inbox, job.model), data)))
        reply, memory = yield from self.inner.local_update(inbox, job, memory)
        own = self.badness((yield job.evaluation(self.predictor(reply, job.model), data)))
        if before is not None:
            reply = reply.noting("ga", sent - before)
        return reply, {**memory, "ga": own}

    def data(self, job: Job) -> Examples:
        if self.on == "train":
            return job.train
        if job.site is None or job.site.val is None:
            raise ConfigError(f"ga(on='val'): {job.name} has no validation data; hold some out")
        return job.site.val

    def badness(self, scores: Scores) -> float:
        """E: the lower, the better."""
        if self.gap not in scores:
            known = ", ".join(scores)
            raise ConfigError(f"ga(gap={self.gap!r}): the task has {known}; take gap='loss'")
        return scores["loss"] if self.gap == "loss" else 1 - scores["accuracy"]

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        gaps = {r.site: float(r.notes["ga"]) for r in replies if "ga" in r.notes}
        say = self.adjusted(state.notes["ga"], gaps, self.size(job.round, job.rounds))
        present = sum(say[r.site] for r in replies)
        weighed = [
            replace(r, weight=say[r.site] / present if present else 1 / len(replies))
            for r in replies
        ]
        after = yield from self.inner.aggregate(state, weighed, job)
        return after.noting("ga", say).tracing("ga", {"weights": say, "gaps": gaps})

    def size(self, round: int, rounds: int) -> float:
        """d^r."""
        return self.step * (1 - (round - self.delay) / rounds if self.decay else 1.0)

    def adjusted(self, say: Tree, gaps: dict[str, float], size: float) -> dict[str, float]:
        """Eq. 3. Gaps that differ by rounding only are equal."""
        mean = sum(gaps.values()) / len(gaps) if gaps and self.centred else 0.0
        moves = {site: gap - mean for site, gap in gaps.items()}
        top = max((m if self.signed else abs(m) for m in moves.values()), default=0.0)
        if abs(top) <= 1e-9 * max(map(abs, gaps.values()), default=0.0):
            return dict(say)
        raw = {k: max(a + size * moves.get(k, 0.0) / top, 0.0) for k, a in say.items()}
        raw = {k: min(a, 1.0) for k, a in raw.items()} if self.capped else raw
        total = sum(raw.values())
        return {k: a / total for k, a in raw.items()} if total else dict(say)
