"""What several models say of unlabelled examples: pseudo-labels, and how often each agrees.

Predictions are probabilities, sites × examples × classes.
"""

from collections.abc import Sequence
from math import exp
from typing import Literal

from torch import Tensor
from torch.nn.functional import one_hot

Rule = Literal["mean", "max", "most"]


def pseudo_labels(p: Tensor, rule: Rule) -> tuple[Tensor, Tensor]:
    """A label for every example, and the probability that a threshold is held against.

    mean   the class that is most probable on average
    max    the class of the most confident site
    most   the class that most sites say; of equals, the one of the greater mean. Its probability
           is the greatest among the sites that say it
    """
    if rule != "most":
        best = (p.mean(0) if rule == "mean" else p.amax(0)).max(1)
        return best.indices, best.values
    said = one_hot(p.argmax(2), p.shape[2]).to(p)
    votes = said.sum(0)
    tied = votes == votes.amax(1, keepdim=True)
    label = p.mean(0).masked_fill(~tied, -1.0).argmax(1)
    return label, (said * p).amax(0).gather(1, label[:, None])[:, 0]


def agreements(p: Tensor, label: Tensor, counted: Tensor) -> list[int]:
    """Z_i: how many of the labels that count are site i's own prediction (COPA, before Eq. 8)."""
    found: list[int] = ((p.argmax(2) == label) & counted).sum(1).tolist()
    return found


def agreement_weights(agreed: Sequence[int]) -> list[float]:
    """COPA's Eq. 8: the softmax of Z_i / Σ Z; equal where nobody agrees with anything."""
    total = sum(agreed)
    if not total:
        return [1 / len(agreed)] * len(agreed)
    powers = [exp(z / total) for z in agreed]
    return [power / sum(powers) for power in powers]
