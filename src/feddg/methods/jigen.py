"""JiGen (Carlucci et al., CVPR 2019): solve jigsaw puzzles beside the classification."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from feddg.errors import check_choices, within
from feddg.local import Forward, Job
from feddg.method import Method, Reveals, Visit, Work, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.models import anatomy
from feddg.packets import Inbox, Reply, State
from feddg.parts.passes import again
from feddg.parts.puzzles import TILES, orders, puzzle
from feddg.parts.shared import averaged, width
from feddg.parts.spectra import need_images
from feddg.trees import Tensors, Tree, part


@part("learned", "orders")
class Jigsaw:
    """weight * cross-entropy of the order in which the tiles lie, from the scrambled image."""

    learned: Tensors  # the puzzle head
    orders: Tensor
    weight: float
    ordered: float
    features: str
    taps: tuple[str, ...] = ()
    key: str = "jigen"

    def draw(self, rng: Generator, n: int) -> Tensors:
        order = torch.randint(len(self.orders), (n,), generator=rng)
        return {"order": torch.where(torch.rand(n, generator=rng) < self.ordered, 0, order)}

    def loss(self, fwd: Forward) -> Tensor:
        order, head = fwd.draw["order"], fwd.theta[self.key]
        _, seen = again(fwd, puzzle(fwd.x, self.orders[order]), [self.features])
        logits = F.linear(seen[self.features], head["weight"], head["bias"])
        return self.weight * F.cross_entropy(logits, order)


@dataclass(frozen=True)
class JiGen(Wrapper):
    """Adds a head that names the permutation of 3 x 3 tiles, of 31: 30 and the image in order.

    Sends: the model and, with head='shared', the puzzle head; it says no more than weights do.
    Keeps: with head='local', the puzzle head.

    `weight` and `ordered` (how many images are left in order) as the authors' command for
    ResNet-18. The batch is classified as it is and goes through the network a second time for
    the puzzle; the authors classify the scrambled images too, in one pass. Their tiles also
    lose their colour with p = 0.1, left out here. Sides that 3 does not divide keep a border of
    one or two pixels at the right and below. The puzzle head starts at zero.
    """

    inner: Method = FedAvg()
    weight: float = 0.7
    ordered: float = 0.9
    permutations: int = 30
    head: Literal["shared", "local"] = "shared"

    own: ClassVar[Reveals] = Reveals({"jigen": "the weights of the jigsaw head"})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choices("jigen", self)
        within("jigen: weight", self.weight)
        within("jigen: ordered", self.ordered, 0, 1)
        within("jigen: permutations", self.permutations, 1, factorial(TILES) - 1)

    @property
    def reveals(self) -> Reveals:
        return super().reveals if self.head == "shared" else self.inner.reveals

    def blank(self, model: nn.Module) -> Tensors:
        head = anatomy(model).head
        classes, features = self.permutations + 1, width(model, head)
        like = next(model.get_submodule(head).parameters())
        return {"weight": like.new_zeros(classes, features), "bias": like.new_zeros(classes)}

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        state = self.inner.init(model, sites)
        return state.noting("jigen", self.blank(model)) if self.head == "shared" else state

    def broadcast(self, state: State, round: int) -> Inbox:
        inbox = self.inner.broadcast(state, round)
        return inbox.noting("jigen", state.notes["jigen"]) if self.head == "shared" else inbox

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        need_images(job, "jigen")
        kept = inbox.notes if self.head == "shared" else memory.get("learned", {})
        head = dict(kept.get("jigen") or self.blank(job.model))
        features = anatomy(job.model).features
        every = orders(self.permutations).to(inbox.model.vector.device)
        solve = Jigsaw(head, every, self.weight, self.ordered, features)
        reply, memory = yield from self.inner.local_update(inbox, job.adding(solve), memory)
        if self.head == "shared":
            reply = reply.noting("jigen", memory["learned"]["jigen"])
        return reply, memory

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        state = yield from self.inner.aggregate(state, replies, job)
        return state.noting("jigen", averaged(replies, "jigen")) if self.head == "shared" else state
