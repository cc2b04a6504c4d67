"""Conduct experiments: all of a batch in lockstep, recorded, checkpointed, resumable."""

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from feddg import checkpoint
from feddg.benchmark.experiment import Experiment, to_toml
from feddg.benchmark.records import Record, RunFolder
from feddg.benchmark.selection import rule
from feddg.checkpoint import Checkpoint
from feddg.deploy import Architecture, save_model
from feddg.engines import open_engine
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import Question, Round, Run, first_state, rounds
from feddg.packets import Packet, State
from feddg.trees import Tree
from feddg.wire import flatten

SECONDS_BETWEEN_CHECKPOINTS = 5.0


@dataclass(frozen=True, eq=False)
class Event:
    """A finished round of one run, for whoever shows progress."""

    label: str
    record: Record
    metric: str


@dataclass(eq=False)
class Conducted:
    """One run on its way: in a folder that it can be resumed from, or in memory alone."""

    run: Run
    label: str
    selection: str = "last"
    folder: RunFolder | None = None
    architecture: Architecture | None = None
    schedule: str = ""
    tidy: bool = True  # remove the checkpoint when the model is written
    start: tuple[int, State] = field(init=False)
    memories: Mapping[str, Tree] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    best: State | None = None
    best_round: int = -1
    best_score: float | None = None
    saved: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Go on from the folder's checkpoint, if there is one."""
        rule(self.selection)
        if self.folder is None or not self.folder.checkpoint.exists():
            if self.folder:
                self.folder.resume(0)
            self.start = (0, first_state(self.run))
            return
        at = checkpoint.load(self.folder.checkpoint)
        self.records = self.folder.resume(at.log)
        self.start, self.memories = (at.next_round, at.state), at.memories
        self.best, self.best_round, self.best_score = at.best, at.best_round, at.best_score

    @property
    def metric(self) -> str:
        return self.run.federation.collection.task.metric

    def note(self, record: Record, done: Round, engine: InProcess) -> None:
        """Record a round, keep the state if the rule prefers it, save now and then."""
        self.records.append(record)
        score = self.score(record)
        if score is not None and (self.best_score is None or score > self.best_score):
            self.best, self.best_round, self.best_score = done.state, record["round"], score
        if self.folder:
            self.folder.append(record)
            self.save(self.folder, done, engine)

    def score(self, record: Record) -> float | None:
        chosen = rule(self.selection).score
        return chosen(record, self.metric) if chosen else None

    def save(self, folder: RunFolder, done: Round, engine: InProcess) -> None:
        now = time.monotonic()
        last = done.index + 1 == self.run.rounds
        if not last and now - self.saved < SECONDS_BETWEEN_CHECKPOINTS:
            return
        self.saved = now
        at = Checkpoint(
            done.index + 1, done.state, engine.memories(self.run), folder.length,
            self.best, self.best_round, self.best_score,
        )  # fmt: skip
        checkpoint.save(folder.checkpoint, at)

    def finish(self, state: State) -> State:
        """The state that the rule chose; in a folder it becomes a model, written last of all."""
        chosen = self.best if self.best is not None else state
        if self.folder:
            save_model(self.folder.model, self.run, chosen, self.about(), self.architecture)
            if self.tidy:
                self.folder.checkpoint.unlink(missing_ok=True)
        return chosen

    def about(self) -> dict[str, Any]:
        """For the model's card."""
        chosen = rule(self.selection)
        record = self.records[-1 if self.best is None else self.best_round]
        length = f"; shortened schedule {self.schedule!r}" if self.schedule else ""
        return {
            "scores": record["scores"], "round": record["round"],
            "selection": f"{chosen.name} ({chosen.line}){length}",
        }  # fmt: skip


def conduct(
    experiments: Sequence[Experiment], root: Path, workers: int | None = None
) -> Iterator[Event]:
    """Run what is not finished yet under `root`; yields after every round of each."""
    opened: list[Conducted] = []
    folders: list[RunFolder] = []
    try:
        for experiment in experiments:
            folder = RunFolder.open(root / experiment.key, to_toml(experiment.resolved()))
            folders.append(folder)
            if not folder.finished:
                run, architecture = experiment.prepared_run()
                where = "+".join(experiment.targets) or "all"
                opened.append(
                    Conducted(
                        run, f"{experiment.method}→{where}", experiment.selection, folder,
                        architecture, experiment.schedule,
                    )
                )  # fmt: skip
        if opened:
            yield from conducted(opened, workers)
    finally:
        for folder in folders:
            folder.close()


def conducted(
    opened: Sequence[Conducted], workers: int | None
) -> Generator[Event, None, list[State]]:
    """All of them in lockstep; returns the chosen states."""
    by_run = {id(c.run): c for c in opened}
    states = {id(c.run): c.start[1] for c in opened}
    runs = [c.run for c in opened]
    with open_engine(runs, workers) as engine:
        for c in opened:
            engine.remember(c.run, c.memories)
        for done in rounds(runs, engine, [c.start for c in opened]):
            asked = [Question(run, k.state, tuple(run.judged)) for run, k in done]
            for (run, k), scores in zip(done, engine.score(asked), strict=True):
                c, states[id(run)] = by_run[id(run)], k.state
                record = recorded(run, k, scores)
                c.note(record, k, engine)
                yield Event(c.label, record, c.metric)
    return [c.finish(states[id(c.run)]) for c in opened]


def recorded(run: Run, k: Round, scores: dict[str, dict[str, float]]) -> Record:
    sent = size(run.method.broadcast(k.state, k.index))
    names = k.replies[0].losses if k.replies else {}
    return {
        "round": k.index,
        "scores": scores,
        "losses": {n: fmean(r.losses.get(n, 0.0) for r in k.replies) for n in names},
        "trace": dict(k.state.trace),
        "sites": [r.site for r in k.replies],
        "failures": {f.site: f.reason for f in k.failures},
        "bytes_down": sent * (len(k.replies) + len(k.failures)),
        "bytes_up": sum(size(r) for r in k.replies),
        "seconds": round(k.seconds, 4),
    }


def size(packet: Packet) -> int:
    """Of what crosses the wire, without the few bytes of names and headers."""
    tensors = [packet.model.vector, *flatten(packet.notes).values()]
    return sum(t.numel() * t.element_size() for t in tensors)
