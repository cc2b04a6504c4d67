"""Figures by key: each is drawn from stored runs, and says which command makes those it lacks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from feddg.benchmark.stored import StoredRun
from feddg.errors import unknown
from feddg.report.charts import Chart
from feddg.report.figures import accuracy, features, summary, surface, traces, variants
from feddg.report.figures.common import Lacking, apart
from feddg.report.groups import Group, grouped

Make = Callable[[Sequence[StoredRun]], Chart | tuple[Chart, ...]]


@dataclass(frozen=True)
class Figure:
    """`paper` is the figure that it redraws; `needs`: of the runs. Panels are charts in a row."""

    key: str
    line: str
    make: Make
    paper: str = ""
    needs: str = ""

    def charts(self, runs: Sequence[StoredRun]) -> tuple[Chart, ...]:
        """Of that protocol among the runs which has what it needs; of two, neither is chosen."""
        fit, unfit = list[tuple[Group, Chart | tuple[Chart, ...]]](), list[Lacking]()
        for group in grouped(runs):
            try:
                fit.append((group, self.make(group.runs)))
            except Lacking as why:
                unfit.append(why)
        if not fit:
            raise unfit[0]
        if len(fit) > 1:
            raise apart([group for group, _ in fit])
        [(_, found)] = fit
        return (found,) if isinstance(found, Chart) else found


MODELS, CURVES = "--diagnostics models", "--diagnostics curves"

FIGURES = {
    f.key: f
    for f in (
        Figure("rounds", "score per round and target, all methods", accuracy.rounds),
        Figure("weights", "GA's weights over rounds", traces.weights, needs="ga"),
        Figure("conflicts", "conflicts over rounds", traces.conflicts, needs="ppdg or pcgrad"),
        Figure(
            "distances", "how far the sites' models are apart, over rounds", traces.distances,
            needs="--diagnostics distances",
        ),
        Figure("ranks", "average ranks and the critical difference", summary.ranks,
               needs="two methods"),
        Figure("cost", "seconds and bytes a round", summary.cost),
        Figure(
            "csac-fig4", "models trained apart: distances by layer, t-SNE of parameters",
            features.independent, "CSAC, Fig. 4", f"ind-average, two seeds, {MODELS}",
        ),
        Figure("csac-fig5", "score by the number of sources", accuracy.sources, "CSAC, Fig. 5",
               "different --sources of one target"),
        Figure("csac-fig6", "score by λ of CSAC", accuracy.csac_lambda, "CSAC, Fig. 6",
               "csac with different lam"),
        Figure("csac-fig7", "weights of the layers over rounds", traces.layer_weights,
               "CSAC, Fig. 7", "csac"),
        Figure("csac-fig8", "t-SNE of the merged model's features", features.features,
               "CSAC, Fig. 8", "the data at hand"),
        Figure("csac-fig9", "every site's model on every domain, over rounds", accuracy.curves,
               "CSAC, Fig. 9", CURVES),
        Figure("ppdg-fig1", "score by λ of PPDG", accuracy.ppdg_lambda, "PPDG, Fig. 1",
               "ppdg with different lam"),
        Figure("copa-fig2", "variants of the frozen classifiers", variants.copa_collaboration,
               "COPA, Fig. 2", "the variants"),
        Figure("copa-fig3", "variants of normalisation", variants.copa_normalisation,
               "COPA, Fig. 3", "the variants"),
        Figure("copa-fig4", "variants of agreement", variants.copa_agreement, "COPA, Fig. 4",
               "the variants, --task uda"),
        Figure("ga-fig3", "generalisation gaps, at the end and over rounds", traces.gaps,
               "GA, Fig. 3", "ga and ga(step=0.0)"),
        Figure("ga-fig4", "the loss around merged and local models", surface.loss_surfaces,
               "GA, Fig. 4", f"{MODELS}, the data at hand"),
    )
}  # fmt: skip


def figure(key: str) -> Figure:
    if key not in FIGURES:
        raise unknown("figure", key, FIGURES)
    return FIGURES[key]
