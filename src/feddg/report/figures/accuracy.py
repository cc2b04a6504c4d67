"""Accuracy over rounds, by the number of sources, by a parameter, and of every site's own model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from feddg.benchmark.stored import StoredRun
from feddg.benchmark.table import Number, cells, scale
from feddg.catalogue import compose, methods, parse, spelled, split
from feddg.report.charts import Chart, Series
from feddg.report.figures.common import (
    MERGED,
    Charts,
    at,
    by_row,
    distinct,
    lacking,
    metric,
    named,
    numbered,
    on,
    one_protocol,
    over_rounds,
    preferred,
    shown_score,
    told,
)
from feddg.report.groups import Group, in_order, short, sites_of


def rounds(runs: Sequence[StoredRun]) -> Charts:
    """A panel for every target, a line for every method."""
    group = one_protocol(runs)
    return tuple(
        Chart(
            named("rounds", target), f"{target}, unseen", "line", "round", metric(group),
            tuple(
                over_rounds(row, found, shown_score(group, target))
                for row, found in by_row(on(group.runs, target)).items()
            ),
            group.title,
        )
        for target in group.targets
    )  # fmt: skip


def sources(runs: Sequence[StoredRun]) -> Chart:
    """CSAC's Fig. 5: one target, ever more sources."""
    group = one_protocol(runs)
    target = group.targets[0]
    found: dict[str, dict[float, list[float]]] = {}
    for run in distinct(on(group.runs, target)):
        one = run.experiment
        value = shown_score(group, target)(run.selected(group.task))
        if value is not None and not (one.pooled or one.oracle):
            by = found.setdefault(short(one.method), {})
            by.setdefault(float(len(sites_of(run))), []).append(value)
    if len({n for by in found.values() for n in by}) < 2:
        raise lacking(
            "csac-fig5", f"runs with different numbers of sources for one target such as {target}",
            f"feddg run {group.runs[0].experiment.data} --method csac --target {target}"
            " --sources A,B",
        )  # fmt: skip
    series = tuple(scattered(name, by) for name, by in found.items())
    title = f"{target}, unseen, by the number of source domains"
    return Chart("csac-fig5", title, "line", "source domains", metric(group), series, group.title)


def scattered(name: str, by: Mapping[float, Sequence[float]], **more: Any) -> Series:
    """{x: values} as a line of means ± standard errors."""
    x = sorted(by)
    return numbered(name, x, [Number.of(by[v]) for v in x], **more)


def csac_lambda(runs: Sequence[StoredRun]) -> Chart:
    """CSAC's Fig. 6: how much its λ matters."""
    return by_parameter(runs, "csac-fig6", "csac", "lam", "λ of CSAC", "csac,csac(lam=0.2)")


def ppdg_lambda(runs: Sequence[StoredRun]) -> Chart:
    """PPDG's Fig. 1: its λ, and FedAvg's average as the dashed line."""
    return by_parameter(runs, "ppdg-fig1", "ppdg", "lam", "λ of PPDG", "fedavg,ppdg,ppdg(lam=0.2)")


def by_parameter(
    runs: Sequence[StoredRun], key: str, link: str, parameter: str, title: str, example: str
) -> Chart:
    """Average and targets by a parameter of one link; what else differs is a line of its own."""
    group = one_protocol(runs)
    found: dict[tuple[str, str], list[tuple[float, Number]]] = {}
    for row, rest, value in with_parameter(group, link, parameter):
        numbers = cells(row, group.scores[row], group.targets)
        for name, number in zip(
            ("average", *group.targets), (numbers.average, *numbers.numbers), strict=True
        ):
            if number is not None:
                found.setdefault((rest, name), []).append((value, number))
    if max((len(points) for points in found.values()), default=0) < 2:
        raise lacking(
            key, f"runs of {link} with different {parameter}",
            f'feddg bench {group.runs[0].experiment.data} --methods "{example}"',
        )  # fmt: skip
    plain = len({rest for rest, _ in found}) == 1
    series = []
    for (rest, name), points in found.items():
        points.sort(key=lambda p: p[0])
        places, means = [x for x, _ in points], [n for _, n in points]
        label = name if plain else f"{rest}: {name}"
        series.append(numbered(label, places, means, dashed=name != "average"))
    average = cells("fedavg", group.scores.get("fedavg", {}), group.targets).average
    return Chart(
        key, title, "line", "λ", metric(group), tuple(series),
        group.title + ("; the horizontal line is FedAvg's average" if average else ""),
        reference=average.mean if average else None,
    )  # fmt: skip


def with_parameter(group: Group, link: str, parameter: str) -> Iterator[tuple[str, str, float]]:
    """(row, the composition without the parameter, its value) of every method with that link."""
    all_sources = (r for r in group.runs if not r.experiment.sources)
    for row, found in by_row(all_sources).items():
        pieces = list(split(spelled(compose(found[0].experiment.method))))
        for k, piece in enumerate(pieces):
            part = parse(piece.strip())
            if isinstance(part, methods()[link].load()) and row in group.scores:
                value, default = getattr(part, parameter), getattr(type(part), parameter)
                plain = piece.replace(f"{parameter}={value!r}", f"{parameter}={default!r}")
                yield row, short("+".join([*pieces[:k], plain, *pieces[k + 1 :]])), float(value)


def curves(runs: Sequence[StoredRun]) -> Charts:
    """CSAC's Fig. 9: whose model (a panel) on which domain (a line; dashed: the unseen one).

    Of CSAC, or else of the first method among the runs; on its first target.
    """
    group = one_protocol(runs)
    rows = by_row(r for r in group.runs if all("curves" in k for k in r.records))
    if not rows:
        raise lacking(
            "csac-fig9", "runs that scored every site's own model",
            f"feddg run {group.runs[0].experiment.data} --method csac --target"
            f" {group.targets[0]} --diagnostics curves",
        )  # fmt: skip
    row = preferred(rows, "csac")
    target = next(t for t in group.targets if on(rows[row], t))
    chosen = on(rows[row], target)
    whose = [n for n in in_order(chosen) if n != target]
    titles = {**{n: f"{row}: the model of {n}" for n in whose}, MERGED: f"{row}: the merged model"}
    return tuple(
        Chart(
            named("csac-fig9", owner), title, "line", "round", metric(group),
            tuple(
                over_rounds(
                    domain, chosen, at("curves", owner, domain, by=scale(group.task)),
                    dashed=domain == target,
                )
                for domain in (*whose, target)
            ),
            told(group, chosen),
        )
        for owner, title in titles.items()
    )  # fmt: skip
