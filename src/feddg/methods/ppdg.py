"""PPDG (arXiv 2105.08511): conflicting updates are drawn towards each other, then averaged.

Privacy-Preserving Constrained Domain Generalization via Gradient Alignment.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar
from warnings import warn

from feddg.errors import ConfigError, within
from feddg.merges import Gathered, Merged, combined
from feddg.merges.geometry import drawn_together, gram, meetings
from feddg.method import Method, Sees, Wrapper
from feddg.methods.fedavg import FedAvg


@dataclass(frozen=True)
class Calmed:
    """Algorithm 1 on coefficients: exactly what it does to the updates themselves.

    One pass for the Gram matrix, K^2 meetings of K numbers each, one pass for the combination.
    """

    lam: float = 0.1
    test_conflicts: bool = True
    server_lr: float = 1.0

    sees: ClassVar[Sees] = "gram"

    def __call__(self, got: Gathered) -> Merged:
        products = gram(got.updates).cpu().numpy()
        order = meetings(len(products), got.rng)
        mixed = drawn_together(products, self.lam, order, self.test_conflicts)
        step = combined(self.server_lr * mixed.combined(got.shares), got.updates)
        weights = dict(zip(got.sites, got.shares.tolist(), strict=True))
        return Merged(step, {"weights": weights, **mixed.told(got.sites)})


@dataclass(frozen=True)
class PPDG(Wrapper):
    """g_i <- g_i - 2 lam (g_i - g_j) wherever <g_i, g_j> < 0 (Eq. 5), then w <- w + mean_i g_i.

    g_i is what a round of local training changed, w_T - w_0 (section 3.4): a step downhill, hence
    the plus. Sites are visited in a random order, each meets the others in a fresh one, and both
    sides of a meeting are as earlier meetings left them (Algorithm 1, in place). The mean is
    uniform; GA's a_i stand in it where GA wraps this method. Parameters only: batch-norm buffers
    are averaged. Sends: the model.

    Theorem 1 needs lam < 1/2. With two sites the loss falls by at least t |g_1 - g_2|^2 times
    1/2 - 2 lam^2 where one of them is changed (Eq. 8) and 1/2 - 8 lam^4 where both are (Eq. 11);
    both vanish at 1/2, where g_i becomes g_j, and beyond it 1 - 2 lam is negative: a site's own
    direction counts backwards. Such values warn and run; the paper's Fig. 1 has 1/2 itself.

    test_conflicts  False: draw together every pair (Table 6)
    server_lr       the length of the server's step, of which the paper says nothing
    """

    inner: Method = FedAvg()
    lam: float = 0.1
    test_conflicts: bool = True
    server_lr: float = 1.0

    claims: ClassVar[frozenset[str]] = frozenset({"merge"})
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "camelyon17": {"lam": 0.1},
        "poverty": {"lam": 0.1},
        "fmow": {"lam": 0.05},
        "rotated-mnist": {"lam": 0.001},
        "terra-incognita": {"lam": 0.2},
    }

    def __post_init__(self) -> None:
        if self.lam < 0:
            raise ConfigError(f"ppdg: lam must not be negative, and is {self.lam}")
        within("ppdg: server_lr", self.server_lr)
        if self.lam >= 0.5:
            warn_of_divergence(self.lam)
        super().__post_init__()

    @property
    def leaf(self) -> FedAvg:
        merge = Calmed(self.lam, self.test_conflicts, self.server_lr)
        return FedAvg(merge=merge, weights="uniform")


@cache
def warn_of_divergence(lam: float) -> None:
    """Once for a value, however often a composition is rebuilt around it."""
    warn(
        f"ppdg(lam={lam}): convergence is only shown for lam < 0.5; from there on a site that"
        " meets a conflict gives up its own direction, and training may diverge",
        UserWarning,
        stacklevel=4,
    )
