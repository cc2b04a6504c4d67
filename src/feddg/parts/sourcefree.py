"""SHOT's parts: a loss that needs no labels, and labels from clusters of features."""

import torch
import torch.nn.functional as F
from torch import Tensor

from feddg.local import Forward
from feddg.parts.heads import Branch, OnBranch
from feddg.trees import part


@part("head")
class InformationMaximisation(OnBranch):
    """mean_x H(p(x)) − H(mean_x p(x)) + weight CE(p(x), ŷ(x)), through the frozen head."""

    head: Tensor
    branch: Branch
    weight: float = 0.3

    def loss(self, fwd: Forward) -> Tensor:
        [output] = self.branch.outputs(fwd, self.head[None])
        p = output.softmax(1)
        value = entropy(p).mean() - entropy(p.mean(0))
        if not self.weight:
            return value
        return value + self.weight * fwd.task.loss(output, fwd.y)


def entropy(p: Tensor) -> Tensor:
    return -(p * p.clamp_min(1e-12).log()).sum(-1)


def clustered(features: Tensor, p: Tensor) -> Tensor:
    """Labels by the nearest centroid (cosine); centroids by p, then once more by those labels.

    A class that no example has been given has no centroid in the second pass.
    """
    z = F.normalize(features, dim=1)
    label = nearest(z, p)
    return nearest(z, F.one_hot(label, p.shape[1]).to(p))


def nearest(z: Tensor, share: Tensor) -> Tensor:
    """`share`: how much of each example (row) belongs to each class."""
    mass = share.sum(0)
    centre = F.normalize(share.T @ z / mass.clamp_min(1e-12)[:, None], dim=1)
    alike = (z @ centre.T).masked_fill(mass == 0, -torch.inf)
    return alike.argmax(1)
