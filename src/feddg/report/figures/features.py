"""What models and their layers look like in the plane: CSAC's Figs. 4 and 8."""

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

import torch
from torch import Tensor

from feddg.benchmark.distances import between
from feddg.benchmark.locals import LOCALS, read_packets
from feddg.benchmark.roles import federated
from feddg.benchmark.stored import StoredRun
from feddg.catalogue import compose
from feddg.data.domain import Examples, Federation
from feddg.deploy.load import load_model
from feddg.engines import one_thread
from feddg.method import chain
from feddg.methods.independent import IndependentAverage
from feddg.models.anatomy import anatomy
from feddg.parts.features import tap_features
from feddg.report.charts import Chart, Series
from feddg.report.figures.common import Charts, by_row, lacking, named, on, one_protocol, told
from feddg.report.figures.layers import chief_layers
from feddg.report.groups import Group
from feddg.report.tsne import tsne
from feddg.seeds import generator
from feddg.tasks import Classification
from feddg.weights import Weights

POINTS = 600  # over all domains
METHODS = 4  # a t-SNE each takes seconds
Points = dict[tuple[str, str], list[tuple[float, float]]]  # (domain, class) -> where


def features(runs: Sequence[StoredRun]) -> Charts:
    """CSAC's Fig. 8: t-SNE of the merged model's features, by class and by domain.

    A method's first run on the first target; the first four methods.
    """
    group = one_protocol(runs)
    for target in group.targets:
        rows = by_row(r for r in on(group.runs, target) if r.finished)
        if rows:
            firsts = [(row, found[0]) for row, found in list(rows.items())[:METHODS]]
            return tuple(c for row, run in firsts for c in embedded(group, row, run, target))
    raise lacking(
        "csac-fig8", "finished runs, whose models are there",
        f"feddg run {group.runs[0].experiment.data} --method csac --target {group.targets[0]}",
    )  # fmt: skip


def embedded(group: Group, row: str, run: StoredRun, target: str) -> Charts:
    deployed = load_model(run.folder / "model")
    fed, _ = federated(run.experiment.roles)
    data = sampled(fed, run.experiment.seed)
    tap = anatomy(deployed.predictor).features
    with one_thread():
        found = [
            tap_features(deployed.predictor, d, deployed.prepare, (tap,))[tap].flatten(1)
            for d in data.values()
        ]
        places = tsne(torch.cat(found), seed=run.experiment.seed).points
    classes = group.task.classes if isinstance(group.task, Classification) else ()
    points: Points = {}
    parts = places.split([len(d) for d in data.values()])
    for (domain, examples), where in zip(data.items(), parts, strict=True):
        for y, at in zip(examples.y.tolist(), where, strict=True):
            key = (domain, classes[int(y)] if classes else "")
            points.setdefault(key, []).append(plane(at))
    note = f"{told(group, [run])}; {len(places)} examples, t-SNE of the head's input"
    kinds = (("class", 1),) * bool(classes) + (("domain", 0),)
    names = {"class": list(classes), "domain": list(data)}
    return tuple(
        Chart(
            named("csac-fig8", row, kind), f"{row}, {target} unseen, by {kind}", "scatter", "", "",
            clouds(points, names[kind], at), note,
        )
        for kind, at in kinds
    )  # fmt: skip


def plane(at: Tensor) -> tuple[float, float]:
    x, y = at.tolist()
    return round(x, 3), round(y, 3)


def sampled(fed: Federation, seed: int) -> dict[str, Examples]:
    """Equally many of every domain: of what a source holds out, else of what it trains on."""
    found = {s.name: s.train if s.val is None else s.val for s in fed.sites}
    found |= {d.name: d.part("test") or d.examples for d in fed.targets}
    most = POINTS // len(found)

    def few(name: str, data: Examples) -> Examples:
        order = torch.randperm(len(data), generator=generator(seed, "t-SNE", name))
        return data.take(order[:most])

    return {name: few(name, data) for name, data in found.items()}


def clouds(points: Points, names: Sequence[str], of: int) -> tuple[Series, ...]:
    """A cloud for every name, which is the first or the second part of the points' keys."""
    found = []
    for name in names:
        rows = [
            (x, y, ", ".join(filter(None, key)))
            for key, at in points.items()
            if key[of] == name
            for x, y in at
        ]
        if rows:
            x, y, text = zip(*rows, strict=True)
            found.append(Series(name, x, y, text=text))
    return tuple(found)


Models = Mapping[tuple[str, int], Weights]  # (domain, seed) -> the model trained there


def independent(runs: Sequence[StoredRun]) -> Charts:
    """CSAC's Fig. 4: models trained apart, by layer: distances within and between domains, t-SNE.

    Pairs are of different seeds, also those between domains: models that set out from one start
    are nearer for that alone. Unless they set out from pretrained weights, the start is in all
    distances.
    """
    group = one_protocol(runs)
    models = trained_apart(group)
    domains, seeds = {d for d, _ in models}, {s for _, s in models}
    if len(domains) < 2 or len(seeds) < 2:
        raise lacking(
            "csac-fig4", "models that sites trained without each other, from two seeds or more",
            f"feddg bench {group.runs[0].experiment.data} --methods ind-average --seeds 3"
            " --diagnostics models",
        )  # fmt: skip
    layers = chief_layers(next(iter(models.values())).layout)
    named = {f"{domain}/{seed}": (domain, seed) for domain, seed in models}
    far = between({name: models[key] for name, key in named.items()})
    apart: dict[str, dict[str, list[float]]] = {"within a domain": {}, "between domains": {}}
    for (a, b), by_layer in far.items():
        (domain, seed), (other, another) = named[a], named[b]
        if seed != another:
            kind = "within a domain" if domain == other else "between domains"
            for layer in layers:
                apart[kind].setdefault(layer, []).append(by_layer[layer])
    note = (
        f"{group.title}. {len(models)} models of {len(domains)} domains; ± standard deviation"
        " over pairs of different seeds"
    )
    bars = tuple(
        Series(
            kind, layers, tuple(fmean(by[at]) for at in layers),
            tuple(stdev(by[at]) if len(by[at]) > 1 else None for at in layers),
        )
        for kind, by in apart.items()
    )  # fmt: skip
    title = "Models that were trained apart"
    distances = Chart("csac-fig4-distances", title, "bar", "layer", "L2 distance", bars, note)
    return (distances, *(scattered(models, layer, note) for layer in layers))


def trained_apart(group: Group) -> Models:
    """From runs that kept the sites' models, and in which no site heard of another."""
    found: dict[tuple[str, int], Weights] = {}
    for run in group.runs:
        alone = run.experiment.rounds == 1 or any(
            isinstance(link, IndependentAverage) for link in chain(compose(run.experiment.method))
        )
        if alone and (run.folder / LOCALS).exists():
            replies, _ = read_packets(run.folder / LOCALS)
            for site, reply in replies.items():
                found.setdefault((site, run.experiment.seed), reply.model)
    return found


def scattered(models: Models, layer: str, note: str) -> Chart:
    """Every point is a model: its parameters of one layer."""
    keys = list(models)
    rows = torch.stack([m.parameters[m.layout.layers[layer]] for m in models.values()])
    points: Points = {}
    for (domain, seed), at in zip(keys, tsne(rows).points, strict=True):
        points.setdefault((domain, f"seed {seed}"), []).append(plane(at))
    names = list(dict.fromkeys(domain for domain, _ in keys))
    series = clouds(points, names, 0)
    title = f"t-SNE of the models' parameters: {layer}"
    return Chart(named("csac-fig4", layer), title, "scatter", "", "", series, note)
