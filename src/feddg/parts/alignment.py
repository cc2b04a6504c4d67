"""CSAC's cross-layer semantic calibration (Yuan et al., TKDE, Eq. 5-9) as a term of the loss.

The layers l of the model in training (the copy of the fused model) are matched with the layers m
of the site's own model L^h on the same batch:

    L_AL = sum_l sum_m alpha_lm D(Proj(M_l), Proj(L_m))                    (Eq. 6)

The equations normalise alpha over m: each fused layer chooses among the local layers. TKDE's
prose tells it the other way round; v1's prose and both versions' equations agree with this.
"""

from typing import ClassVar

import torch
from torch import Tensor

from feddg.local import Forward
from feddg.parts import at_once
from feddg.parts.matching import Matching
from feddg.parts.projections import Projections, as_map
from feddg.training import forward
from feddg.trees import Tensors, part
from feddg.weights import Layout


class Rows(dict[str, Tensor]):
    """A row per training example.

    Parts whose rows have the same form may be stacked, whatever the number of examples: the rows
    reach a term batch by batch, never through the part.
    """

    def form(self) -> dict[str, torch.Size]:
        return {k: v.shape[1:] for k, v in self.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self.form() == other.form()

    def __ne__(self, other: object) -> bool:  # dict has one of its own
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


@part("teacher", "projection")
class CrossLayerAlignment:
    """Eq. 6 times lambda, with Proj frozen as given; logits are compared as they are.

    L^h's features come from `columns` where they hold for the batch, else from a forward pass of
    `teacher`, in eval mode, on the same (augmented) inputs.
    """

    teacher: Tensor
    projection: Tensor
    project: Projections | None
    layout: Layout
    taps: tuple[str, ...]
    how: Matching
    columns: Rows

    name: ClassVar[str] = "alignment"

    def vector(self, fwd: Forward) -> Tensor:
        return self.projection

    def loss(self, fwd: Forward) -> Tensor:
        kept = bool(self.columns) and fwd.plain
        if kept:
            local = fwd.columns
        else:
            local = forward(fwd.module, self.layout.views(self.teacher), fwd.x, self.taps)[1]
        vector, project = self.vector(fwd), self.project
        if project and at_once.possible(project, self.how, vector, fwd.taps, local):
            patches = local if kept else project.cut(local)
            return at_once.aligned(project, self.how, vector, fwd.taps, patches)
        return self.how(*self.projected(vector, fwd.taps, local, kept))

    def projected(
        self, vector: Tensor, fused: Tensors, local: Tensors, kept: bool
    ) -> tuple[Tensor, Tensor]:
        """Both sides of Eq. 5, layers x B x d x c; `kept` says that local comes from `columns`."""
        if self.project is None:
            a, b = (
                torch.stack([as_map(f[t]).flatten(2).mT for t in self.taps]) for f in (fused, local)
            )
            return a, b
        own = self.project.layout.views(vector)
        return self.project("fused", own, fused), self.project("local", own, local, kept)


@part("teacher", "projection")
class TrainedAlignment(CrossLayerAlignment):
    """With Proj trained along, from `projection`."""

    key: ClassVar[str] = "csac"

    @property
    def learned(self) -> Tensor:
        return self.projection

    def vector(self, fwd: Forward) -> Tensor:
        own: Tensor = fwd.theta[self.key]
        return own


def variances(a: Tensor, b: Tensor) -> Tensor:
    """Of both sides, over examples, averaged over layers and features: 0 where Proj has collapsed.

    A tensor, which a device need not be waited for while other sites are asked.
    """
    return torch.stack([x.var(1, correction=0).mean() for x in (a, b)])
