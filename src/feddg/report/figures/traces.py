"""What methods decided round by round, from the `trace` of every record."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev

from feddg.benchmark.selection import Record
from feddg.benchmark.stored import StoredRun
from feddg.benchmark.table import Number
from feddg.catalogue import split
from feddg.deploy.manifest import MANIFEST, read_manifest
from feddg.report.charts import Chart, Series
from feddg.report.figures.common import (
    Charts,
    at,
    by_row,
    lacking,
    named,
    numbered,
    on,
    one_protocol,
    over_rounds,
    preferred,
    told,
)
from feddg.report.figures.layers import chief_layers, spread
from feddg.report.groups import Group, in_order

Rows = dict[str, list[StoredRun]]

MEAN_GAP = "mean of the sites' gaps"


def having(group: Group, has: Callable[[Record], object]) -> tuple[str, Rows]:
    """The first target on which some method has it in every round, and the runs that do."""
    for target in group.targets:
        rows = by_row(r for r in on(group.runs, target) if all(has(k) for k in r.records))
        if rows:
            return target, rows
    return "", {}


def layer_weights(runs: Sequence[StoredRun]) -> Charts:
    """CSAC's Fig. 7: what say each site has in each layer; of the first such method and target."""
    group = one_protocol(runs)
    target, rows = having(group, lambda k: k["trace"].get("layers"))
    if not rows:
        raise lacking(
            "csac-fig7", "runs of csac, which weighs sites layer by layer",
            f"feddg run {group.runs[0].experiment.data} --method csac --target {group.targets[0]}",
        )  # fmt: skip
    row = preferred(rows, "csac")
    chosen = rows[row]
    known = list(chosen[0].records[0]["trace"]["layers"])
    return tuple(
        Chart(
            named("csac-fig7", layer), f"{row}, {target} unseen: {layer}", "line", "round",
            "weight",
            tuple(
                over_rounds(s, chosen, at("trace", "layers", layer, s))
                for s in sites(chosen)
            ),
            told(group, chosen),
        )
        for layer in shown(chosen[0], known)
    )  # fmt: skip


def shown(run: StoredRun, known: Sequence[str]) -> tuple[str, ...]:
    """The chief ones of the recorded layers; without a saved model nobody knows their shapes."""
    if run.finished:
        layout = read_manifest(run.folder / "model" / MANIFEST).layout
        found = tuple(layer for layer in chief_layers(layout) if layer in known)
        if found:
            return found
    return tuple(known) if len(known) <= 4 else spread(known, 4)


def sites(runs: Sequence[StoredRun]) -> list[str]:
    """In the data's order."""
    there = {s for r in runs for k in r.records for s in k["sites"]}
    order = [s for s in in_order(runs) if s in there]
    return [*order, *sorted(there - set(order))]


def weights(runs: Sequence[StoredRun]) -> Charts:
    """GA's weights over rounds: a panel for every method that adjusts them."""
    group = one_protocol(runs)
    target, rows = having(group, lambda k: k["trace"].get("ga"))
    if not rows:
        raise lacking(
            "weights", "runs of ga, which moves the sites' weights",
            f"feddg run {group.runs[0].experiment.data} --method ga --target {group.targets[0]}",
        )  # fmt: skip
    return tuple(
        Chart(
            f"weights-{i}", f"{row}, {target} unseen", "line", "round", "weight",
            tuple(
                over_rounds(s, found, at("trace", "ga", "weights", s))
                for s in sites(found)
            ),
            told(group, found),
        )
        for i, (row, found) in enumerate(rows.items())
    )  # fmt: skip


def conflicts(runs: Sequence[StoredRun]) -> Charts:
    """How many of the sites' meetings were conflicts, and how sharp these were."""
    group = one_protocol(runs)
    target, rows = having(group, lambda k: "conflicts" in k["trace"])
    if not rows:
        raise lacking(
            "conflicts", "runs of ppdg or pcgrad, which record conflicts",
            f"feddg run {group.runs[0].experiment.data} --method ppdg --target {group.targets[0]}",
        )  # fmt: skip
    note = told(group, [r for found in rows.values() for r in found])

    def chart(key: str, y: str, value: Callable[[Record], float | None]) -> Chart:
        series = tuple(over_rounds(row, found, value) for row, found in rows.items())
        return Chart(f"conflicts-{key}", f"{target} unseen: {y}", "line", "round", y, series, note)

    return (
        chart("share", "conflicts, % of meetings", conflict_share),
        chart("cosine", "mean cosine of conflicts", conflict_cosine),
    )


def conflict_share(record: Record) -> float | None:
    """With very many sites the record has each one's number of conflicts, not the pairs."""
    k, found = len(record["sites"]), record["trace"]["conflicts"]
    times = sum(len(v) if isinstance(v, Mapping) else v for v in found.values())
    return 100 * times / (k * (k - 1)) if k > 1 else None


def conflict_cosine(record: Record) -> float | None:
    found = [
        cosine
        for pairs in record["trace"]["conflicts"].values()
        if isinstance(pairs, Mapping)
        for cosine in pairs.values()
    ]
    return fmean(found) if found else None


def gaps(runs: Sequence[StoredRun]) -> Charts:
    """GA's Fig. 3: mean and deviation over the sites of the last generalisation gaps; their course.

    ga(step=0.0) measures the gaps and moves no weight: it is the figure's "without GA".
    """
    group = one_protocol(runs)
    found = [r for r in group.runs if gaps_of(r.records[-1])]
    rows = by_row(found)
    if not rows:
        raise lacking(
            "ga-fig3", "two rounds or more of ga, and of ga(step=0.0) to compare with",
            f'feddg bench {group.runs[0].experiment.data} --methods "ga,ga(step=0.0)"',
        )  # fmt: skip
    note, of_one = told(group, found), f"{next(iter(rows))}: " if len(rows) == 1 else ""
    bars = (
        Chart(f"ga-fig3-{key}", f"{of_one}{title} after the last round", "bar", "around",
              "generalisation gap", paired(rows, of), note)
        for key, title, of in (
            ("mean", MEAN_GAP, fmean), ("deviation", "deviation of the sites' gaps", pstdev),
        )
    )  # fmt: skip
    lines = tuple(
        over_rounds(row, same, lambda k: fmean(g) if (g := gaps_of(k)) else None)
        for row, same in rows.items()
    )
    over = Chart(
        "ga-fig3-rounds", of_one + MEAN_GAP, "line", "round", "generalisation gap", lines, note
    )
    return (*bars, over)


def gaps_of(record: Record) -> list[float]:
    return list(record["trace"].get("ga", {}).get("gaps", {}).values())


def paired(rows: Rows, of: Callable[[list[float]], float]) -> tuple[Series, ...]:
    """A row of bars for every setting of GA, a bar for what it is around."""
    found: dict[str, dict[str, Number | None]] = {}
    for row, runs in rows.items():
        outer, *inner = split(row)
        numbers = Number.of([of(gaps_of(r.records[-1])) for r in runs])
        found.setdefault(outer, {})["+".join(inner) or "fedavg"] = numbers
    around = tuple(dict.fromkeys(inner for by in found.values() for inner in by))
    return tuple(
        numbered(outer, around, [by.get(inner) for inner in around]) for outer, by in found.items()
    )


def distances(runs: Sequence[StoredRun]) -> Charts:
    """How far the sites' models are from each other, layer by layer, over training."""
    group = one_protocol(runs)
    target, rows = having(group, lambda k: k.get("distances"))
    if not rows:
        raise lacking(
            "distances", "runs that measured how far the sites' models are apart",
            f"feddg run {group.runs[0].experiment.data} --method ind-average --target"
            f" {group.targets[0]} --diagnostics distances",
        )  # fmt: skip
    return tuple(
        Chart(
            f"distances-{i}", f"{row}, {target} unseen", "line", "round",
            "mean L2 distance to the other sites",
            tuple(
                over_rounds(layer, found, mean_distance(layer))
                for layer in shown(found[0], list(found[0].records[0]["distances"]))
            ),
            told(group, found),
        )
        for i, (row, found) in enumerate(rows.items())
    )  # fmt: skip


def mean_distance(layer: str) -> Callable[[Record], float | None]:
    return lambda k: fmean(v.values()) if (v := k["distances"].get(layer)) else None
