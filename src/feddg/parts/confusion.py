"""FADA's parts: judges that tell each source's features from the target's, and who fools them."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from feddg.local import Forward
from feddg.parts.adversary import perceptron, through
from feddg.trees import Tensors, each, part


@dataclass(frozen=True)
class Judge:
    """A discriminator of two dense layers: high for the source, low for the target."""

    features: int
    hidden: int = 64

    def start(self, rng: Generator) -> Tensors:
        return perceptron(self.features, self.hidden, 1, rng)


@part("learned", "sources")
class Confusion:
    """Σ_i  BCE of judge i on source i's features and the target's, and weight BCE of being fooled.

    The first trains the judges alone, the second, −log D_i(G(x)), the extractor alone.
    """

    learned: dict[str, Tensors]  # a judge a site
    sources: dict[str, Tensor]  # the features of its examples
    features: str  # the tap
    weight: float
    key: str = "fada"

    @property
    def taps(self) -> tuple[str, ...]:
        return (self.features,)

    def draw(self, rng: Generator, n: int) -> Tensors:
        """Which of each site's features meet the batch."""
        return {k: torch.randint(len(z), (n,), generator=rng) for k, z in self.sources.items()}

    def loss(self, fwd: Forward) -> Tensor:
        z, judges = fwd.taps[self.features], fwd.theta[self.key]
        losses = []
        for site, features in self.sources.items():
            source = features[fwd.draw[site]].to(z)
            fixed: Any = each(Tensor.detach, judges[site])
            told = judged(judges[site], source, True) + judged(judges[site], z.detach(), False)
            losses.append(told + self.weight * judged(fixed, z, True))
        return torch.stack(losses).sum()


def judged(judge: Tensors, z: Tensor, source: bool) -> Tensor:
    """The cross-entropy of "these are the source's", or of "these are the target's"."""
    verdict = through(judge, z)[:, 0]
    return F.softplus(-verdict if source else verdict).mean()


def spread(z: Tensor, groups: int, steps: int = 10) -> float:
    """Σ_r (1 / 2 n_r) Σ_{i,j in r} |z_i − z_j|² of k-means' groups r, as a share of all spread.

    Which is the groups' inertia over that of all. The first centre is the example nearest to the
    mean, each further one the farthest from those before, so that nothing is left to chance.
    Centred and in float64: features that hardly differ would be lost in their distance from 0.
    """
    z = z.double()
    z = z - z.mean(0)
    centres = z[int(z.square().sum(1).argmin())][None]
    for _ in range(min(groups, len(z)) - 1):
        far = torch.cdist(z, centres).amin(1).argmax()
        centres = torch.cat([centres, z[far][None]])
    for _ in range(steps):
        member = F.one_hot(torch.cdist(z, centres).argmin(1), len(centres)).to(z)
        count = member.sum(0)[:, None]
        centres = torch.where(count > 0, member.T @ z / count.clamp_min(1), centres)
    inside = torch.cdist(z, centres).amin(1).square().sum()
    return float(inside / z.square().sum().clamp_min(1e-300))
