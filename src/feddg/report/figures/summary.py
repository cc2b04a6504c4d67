"""Methods side by side: average ranks, time, bytes."""

from collections.abc import Sequence
from statistics import fmean

from feddg.benchmark.stored import StoredRun
from feddg.benchmark.table import Number
from feddg.report.charts import Chart, Series
from feddg.report.compare import ranked, ranks_told
from feddg.report.figures.common import Charts, by_row, lacking, numbered, one_protocol

MEGA = 1e6
ALIKE = "not told apart"


def ranks(runs: Sequence[StoredRun]) -> Chart:
    """The critical-difference diagram: average ranks, and bars over those not told apart."""
    group = one_protocol(runs)
    ranking = ranked(group)
    if ranking is None:
        raise lacking(
            "ranks", "two methods or more on targets that all of them have",
            f"feddg bench {group.runs[0].experiment.data} --methods fedavg,csac",
        )  # fmt: skip
    names = list(ranking.ranks)
    places = {name: float(len(names) - i) for i, name in enumerate(names)}
    points = tuple(
        Series(name, (rank,), (places[name],), text=(f"{name}: {rank:.2f}",))
        for name, rank in ranking.ranks.items()
    )
    gap = max(0.4, len(names) / 20)  # clear of the last name, however many there are
    cliques = tuple(
        Series(
            ALIKE, (ranking.ranks[alike[0]], ranking.ranks[alike[-1]]), (y, y),
            text=(", ".join(alike),) * 2,
        )
        for i, alike in enumerate(ranking.alike)
        for y in (1 - gap * (i + 1),)
    )  # fmt: skip
    x = f"average rank (critical difference {ranking.difference:.2f})"
    note = " ".join([group.title + ".", *ranks_told(ranking)])
    return Chart("ranks", "Average ranks", "line", x, "", (*points, *cliques), note)


def cost(runs: Sequence[StoredRun]) -> Charts:
    """Seconds and bytes of a round, the mean over its run; ± standard error over runs."""
    group = one_protocol(runs)
    rows = by_row(group.runs)
    machines = sorted({str(r.environment.get("processor", "")) for r in group.runs} - {""})
    note = f"{group.title}. Machine: {', '.join(machines) or 'unknown'}"

    def series(name: str, field: str, per: float = 1.0) -> Series:
        numbers = [
            Number.of([fmean(k[field] for k in r.records) / per for r in found])
            for found in rows.values()
        ]
        return numbered(name, tuple(rows), numbers)

    return (
        Chart(
            "cost-time", "Time", "bar", "", "seconds a round", (series("time", "seconds"),), note
        ),
        Chart(
            "cost-bytes", "Bytes sent", "bar", "", "MB a round, all sites",
            (series("to the sites", "bytes_down", MEGA), series("from them", "bytes_up", MEGA)),
            note,
        ),
    )  # fmt: skip
