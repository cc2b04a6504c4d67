"""KD3A's knowledge vote, consensus focus, and the loss that teaches by voted probabilities.

Predictions are probabilities, sites × examples × classes.
"""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from feddg.local import Forward
from feddg.parts.alignment import Rows
from feddg.trees import Tensors, part

DOUBTFUL = 0.001  # the weight of an example of which no site is sure


def knowledge_vote(p: Tensor, gate: float) -> tuple[Tensor, Tensor]:
    """What the sites agree on for every example, N×C, and how many of them support it, N.

    1. Only predictions above the gate count. 2. Their sum decides the class; who says another
    is left out. 3. The mean of the others is the knowledge. Where nobody is sure it is the mean
    of all, with next to no weight.
    """
    sure = p.amax(2) > gate
    said = p.argmax(2)
    consensus = (p * sure[..., None]).sum(0).argmax(1)
    support = sure & (said == consensus)
    count = support.sum(0)
    mean = (p * support[..., None]).sum(0) / count.clamp_min(1)[:, None]
    nobody = count == 0
    knowledge = torch.where(nobody[:, None], p.mean(0), mean)
    return knowledge, torch.where(nobody, DOUBTFUL, count.to(p))


def quality(p: Tensor, gate: float) -> float:
    """Σ_x n(x) max p(x): how much these sites know together."""
    if not len(p):
        return 0.0
    knowledge, support = knowledge_vote(p, gate)
    return float((support * knowledge.amax(1)).sum())


def consensus_focus(p: Tensor, gate: float) -> list[float]:
    """How much the sites know together less what they know without site k; never below 0."""
    whole, every = quality(p, gate), range(len(p))
    return [max(whole - quality(p[[j for j in every if j != k]], gate), 0.0) for k in every]


def focused(sizes: Sequence[float], focus: Sequence[float]) -> list[float]:
    """Shares N_k CF_k / Σ N CF; by size alone where no site adds anything."""
    say = [n * c for n, c in zip(sizes, focus, strict=True)]
    if not sum(say) > 0:
        say = list(sizes)
    return [a / sum(say) for a in say]


@part()
class Distilled:
    """mean_x n(x) CE(p(x), q(x)), with the rows of p ("knowledge") and n ("support").

    mixup: images and knowledge of the batch are mixed, by one λ ~ Beta(2, 2), the middle of three
    uniform numbers, with those of the batch in another order; n stays that of the first image.
    """

    columns: Rows
    mixup: bool = True
    at: str = ""
    taps: tuple[str, ...] = ()

    def draw(self, rng: Generator, n: int) -> Tensors:
        share = torch.rand(3, generator=rng).median()
        order = torch.randperm(n, generator=rng)
        return {"share": share, "order": order} if self.mixup else {}

    def apply(self, value: Tensor, draw: Tensors) -> Tensor:
        return self.mixed(value, draw)

    def loss(self, fwd: Forward) -> Tensor:
        target = self.mixed(fwd.columns["knowledge"], fwd.draw)
        cost = -(target * fwd.logits.log_softmax(1)).sum(1)
        return (fwd.columns["support"] * cost).mean()

    def mixed(self, value: Tensor, draw: Tensors) -> Tensor:
        if not self.mixup:
            return value
        share = draw["share"].to(value.dtype)
        return share * value + (1 - share) * value[draw["order"]]
