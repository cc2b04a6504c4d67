"""One site's calibration visit in CSAC: the job of its first visit, the term of all later ones."""

from dataclasses import dataclass, replace
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from feddg.errors import ConfigError
from feddg.local import Job
from feddg.models import anatomy
from feddg.parts.alignment import CrossLayerAlignment, Rows, TrainedAlignment, variances
from feddg.parts.features import (
    Remembered,
    digest_once,
    known_taps,
    tap_features,
    weight_of,
)  # fmt: skip
from feddg.parts.matching import Matching, Pairs
from feddg.parts.projections import Projections
from feddg.seeds import generator
from feddg.trees import Tensors
from feddg.weights import Weights

FEATURES = Remembered()
BUDGET = 512 << 20  # bytes of L^h's features of one site, where "auto" decides
SAMPLE = 64  # examples on which the projected variance is measured


def acquisition(job: Job, smoothing: float) -> Job:
    """The recipe's first round, smoothed (Eq. 2), for whoever comes for the first time.

    A late joiner trains as long as the others did, at the rate of the round in which it joins.
    """
    if job.round == 0:
        return replace(job, recipe=replace(job.recipe, first_label_smoothing=smoothing))
    first = job.recipe.at(0)
    late = replace(job.recipe, epochs=first.epochs, steps=first.steps, label_smoothing=smoothing)
    return replace(job, recipe=late)


def adopted(model: nn.Module, layers: tuple[str, ...], pairs: Pairs) -> tuple[str, ...]:
    """R of Eq. 6: the named layers, or the network's own choice."""
    if pairs == "logits":
        return (anatomy(model).head,)
    found = layers or anatomy(model).taps
    if not found:
        raise ConfigError(f"csac: {type(model).__name__} has no taps of its own; name `layers`")
    known_taps(model, found)
    return found


@dataclass(frozen=True)
class Calibration:
    """What the method says about it, whatever the site."""

    how: Matching
    proj: Literal["trained", "frozen", "renewed"] = "trained"
    channels: int = 0
    size: int = 0
    cache_features: Literal["auto", "on", "off"] = "auto"
    sides: Literal["apart", "shared"] = "apart"
    teacher: Literal["first", "latest"] = "first"

    def term(
        self, teacher: Weights, taps: tuple[str, ...], job: Job, learned: Tensor | None
    ) -> CrossLayerAlignment:
        """`teacher` is L^h; `learned` is Proj, if there is one."""
        seen = shown(job, taps)
        project, projection = None, torch.zeros(0) if learned is None else learned
        if self.how.alignment != "logits":
            project = Projections.of(seen, self.channels, self.size, self.sides == "shared")
            if learned is None or self.proj == "renewed":
                once = generator(job.seed, job.name, "projection")
                projection = project.init(job.rng("projection") if self.proj == "renewed" else once)
        kind = CrossLayerAlignment if self.proj == "frozen" or not project else TrainedAlignment
        rows = Rows()
        if self.caches(job, weight_of(seen) * len(job.train)):
            rows = self.rows(teacher, taps, project, job)
        vector = projection.to(teacher.vector)
        return kind(teacher.vector, vector, project, teacher.layout, taps, self.how, rows)

    def caches(self, job: Job, size: int) -> bool:
        """Features can be kept where the inputs stay the same, and should where they are few."""
        if self.cache_features == "on" and job.augment:
            raise ConfigError(
                "csac(cache_features='on'): the images are augmented, so their features change"
                " with every step; choose 'auto' or 'off'"
            )
        few = not job.augment and size <= BUDGET
        return self.cache_features == "on" or (self.cache_features == "auto" and few)

    def rows(
        self, teacher: Weights, taps: tuple[str, ...], project: Projections | None, job: Job
    ) -> Rows:
        def compute() -> Rows:
            found = tap_features(job.model, job.train, job.prepare, taps, teacher.views())
            return Rows(project.cut(found) if project else found)

        if self.teacher == "latest":  # another in every round
            return compute()
        key = (digest_once(teacher.vector), teacher.layout, taps, project, type(job.model))
        return Rows(FEATURES.get(job.train, key, compute))

    def spread(
        self, term: CrossLayerAlignment, vector: Tensor, fused: Weights, teacher: Weights, job: Job
    ) -> Tensor:
        """The variance of both sides' projected features on a few examples, after the visit."""
        x = job.train.inputs(torch.arange(min(SAMPLE, len(job.train))))
        theirs = {k: v[:SAMPLE] for k, v in term.columns.items()}
        kept = bool(theirs)
        ours, local = (
            {} if w is None else tap_features(job.model, x, job.prepare, term.taps, w.views())
            for w in (fused, None if kept else teacher)
        )
        return variances(*term.projected(vector, ours, theirs or local, kept))


def shown(job: Job, taps: tuple[str, ...]) -> Tensors:
    """What the taps show of one example: their sizes, for which any weights will do."""
    kept, kind = SHOWN.setdefault(job.model, {}), (taps, job.train.shape)
    if kind not in kept:
        kept[kind] = tap_features(job.model, job.train.inputs(torch.arange(1)), job.prepare, taps)
    return kept[kind]


SHOWN: "WeakKeyDictionary[nn.Module, dict[Any, Tensors]]" = WeakKeyDictionary()
