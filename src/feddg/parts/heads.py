"""Several heads on one extractor: as terms of the loss of it, and as a predictor that they vote in.

A head travels as one vector, laid out by `head_layout`.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import log
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.func import functional_call

from feddg.data.randaugment import RandAugment
from feddg.errors import ConfigError
from feddg.local import Forward, Job
from feddg.models.anatomy import anatomy
from feddg.packets import Reply
from feddg.training import forward
from feddg.trees import Tensors, Tree, part
from feddg.weights import Layout, Weights


def head_layout(model: nn.Module) -> Layout:
    inside = f"{anatomy(model).head}."
    return Layout.of(model).select(lambda k: k.startswith(inside))


def parted(weights: Weights, model: nn.Module) -> tuple[Weights, Tensor]:
    """The extractor, and the head as a vector."""
    at = head_layout(model)
    return weights.select(lambda k: k not in at.names), at.take(weights.layout, weights.vector)


def kept_head(weights: Weights, head: Tensor, model: nn.Module) -> Weights:
    """The same extractor with another head."""
    shared, _ = parted(weights, model)
    return shared.joined(Weights(head, head_layout(model)), weights.layout)


@dataclass(frozen=True)
class Branch:
    """F(A(x)), the features of the augmented batch; of the plain one where there is no A.

    The pass uses its own batch statistics; `statistics` says whether it also moves the running
    ones. A acts on the batch as the model sees it, after the data's own augmentation.
    """

    on: Layout  # of a head
    head: str  # its name
    augment: RandAugment | None = None
    statistics: bool = False

    @property
    def taps(self) -> tuple[str, ...]:
        return (f"{self.head}:in",)

    def draw(self, rng: Generator, n: int) -> Tensors:
        return self.augment.draw(rng, n) if self.augment else {}

    def features(self, fwd: Forward) -> Tensor:
        [tap] = self.taps
        if self.augment is None:
            return fwd.taps[tap]
        values = fwd.values if self.statistics else fwd.apart
        x = self.augment.apply(fwd.x, fwd.draw)
        return forward(fwd.module, values, x, self.taps, training=True)[1][tap]

    def outputs(self, fwd: Forward, heads: Tensor) -> list[Tensor]:
        """What each head, a row of `heads`, makes of the features."""
        z = self.features(fwd)
        return [self.output(fwd.module, self.on.views(h), z) for h in heads.unbind(0)]

    def output(self, module: nn.Module, values: Tensors, z: Tensor) -> Tensor:
        named = {k.removeprefix(f"{self.head}."): v for k, v in values.items()}
        answer: Tensor = functional_call(module.get_submodule(self.head), named, (z,))
        return answer


class OnBranch:
    """A term of the loss that reads a branch's features."""

    branch: Branch

    @property
    def taps(self) -> tuple[str, ...]:
        return self.branch.taps

    def draw(self, rng: Generator, n: int) -> Tensors:
        return self.branch.draw(rng, n)


@part("heads")
class FrozenHeads(OnBranch):
    """Σ_j CE(C'_j(F(A(x))), y): the second summand of COPA's Eq. (5). It trains F alone."""

    heads: Tensor  # a row each
    branch: Branch

    def loss(self, fwd: Forward) -> Tensor:
        outputs = self.branch.outputs(fwd, self.heads)
        return torch.stack([fwd.task.loss(o, fwd.y, fwd.smoothing) for o in outputs]).sum()


@part()
class OwnHead(OnBranch):
    """CE(C(F(A(x))), y) with the site's own head, which it trains too: more data, as it were."""

    branch: Branch

    def loss(self, fwd: Forward) -> Tensor:
        own = {k: fwd.values[k] for k in self.branch.on.names}
        output = self.branch.output(fwd.module, own, self.branch.features(fwd))
        return fwd.task.loss(output, fwd.y, fwd.smoothing)


@part("learned")
class Consistency(OnBranch):
    """‖ mean_j p(C_j(F(A(x)))) − p(C(F(x))) ‖² per example (Zhou et al., DAEL, TIP 2021).

    The others' mean must follow the site's own head, the expert; they are trained along.
    """

    learned: Tensor  # a row per head
    branch: Branch
    key: ClassVar[str] = "heads"

    def loss(self, fwd: Forward) -> Tensor:
        outputs = self.branch.outputs(fwd, fwd.theta[self.key])
        mean = torch.stack([probabilities(o) for o in outputs]).mean(0)
        expert = probabilities(fwd.logits.detach())
        return (mean - expert).square().sum(1).mean()


TERMS: dict[str, type[FrozenHeads | Consistency]] = {
    "cofc": FrozenHeads, "cofc-plain": FrozenHeads, "consistency": Consistency,
}  # fmt: skip
Collaboration = Literal["cofc", "cofc-plain", "augmented", "consistency", "none"]


def collaboration(
    kind: Collaboration, others: Tensors, augment: RandAugment | None, statistics: bool, job: Job
) -> tuple[Any, ...]:
    """What a site trains on besides its own cross-entropy, given the others' heads."""
    plain = None if kind == "cofc-plain" else augment
    branch = Branch(head_layout(job.model), anatomy(job.model).head, plain, statistics)
    if kind == "augmented":
        if augment is None:
            raise ConfigError("copa: branch='augmented' needs images; tables have no RandAugment")
        return (OwnHead(branch),)
    if kind == "none" or not others:
        return ()
    return (TERMS[kind](torch.stack([others[k] for k in sorted(others)]), branch),)


def trained(others: Tensors, memory: Tree) -> tuple[Tensors, Tree]:
    """The copies of others' heads that `Consistency` has trained, and the memory without them."""
    learned = dict(memory.get("learned", {}))
    if Consistency.key not in learned:
        return {}, memory
    copies = learned.pop(Consistency.key).unbind(0)
    return dict(zip(sorted(others), copies, strict=True)), {**memory, "learned": learned}


def probabilities(output: Tensor) -> Tensor:
    """Softmax; a single output is a real value, and stays."""
    return output if output.shape[1] == 1 else output.softmax(1)


def assembled(heads: Tensors, replies: Sequence[Reply]) -> Tensors:
    """Every site's head as it was sent; several copies of one are averaged by the sites' say."""
    after = dict(heads)
    for site in sorted({k for r in replies for k in r.notes["heads"]}):
        copies = [(r.weight, r.notes["heads"][site]) for r in replies if site in r.notes["heads"]]
        total = sum(w for w, _ in copies)
        after[site] = torch.stack([(w / total) * h for w, h in copies]).sum(0)
    return after


def grown(heads: Tensors, first: Tensor) -> Tensors:
    """The heads that have been trained: those that are not as all began."""
    return {k: head for k, head in heads.items() if not first.equal(head)}


def voting(found: nn.Module, model: nn.Module, heads: Tensors, average: str) -> nn.Module:
    """`found`, which has `model`'s structure, with the vote of `heads` in place of its head."""
    name, at = anatomy(model).head, head_layout(model)
    made = []
    for k in sorted(heads):
        head = deepcopy(model.get_submodule(name))
        values = {v.removeprefix(f"{name}."): x for v, x in at.views(heads[k]).items()}
        head.load_state_dict(values, strict=False)
        made.append(head)
    found.set_submodule(name, Vote(made, average))
    return found


class Vote(nn.Module):
    """log mean_i softmax(C_i(z)); with `average` "logits" the mean of outputs.

    A single output is a real value, of which the mean is taken in any case.
    """

    def __init__(self, heads: Sequence[nn.Module], average: str = "softmax"):
        super().__init__()
        self.heads, self.average = nn.ModuleList(heads), average

    def forward(self, z: Tensor) -> Tensor:
        outputs = torch.stack([head(z) for head in self.heads])
        if self.average == "logits" or outputs.shape[-1] == 1:
            return outputs.mean(0)
        return F.log_softmax(outputs, -1).logsumexp(0) - log(len(outputs))
