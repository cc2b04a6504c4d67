"""FedADG (Zhang et al., 2021): every site's features shall look like a generator's, by class."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import nn

from feddg.errors import ConfigError, within
from feddg.local import Job, TaskLoss
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.models import anatomy
from feddg.packets import Inbox, Reply, State
from feddg.parts.adversary import Adversaries, Sizes
from feddg.parts.shared import averaged, seeded_by, width
from feddg.tasks import Classification
from feddg.trees import Tree, moved


@dataclass(frozen=True)
class FedADG(Wrapper):
    """alpha (smoothed task loss) + (1 - alpha) (how well the discriminator tells the features).

    Sends: the model and the generator, which is averaged like it. Keeps: the discriminator.

    One step moves all three parties by their own loss, where the released code moves the
    discriminator first and the others against it, each with its own optimiser; its rate for
    those two, 0.7 of the network's, is `rate`, a factor of their losses (for SGD the same). The
    random projection of the features is fixed, which the code also trains. Its epochs of plain
    training at the start of every round, and the choice of the epoch that is best on
    validation data, are left out. label_smoothing = 0 leaves the recipe's.
    """

    inner: Method = FedAvg()
    alpha: float = 0.85
    label_smoothing: float = 0.2
    rate: float = 0.7

    own: ClassVar[Reveals] = Reveals({"fedadg": "the weights of the generator of features"})

    def __post_init__(self) -> None:
        super().__post_init__()
        within("fedadg: alpha", self.alpha, 0, 1)
        within("fedadg: label_smoothing", self.label_smoothing, 0, 1)
        within("fedadg: rate", self.rate)

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        head = anatomy(model).head
        classes = getattr(model.get_submodule(head), "out_features", 0)
        sizes = Sizes(width(model, head), classes)
        state = self.inner.init(model, sites)
        start = sizes.generator(seeded_by(model, "fedadg"))
        return state.noting("fedadg", moved(start, state.model.vector.device))

    def broadcast(self, state: State, round: int) -> Inbox:
        return self.inner.broadcast(state, round).noting("fedadg", state.notes["fedadg"])

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        layers = anatomy(job.model)
        if not isinstance(job.task, Classification):
            raise ConfigError("fedadg generates features of classes: it needs a classification")
        if not any(isinstance(p, TaskLoss) for p in job.parts):
            raise ConfigError("fedadg finds no plain task loss to weigh; another method took it")
        sizes = Sizes(width(job.model, layers.head), job.task.outputs)
        before = memory.get("learned", {}).get("fedadg", {})
        at = inbox.model.vector.device
        judge = before.get("discriminator") or moved(sizes.discriminator(job.rng("fedadg")), at)
        own = {"generator": dict(inbox.notes["fedadg"]), "discriminator": dict(judge)}
        against = Adversaries(
            own, sizes.projection().to(at), sizes, layers.features, 1 - self.alpha, self.rate
        )
        reply, memory = yield from self.inner.local_update(
            inbox, self.weighed(job).adding(against), memory
        )
        return reply.noting("fedadg", memory["learned"]["fedadg"]["generator"]), memory

    def weighed(self, job: Job) -> Job:
        """The task's loss by alpha, smoothed."""
        parts = tuple(
            replace(p, weight=p.weight * self.alpha) if isinstance(p, TaskLoss) else p
            for p in job.parts
        )
        recipe = job.recipe
        if self.label_smoothing:
            smooth = self.label_smoothing
            recipe = replace(recipe, label_smoothing=smooth, first_label_smoothing=smooth)
        return replace(job, parts=parts, recipe=recipe)

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        state = yield from self.inner.aggregate(state, replies, job)
        return state.noting("fedadg", averaged(replies, "fedadg"))
