"""The loss on an unseen domain around a merged model, with the sites' models (GA's Fig. 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from feddg.benchmark.locals import LOCALS, Locals, read_locals
from feddg.benchmark.roles import federated
from feddg.benchmark.stored import StoredRun
from feddg.data.domain import Examples
from feddg.engines import one_thread
from feddg.local import outputs
from feddg.report.charts import Chart, Series
from feddg.report.figures.common import (
    MERGED,
    Charts,
    Lacking,
    by_row,
    lacking,
    named,
    on,
    one_protocol,
    told,
)
from feddg.report.groups import Group
from feddg.seeds import generator
from feddg.weights import Weights

GRID, MARGIN = 21, 0.25  # points a side; how far beyond the models, of their larger spread
EXAMPLES = 128
METHODS = 4


@dataclass(frozen=True, eq=False)
class Plane:
    """Through the merged model, and as near to the sites' as a plane can be.

    It goes through all of them where these are three and the merged one is a mean of them. `kept`
    is the share of their squared distances that lies in it.
    """

    origin: Weights
    axes: Tensor  # 2 × P, orthonormal
    sites: Mapping[str, tuple[float, float]]
    kept: float

    @staticmethod
    def of(merged: Weights, sites: Mapping[str, Weights]) -> "Plane":
        away = torch.stack([w.parameters for w in sites.values()]).double()
        away = away - merged.parameters.double()
        sizes, turns = torch.linalg.eigh(away @ away.T)
        if len(sites) < 2 or sizes[-2] <= 1e-8 * sizes[-1]:
            raise Lacking(
                "the merged model and the sites' lie on one line, which spans no plane; a loss"
                " surface takes three sites or more"
            )
        turns = turns.flip(1)[:, :2]
        turns = turns * torch.where(turns[0] < 0, -1.0, 1.0)  # the first site is above, right
        axes = turns.T @ away
        axes = axes / axes.norm(dim=1, keepdim=True)
        places = away @ axes.T
        return Plane(
            merged, axes, {k: (x, y) for k, (x, y) in zip(sites, places.tolist(), strict=True)},
            (places.square().sum() / away.square().sum()).item(),
        )  # fmt: skip

    def at(self, x: float, y: float) -> Weights:
        """The buffers are the merged model's everywhere."""
        start = self.origin.parameters
        moved = start + (x * self.axes[0] + y * self.axes[1]).to(start)
        return Weights(torch.cat([moved, self.origin.buffers]), self.origin.layout)

    def sides(self, points: int = GRID) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """A square around all models, with a margin."""
        columns = list(zip((0.0, 0.0), *self.sites.values(), strict=True))
        half = (0.5 + MARGIN) * max(max(v) - min(v) for v in columns)
        middles = [(max(v) + min(v)) / 2 for v in columns]
        xs, ys = (torch.linspace(m - half, m + half, points).tolist() for m in middles)
        return tuple(xs), tuple(ys)


def loss_surfaces(runs: Sequence[StoredRun]) -> Charts:
    """A panel for every method: its first run on the first target that kept the sites' models."""
    group = one_protocol(runs)
    for target in group.targets:
        kept = [r for r in on(group.runs, target) if r.finished and (r.folder / LOCALS).exists()]
        rows = by_row(kept)
        if rows:
            found = list(rows.items())[:METHODS]
            return tuple(surface(group, row, same[0], target) for row, same in found)
    raise lacking(
        "ga-fig4", "runs that kept the sites' models",
        f'feddg bench {group.runs[0].experiment.data} --methods "fedavg,ga" --diagnostics models',
    )  # fmt: skip


def surface(group: Group, row: str, run: StoredRun, target: str) -> Chart:
    models = read_locals(run)
    plane = Plane.of(models.merged.model, {k: r.model for k, r in models.sites.items()})
    fed, _ = federated(run.experiment.roles)
    domain = next(d for d in fed.targets if d.name == target)
    data = few(domain.part("test") or domain.examples, run.experiment.seed)
    xs, ys = plane.sides()
    with one_thread():
        z = tuple(
            tuple(round(loss(group, models, plane.at(x, y), data, fed.collection.prepare), 4)
                  for x in xs)
            for y in ys
        )  # fmt: skip
    spots = (
        Series(MERGED, (0.0,), (0.0,)),
        *(Series(k, (0.0, x), (0.0, y), dashed=True) for k, (x, y) in plane.sites.items()),
    )
    share = "" if plane.kept > 0.999 else f"; {plane.kept:.0%} of the squared distances lie in it"
    note = f"{told(group, [run])}; loss of {len(data)} examples of {target}{share}"
    return Chart(
        named("ga-fig4", row), f"{row}: loss on {target}, unseen", "surface",
        "distance in the space of parameters", "", (Series("loss", xs, ys, z=z), *spots), note,
    )  # fmt: skip


def few(data: Examples, seed: int) -> Examples:
    order = torch.randperm(len(data), generator=generator(seed, "loss surface"))
    return data.take(order[:EXAMPLES])


def loss(
    group: Group, models: Locals, weights: Weights, data: Examples, prepare: tuple[object, ...]
) -> float:
    predictor = models.predictor(replace(models.merged, model=weights))
    return float(group.task.loss(outputs(predictor, data, prepare), data.y))
