"""COPA's figures: a bar for every variant, named as in the paper."""

from collections.abc import Mapping, Sequence

from feddg.benchmark.stored import StoredRun
from feddg.benchmark.table import cells
from feddg.report.charts import Chart
from feddg.report.figures.common import lacking, metric, numbered, one_protocol
from feddg.report.groups import short

FIG_2 = {
    "COPA (CoFC)": "copa",
    "w/o CoFC": "copa(branch='none')",
    "CoFC w/o RandAug": "copa(branch='cofc-plain')",
    "w/o CoFC + RandAug": "copa(branch='augmented')",
    "w/o CoFC + CR": "copa(branch='consistency')",
}
FIG_3 = {
    "COPA (HBIN)": "copa",
    "only BN": "copa(norm='bn')",
    "only IN": "copa(norm='in')",
    "IBN-a": "copa(norm='ibn-a')",
    "IBN-b": "copa(norm='ibn-b')",
    "SN": "copa(norm='sn')",
}
FIG_4 = {
    "COPA (max)": "copa-uda(labels='max')",
    "COPA (mean)": "copa-uda",
    "COPA (most)": "copa-uda(labels='most')",
    "COPA w/o agreeW": "copa-uda(agreement=False)",
}


def copa_collaboration(runs: Sequence[StoredRun]) -> Chart:
    """COPA's Fig. 2: what the frozen classifiers bring."""
    return averages(runs, "copa-fig2", "COPA: collaboration of frozen classifiers", FIG_2)


def copa_normalisation(runs: Sequence[StoredRun]) -> Chart:
    """COPA's Fig. 3: kinds of normalisation."""
    return averages(runs, "copa-fig3", "COPA: normalisation", FIG_3)


def averages(runs: Sequence[StoredRun], key: str, title: str, variants: Mapping[str, str]) -> Chart:
    group = one_protocol(runs)
    rows = {label: short(spec) for label, spec in variants.items()}
    if sum(row in group.scores for row in rows.values()) < 2:
        raise absent(key, group.runs[0], variants)
    numbers = [
        cells(row, group.scores.get(row, {}), group.targets).average for row in rows.values()
    ]
    series = numbered("average over targets", tuple(rows), numbers)
    return Chart(key, title, "bar", "", metric(group), (series,), noted(group.title, rows, numbers))


def copa_agreement(runs: Sequence[StoredRun]) -> Chart:
    """COPA's Fig. 4: how the sites' models agree on the target's labels (decentralised UDA)."""
    group = one_protocol(runs)
    rows = {label: short(spec) for label, spec in FIG_4.items()}
    found = {label: row for label, row in rows.items() if row in group.scores}
    if len(found) < 2:
        raise absent("copa-fig4", group.runs[0], FIG_4, " --task uda")
    series = tuple(
        numbered(label, group.targets, cells(row, group.scores[row], group.targets).numbers)
        for label, row in found.items()
    )
    title = "COPA: agreement of the central predictions"
    return Chart("copa-fig4", title, "bar", "target", metric(group), series, group.title)


def absent(key: str, run: StoredRun, variants: Mapping[str, str], more: str = "") -> Exception:
    methods = ",".join(variants.values())
    command = f'feddg bench {run.experiment.data} --methods "{methods}"{more}'
    return lacking(key, "runs of two variants or more", command)


def noted(title: str, rows: Mapping[str, str], numbers: Sequence[object]) -> str:
    missing = [row for row, n in zip(rows.values(), numbers, strict=True) if n is None]
    return title + (f". No runs, or not of every target: {', '.join(missing)}" if missing else "")
