"""The Python interface: from your module and your sites to a federated model in one call."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from feddg.benchmark.driver import Conducted, Event, conducted
from feddg.benchmark.records import Record, RunFolder
from feddg.catalogue import compose, spelled
from feddg.data.domain import Collection, Federation, leave_one_domain_out
from feddg.deploy import save_model
from feddg.engines.loop import Run
from feddg.method import Method
from feddg.packets import State
from feddg.recipe import Recipe
from feddg.tasks import Scores


@dataclass(frozen=True, eq=False)
class Result:
    """A finished run. `predictor` takes raw inputs and gives logits or log-probabilities."""

    run: Run
    state: State
    records: list[Record]

    @property
    def predictor(self) -> nn.Module:
        bare = self.run.method.predictor(self.state, self.run.model)
        return Prepared(bare, self.run.federation.collection.prepare).eval()

    @property
    def scores(self) -> dict[str, Scores]:
        """By part (val/<site>, test/<target>), of the last round."""
        found: dict[str, Scores] = self.records[-1]["scores"]
        return found

    def save(self, folder: str | Path) -> None:
        """A folder that `feddg predict` and `feddg evaluate` work from."""
        save_model(folder, self.run, self.state, {"scores": self.scores})


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
    recipe: Recipe | None = None,
    rounds: int = 10,
    seed: int = 0,
    selection: str = "last",
    participation: float | int = 1.0,
    min_sites: int | None = None,
    out: str | Path | None = None,
    workers: int | None = None,
    progress: Callable[[Event], None] | None = None,
) -> Result:
    """Train `model` over the sites of `data` and return the result.

    With a Collection, `target` is the domain to hold out. With `out`, the run is recorded in
    that folder; the same call goes on where an interrupted one stopped. `progress` is called
    after every round.
    """
    if isinstance(data, Collection):
        data = leave_one_domain_out(data, target or data.names[-1], share=0.2, seed=seed)
    chosen = compose(method) if isinstance(method, str) else method
    run = Run(
        chosen, model, data, recipe or Recipe(), rounds, seed, participation, min_sites
    )
    folder = RunFolder.open(Path(out), described(run, selection)) if out else None
    try:
        one = Conducted(run, spelled(chosen), selection, folder, tidy=False)
        events = conducted([one], workers)
        while True:
            try:
                event = next(events)
            except StopIteration as end:
                [state] = end.value
                return Result(run, state, one.records)
            if progress:
                progress(event)
    finally:
        if folder:
            folder.close()


def described(run: Run, selection: str) -> str:
    """The configuration of a run whose module and data only the caller can make again."""
    from dataclasses import asdict

    import tomli_w

    from feddg.benchmark.experiment import cleaned

    values = {
        "model": type(run.model).__qualname__, "method": spelled(run.method),
        "sites": {s.name: len(s.train) for s in run.sites},
        "targets": [d.name for d in run.federation.targets],
        "rounds": run.rounds, "seed": run.seed, "participation": run.participation,
        "min_sites": run.min_sites, "selection": selection, "recipe": asdict(run.recipe),
    }  # fmt: skip
    return tomli_w.dumps(cleaned(values))
