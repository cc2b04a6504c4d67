"""The Python interface: from your module and your sites to a federated model in one call."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from feddg.benchmark import config
from feddg.benchmark.diagnostics import diagnostics as named_diagnostics
from feddg.benchmark.driver import Conducted, Event, conducted
from feddg.benchmark.records import RunFolder
from feddg.benchmark.roles import Splits, complete, rows_of
from feddg.benchmark.selection import Record, rule
from feddg.catalogue import compose, spelled
from feddg.data.adaptation import adapted, adapting
from feddg.data.domain import Collection, Federation, federation
from feddg.deploy import save_model
from feddg.engines import one_thread
from feddg.engines.compute import Compute
from feddg.engines.loop import Run
from feddg.engines.rehearsal import rehearse
from feddg.errors import ConfigError, DataError, unknown
from feddg.method import Method
from feddg.packets import State
from feddg.parts.features import digest, digest_inputs
from feddg.recipe import Recipe
from feddg.tasks import Scores
from feddg.weights import Layout, Weights


@dataclass(frozen=True, eq=False)
class Result:
    """A finished run. `state` and `scores` are those of the round that the selection chose."""

    run: Run
    state: State
    record: Record  # of that round
    records: list[Record]  # of all
    about: dict[str, Any]

    @property
    def predictor(self) -> nn.Module:
        """Takes raw inputs and gives logits or log-probabilities."""
        bare = self.run.method.predictor(self.state, self.run.model)
        return Prepared(bare, self.run.federation.collection.prepare).eval().cpu()

    @property
    def scores(self) -> dict[str, Scores]:
        """By part: val/<site>, validation/<domain>, test/<target>."""
        found: dict[str, Scores] = self.record["scores"]
        return found

    def save(self, folder: str | Path) -> None:
        """A folder that `feddg predict` and `feddg evaluate` work from."""
        save_model(folder, self.run, self.state, self.about)


class Prepared(nn.Module):
    """The model behind its preprocessing."""

    def __init__(self, model: nn.Module, prepare: tuple[Any, ...]):
        super().__init__()
        self.model, self.prepare = model, prepare

    def forward(self, x: Any) -> Any:
        for transform in self.prepare:
            x = transform.apply(x, {})
        return self.model(x)


def train(
    model: nn.Module,
    data: Federation | Collection,
    method: str | Method = "fedavg",
    *,
    target: str | None = None,
    task: str = "dg",
    share: float = 0.2,
    recipe: Recipe | None = None,
    rounds: int = 10,
    seed: int = 0,
    selection: str = "last",
    participation: float | int = 1.0,
    min_sites: int | None = None,
    allow_missing_classes: bool = False,
    out: str | Path | None = None,
    workers: int | None = None,
    compute: Compute | None = None,
    diagnostics: str | None = None,
    progress: Callable[[Event], None] | None = None,
) -> Result:
    """Train `model` over the sites of `data` and return the result.

    target    of a Collection: the domain to hold out and judge on; without one, all train
    task      dg: nobody sees the target; uda: 80% of it lies at the server without labels, and the
              other 20% is what it is judged on (or the data's own training and test parts)
    share     of a Collection: of each site's data, held out for validation
    allow_missing_classes  whether a site may have no training example of a class
    out       a folder that records the run; the same call goes on where an interrupted one stopped
    workers   processes on the CPU; `compute` says more: the device, precision, execution
    diagnostics  "curves": also record every site's own model on every domain, each round;
              "distances": how far the sites' models are from each other; "models": keep the last
              ones in `out`; several: "curves,models"
    progress  called after every round
    """
    if rounds < 1:
        raise ConfigError(f"rounds must be at least 1, not {rounds}")
    on = compute or Compute(workers=workers)
    chosen = compose(method) if isinstance(method, str) else method
    splits = None
    if isinstance(data, Collection):
        data, splits = divided(data, target, share, seed)
    elif target is not None:
        raise ConfigError("target= is for a Collection; a Federation names its targets itself")
    if adapted(task) and data.server is None:
        data = adapting(data, seed)
    if not allow_missing_classes:
        complete(data)
    run = Run(chosen, model, data, recipe or Recipe(), rounds, seed, participation, min_sites)
    run = on.placed(run)
    rule(selection).check(run.judged)
    named = named_diagnostics(diagnostics)
    with ExitStack() as stack, one_thread():
        rehearse(run)
        folder = None
        if out is not None:
            folder = RunFolder.open(Path(out), described(run, selection), splits, on.told())
            stack.callback(folder.close)
        one = Conducted(run, spelled(chosen), selection, folder, tidy=False, diagnostics=named)
        for event in stack.enter_context(closing(conducted([one], on))):
            if progress:
                progress(event)
        state, record = one.chosen
        return Result(run, state, record, one.records, one.about())


def divided(
    data: Collection, target: str | None, share: float, seed: int
) -> tuple[Federation, Splits]:
    """Every domain but the target is a site, and which rows each of them holds out."""
    if target is not None and target not in data.names:
        raise unknown(f"domain of {data.name}", target, data.names)
    sources = data.sources([] if target is None else [target])
    if not sources:
        raise DataError(f"{data.name} has one domain only ({target}); holding it out leaves none")
    split = tuple(d.split(share, seed) if d.name in sources else d for d in data.domains)
    data = replace(data, domains=split)
    targets = [target] if target is not None else []
    rows = {d.name: rows_of(d) for d in split if d.name in sources}
    return federation(data, sources, targets), rows


def described(run: Run, selection: str) -> str:
    """The configuration of a run whose module and data only the caller can make again."""
    late = {s.name: s.joins for s in run.sites if s.joins}
    return config.to_toml(
        {
            "model": type(run.model).__qualname__, "weights": Layout.of(run.model).size,
            "start": digest(Weights.of(run.model).vector),
            "method": spelled(run.method), "in_full": repr(run.method),
            "sites": {s.name: digest_inputs(s.train) + digest(s.train.y) for s in run.sites},
            "targets": [d.name for d in run.federation.targets],
            "rounds": run.rounds, "seed": run.seed, "participation": run.participation,
            "min_sites": run.min_sites, "selection": selection, "recipe": asdict(run.recipe),
            **({"joins": late} if late else {}),
            **({"server": digest_inputs(run.server.train)} if run.server else {}),
        }
    )  # fmt: skip
