"""Conduct experiments: all of a batch in lockstep, recorded, checkpointed, resumable."""

import json
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

from torch import Tensor

from feddg import checkpoint, stages
from feddg.benchmark.diagnostics import MODELS, diagnosed, diagnostics
from feddg.benchmark.experiment import Experiment
from feddg.benchmark.locals import LOCALS, read_packets, write_locals
from feddg.benchmark.records import RunFolder, finished
from feddg.benchmark.selection import Record, rule
from feddg.checkpoint import Checkpoint, write_whole
from feddg.deploy import Architecture, save_model
from feddg.engines import one_thread, open_engine
from feddg.engines.compute import Compute
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import Question, Round, Run, first_state, rounds
from feddg.engines.rehearsal import rehearse
from feddg.errors import ConfigError, FeddgError, RunsFailed
from feddg.interrupts import deferred
from feddg.packets import Packet, Reply, State
from feddg.stages import stage
from feddg.tasks import Task
from feddg.trees import Tree
from feddg.wire import flatten

SECONDS_BETWEEN_CHECKPOINTS = 5.0
TIMES = 10  # as long as all in lockstep take to be saved, at least: a tenth of the time goes there


@dataclass(frozen=True, eq=False)
class Event:
    """A finished round of one run, for whoever shows progress."""

    key: str
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
    diagnostics: tuple[str, ...] = ()
    records: list[Record] = field(default_factory=list)
    replies: dict[str, Reply] = field(default_factory=dict)  # every site's last, where asked for
    at: Checkpoint = field(init=False)  # after the last whole round
    stored: int = 0  # the round that comes next by the checkpoint on the disk
    when: float = field(default_factory=time.monotonic)
    beside: int = 1  # runs that go in lockstep, this one among them
    took: float = 0.0  # seconds, the last checkpoint

    def __post_init__(self) -> None:
        """Go on from the folder's checkpoint, if there is one."""
        self.at = Checkpoint(0, first_state(self.run), {})
        if self.folder is None:
            if MODELS in self.diagnostics:
                raise ConfigError("diagnostics 'models' keeps a file; name a folder for it (out=)")
            return
        self.records = self.folder.records()
        if self.folder.checkpoint.exists():
            self.at = checkpoint.load(self.folder.checkpoint).to(self.run.device)
            self.stored = self.at.next_round
            if MODELS in self.diagnostics:
                self.replies, _ = read_packets(self.folder.path / LOCALS)
        if self.stored > len(self.records):
            raise ConfigError(
                f"{self.folder.log} has {len(self.records)} rounds where the checkpoint has"
                f" {self.stored}; remove the folder to start anew"
            )

    @property
    def key(self) -> str:
        return self.folder.path.name if self.folder else self.label

    @property
    def task(self) -> Task:
        return self.run.federation.collection.task

    def note(self, record: Record, done: Round, memories: Mapping[str, Tree]) -> Record:
        """Record a round, keep the state if the rule prefers it, save now and then.

        A round that was recorded before the run was cut off is not recorded twice.
        """
        if done.index < len(self.records):
            record = self.records[done.index]
        else:
            self.records.append(record)
            if self.folder:
                self.folder.append(record)
        if MODELS in self.diagnostics:
            self.replies |= {r.site: r for r in done.replies}
        best = (self.at.best, self.at.best_round, self.at.best_score)
        score = rule(self.selection).score(record, self.task)
        if score is not None and (best[2] is None or score > best[2]):
            best = (done.state, done.index, score)
        self.at = Checkpoint(done.index + 1, done.state, dict(memories), *best)
        last = self.at.next_round == self.run.rounds
        pause = max(SECONDS_BETWEEN_CHECKPOINTS, TIMES * self.took * self.beside)
        if last or time.monotonic() - self.when >= pause:
            self.keep()
        return record

    def keep(self) -> None:
        """To the disk, what is not there yet."""
        if self.folder is None or self.at.next_round == self.stored:
            return
        began = time.monotonic()
        self.folder.sync()
        if MODELS in self.diagnostics:
            write_locals(self.folder.path / LOCALS, self.run.method, self.replies, self.at.state)
        checkpoint.save(self.folder.checkpoint, self.at)
        self.stored, self.when = self.at.next_round, time.monotonic()
        self.took = self.when - began

    @property
    def chosen(self) -> tuple[State, Record]:
        """The state that the selection rule prefers, and what is recorded of its round."""
        if self.at.best is None:
            return self.at.state, self.records[self.at.next_round - 1]
        return self.at.best, self.records[self.at.best_round]

    def finish(self) -> None:
        """In a folder the chosen state becomes a model, written last of all."""
        if self.folder is None:
            return
        if stages.active:
            told = [r for r in stages.active.rounds if self.key in r["rounds"]]
            write_whole(self.folder.profile, json.dumps(told, indent=1).encode())
        save_model(self.folder.model, self.run, self.chosen[0], self.about(), self.architecture)
        if self.tidy:
            self.folder.checkpoint.unlink(missing_ok=True)

    def about(self) -> dict[str, Any]:
        """For the model's card."""
        by, (_, record) = rule(self.selection), self.chosen
        length = f"; shortened schedule {self.schedule!r}" if self.schedule else ""
        return {
            "scores": record["scores"], "round": record["round"],
            "selection": f"{by.name} ({by.line}){length}",
        }  # fmt: skip


def conduct(
    experiments: Sequence[Experiment], root: Path, how: Compute | int | None = None
) -> Generator[Event, None, None]:
    """Run what is not finished yet under `root`; yields after every round of each.

    Everything is read and checked before the first folder is made. Runs that cannot begin, or
    fail on their way, are told of at the end (RunsFailed), when the others are finished; tried
    again, they go on from their checkpoints.
    """
    compute = Compute.of(how)
    todo = [(e, root / e.key) for e in experiments]
    todo = [(e, path) for e, path in todo if not finished(path)]
    with ExitStack() as stack, one_thread():
        made = [(e, path, e.prepared(compute)) for e, path in todo]
        failed, opened = {}, []
        for e, _, ready in made:
            try:
                rehearse(ready.run)
            except FeddgError as error:
                failed[e.key] = str(error)
        for e, path, ready in made:
            if e.key in failed:
                continue
            folder = RunFolder.open(path, e.resolved().to_toml(), ready.splits, compute.told())
            stack.callback(folder.close)
            if folder.finished:  # meanwhile, by another process
                continue
            opened.append(
                Conducted(
                    ready.run, e.label, e.selection, folder, ready.architecture, e.schedule,
                    diagnostics=diagnostics(e.diagnostics),
                )
            )  # fmt: skip
        try:
            yield from conducted(opened, compute)
        except RunsFailed as error:
            failed |= error.reasons
        if failed:
            raise RunsFailed(failed, len(todo))


def conducted(opened: Sequence[Conducted], compute: Compute) -> Generator[Event, None, None]:
    """All of them in lockstep to their end. However it ends, no whole round is lost."""
    going = [c for c in opened if c.at.next_round < c.run.rounds]
    by_run = {id(c.run): c for c in going}
    runs = [c.run for c in going]
    failed: dict[int, FeddgError] = {}

    def fails(run: Run, error: FeddgError) -> None:
        failed[id(run)] = error

    if going:
        try:
            with open_engine(runs, compute) as engine:
                for c in going:
                    c.beside = len(going)
                    engine.remember(c.run, c.at.memories)
                starts = [(c.at.next_round, c.at.state) for c in going]
                for done in rounds(runs, engine, starts, fails):
                    yield from noted(done, by_run, engine)
                    if stages.active:
                        stages.active.end_round({by_run[id(r)].key: k.index for r, k in done})
        finally:
            for c in going:
                c.keep()
    for c in opened:
        if id(c.run) not in failed:
            c.finish()
    if failed:
        reasons = {by_run[at].key: str(error) for at, error in failed.items()}
        raise RunsFailed(reasons, len(opened)) from next(iter(failed.values()))


def noted(
    done: Sequence[tuple[Run, Round]], by_run: Mapping[int, Conducted], engine: InProcess
) -> Iterator[Event]:
    """Every run's round is noted before anybody hears of the first."""
    asked = [Question(run, k.state, tuple(run.judged)) for run, k in done]
    more = diagnosed(engine, done, [by_run[id(run)].diagnostics for run, _ in done])
    events = []
    for (run, k), scores, extra in zip(done, engine.score(asked), more, strict=True):
        c = by_run[id(run)]
        with deferred(), stage("record"):
            record = c.note(recorded(run, k, scores) | extra, k, engine.memories(run))
        events.append(Event(c.key, c.label, record, c.task.metric))
    yield from events


def recorded(run: Run, k: Round, scores: dict[str, dict[str, float]]) -> Record:
    """One line of results.jsonl: plain values, null where a number is not finite."""
    sent = size(run.method.broadcast(k.state, k.index))
    terms = dict.fromkeys(term for r in k.replies for term in r.losses)
    found = {
        "round": k.index,
        "scores": scores,
        "worst": worst(scores, run.federation.collection.task.metric),
        "losses": {t: fmean(r.losses[t] for r in k.replies if t in r.losses) for t in terms},
        "trace": k.state.trace,
        "sites": [r.site for r in k.replies],
        "failures": {f.site: f.reason for f in k.failures},
        "bytes_down": sent * (len(k.replies) + len(k.failures)),
        "bytes_up": sum(size(r) for r in k.replies),
        "seconds": round(k.seconds, 4),
    }
    plain: Record = plainly(found)
    return plain


def worst(scores: Mapping[str, Mapping[str, float]], metric: str) -> dict[str, float]:
    """The worst domain's score among the sources' validation parts, and among the targets."""
    found: dict[str, float] = {}
    for part, values in scores.items():
        kind = part.partition("/")[0]
        if metric in values:
            found[kind] = min(values[metric], found.get(kind, inf))
    return found


def plainly(value: Any) -> Any:
    """As strict JSON has it."""
    if isinstance(value, Mapping):
        return {str(k): plainly(v) for k, v in value.items()}
    if isinstance(value, Tensor):
        return plainly(value.tolist())
    if isinstance(value, list | tuple):
        return [plainly(v) for v in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def size(packet: Packet) -> int:
    """Of what crosses the wire, without the few bytes of names and headers."""
    tensors = [packet.model.vector, *flatten(packet.notes).values()]
    return sum(t.numel() * t.element_size() for t in tensors)
