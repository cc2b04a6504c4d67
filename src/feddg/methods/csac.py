"""CSAC (Yuan et al., TKDE): fuse layer by layer, calibrate against the site's own first model.

J. Yuan, X. Ma, D. Chen, F. Wu, L. Lin: Collaborative Semantic Aggregation and Calibration for
Federated Domain Generalization. IEEE Transactions on Knowledge and Data Engineering.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Any, ClassVar, Literal, TypeVar

from torch import Tensor

from feddg.errors import ConfigError, check_choices, within
from feddg.local import Job, TaskLoss
from feddg.merges.layerwise import ByLayerDivergence, Distance, Per, Strategy
from feddg.method import Method, Reveals, Visit, Work, Wrapper, chain, title
from feddg.methods.fedavg import FedAvg
from feddg.packets import Inbox, Reply, State
from feddg.parts.calibration import Calibration, acquisition, adopted
from feddg.parts.matching import Kernels, Matching, Pairs, Side
from feddg.parts.projections import SIDES
from feddg.trees import Tree
from feddg.weights import Weights

T = TypeVar("T")


@dataclass(frozen=True)
class CSAC(Wrapper):
    """Collaborative semantic aggregation and calibration.

    A site's first visit, whatever the round, is semantic acquisition (Eq. 2): the recipe's first
    round with label smoothing. What comes of it stays at the site, frozen, as L^h. Every merge
    weighs each layer by its divergence (Eq. 3-4). Every later visit calibrates a copy of the fused
    model: lambda L_AL + L_AR (Eq. 5-11; `lam` is lambda). So T collaboration rounds are a run of
    T + 1. Sends: the model, two variances. Keeps: L^h and Proj.

    alignment  cross; same: l = m only; logits: only these, as the public code does; none
    kernels    of the MMD: their mean, k(x, x) = 1 as in the papers that CSAC cites for it; or their
               sum, as in the public code (docs/adr/0013)
    over       the layers of which alpha is a share: local, as the equations sum over m; fused
    proj       trained along and kept; frozen; renewed: trained, new in every visit
    sides      Proj of the fused and of the local model: apart, as in the public code; shared
    layers     names of submodules; default: the network's own taps
    channels, size  what Proj maps to; 0: the size of the last adopted layer
    """

    inner: Method = FedAvg()
    lam: float = 0.6
    label_smoothing: float = 0.1
    strategy: Strategy = "divergence"
    distance: Distance = "l2"
    per: Per = "layer"
    alignment: Pairs = "cross"
    position: bool = True
    channel: bool = True
    cross_entropy: bool = True
    discrepancy: Literal["mmd", "mse"] = "mmd"
    estimator: Literal["biased", "off-diagonal"] = "biased"
    kernels: Kernels = "mean"
    over: Side = "local"
    proj: Literal["trained", "frozen", "renewed"] = "trained"
    sides: Literal["apart", "shared"] = "apart"
    channels: int = 0
    size: int = 0
    teacher: Literal["first", "latest"] = "first"
    layers: tuple[str, ...] = ()
    cache_features: Literal["auto", "on", "off"] = "auto"

    claims: ClassVar[frozenset[str]] = frozenset({"merge"})
    own: ClassVar[Reveals] = Reveals({"csac": "the variance of the projected features, both sides"})
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "official": {
            "alignment": "logits", "label_smoothing": 0.0, "estimator": "off-diagonal",
            "kernels": "sum", "proj": "renewed", "channels": 32, "size": 7, "per": "tensor",
        }
    }  # fmt: skip

    def __post_init__(self) -> None:
        check_choices("csac", self)
        if self.alignment == "none" and not self.cross_entropy:
            raise ConfigError("csac without alignment and without cross_entropy has no loss left")
        super().__post_init__()
        within("csac: label_smoothing", self.label_smoothing, 0, 1)
        for name in ("lam", "channels", "size"):
            within(f"csac: {name}", getattr(self, name))
        apart = [k for k in chain(self.inner) if "heads" in getattr(k, "deploys", ())]
        if apart and self.alignment == "logits":
            raise ConfigError(
                f"csac(alignment='logits') compares the outputs of one classifier, but"
                f" {title(apart[0])} keeps one per site; choose another alignment"
            )

    @property
    def leaf(self) -> FedAvg:
        merge = ByLayerDivergence(self.strategy, self.distance, self.per)
        return FedAvg(merge=merge, weights="uniform")

    @property
    def reveals(self) -> Reveals:
        return self.inner.reveals if self.alignment == "none" else super().reveals

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        own = memory.get("csac", {})
        if "teacher" not in own:
            job = acquisition(job, self.label_smoothing)
            reply, memory = yield from self.inner.local_update(inbox, job, memory)
        else:
            if not self.cross_entropy:
                job = replace(job, parts=tuple(p for p in job.parts if not isinstance(p, TaskLoss)))
            teacher = Weights(own["teacher"], inbox.model.layout)
            reply, memory = yield from self.calibrate(inbox, job, memory, teacher)
        if "teacher" not in own or self.teacher == "latest":
            own = {"teacher": reply.model.vector}
        return reply, {**memory, "csac": own}

    def calibrate(self, inbox: Inbox, job: Job, memory: Tree, teacher: Weights) -> Visit:
        """Eq. 11 from the fused model on."""
        if self.alignment == "none":
            return (yield from self.inner.local_update(inbox, job, memory))
        taps = adopted(job.model, self.layers, self.alignment)
        visit = self.settings(Calibration, how=self.settings(Matching))
        learned = memory.get("learned", {}).get("csac")
        term = visit.term(teacher, taps, job, learned)
        reply, memory = yield from self.inner.local_update(inbox, job.adding(term), memory)
        learned = memory.get("learned", {}).get("csac", term.projection)
        return reply.noting("csac", visit.spread(term, learned, reply.model, teacher, job)), memory

    def settings(self, kind: Callable[..., T], **more: Any) -> T:
        """What this method says of the fields of `kind`, by their names."""
        names = {f.name for f in fields(self)}
        return kind(
            **{k: getattr(self, k) for k in signature(kind).parameters if k in names}, **more
        )

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        state = yield from self.inner.aggregate(state, replies, job)
        noted = {r.site: r.notes.get("csac") for r in replies}
        spread = {
            site: dict(zip(SIDES, both.tolist(), strict=True))
            for site, both in noted.items()
            if isinstance(both, Tensor) and both.shape == (len(SIDES),)  # for the record only
        }
        return state.tracing("csac", {"variance": spread}) if spread else state
