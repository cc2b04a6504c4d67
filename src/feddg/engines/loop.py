"""The one federated loop, for any number of runs at once. An engine only reaches the sites."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Protocol

import torch
from torch import Generator, nn

from feddg.catalogue import spelled
from feddg.data.domain import Examples, Federation, Site
from feddg.errors import ConfigError, FeddgError, SiteFailure, explained, said_once
from feddg.guard import Guard
from feddg.local import Job
from feddg.method import Method, Work, adapts
from feddg.packets import Inbox, Reply, State
from feddg.recipe import Recipe
from feddg.seeds import generator, seed_for
from feddg.stages import stage
from feddg.tasks import Scores
from feddg.trees import Tree
from feddg.weights import Weights


@dataclass(frozen=True, eq=False)
class Run:
    """One federation trained by one method from one seed."""

    method: Method
    model: nn.Module
    federation: Federation
    recipe: Recipe
    rounds: int
    seed: int = 0
    participation: float | int = 1.0  # the share of sites asked in a round, or their number
    min_sites: int | None = None  # fewer good replies end the run; None: all that were asked
    guard: Guard = Guard()

    def __post_init__(self) -> None:
        """Every verb, and whoever saves the model, sees the network as the method wants it."""
        object.__setattr__(self, "model", self.method.architecture(self.model))
        if self.server is None and adapts(self.method):
            raise ConfigError(
                f"{spelled(self.method).partition('(')[0]} adapts to unlabelled data of the target"
                " at the server; ask for it by --task uda (task='uda' in Python)"
            )

    @property
    def server(self) -> Site | None:
        return self.federation.server

    @property
    def sites(self) -> tuple[Site, ...]:
        return self.federation.sites

    @property
    def names(self) -> list[str]:
        return [s.name for s in self.sites]

    @property
    def device(self) -> torch.device:
        """Where the network is, and all that is computed with it."""
        return Weights.of(self.model).vector.device

    @cached_property
    def judged(self) -> dict[str, Examples]:
        """All that a model can be scored on: val/<site>, validation/<domain>, test/<target>."""
        fed = self.federation
        found = {f"val/{s.name}": s.val for s in fed.sites if s.val is not None}
        held = {f"validation/{d.name}": d for d in fed.validation}
        held |= {f"test/{d.name}": d for d in fed.targets}
        return found | {name: d.part("test") or d.examples for name, d in held.items()}

    def job(self, site: Site | None, round: int) -> Job:
        """A seed belongs to the experiment, a stream to (seed, site, round)."""
        data = self.federation.collection
        return Job(
            site, self.model, data.task, self.recipe, seed_for(self.seed, "run"), round,
            self.rounds, data.prepare, data.augment, name=site.name if site else "server",
        )  # fmt: skip

    def asked(self, round: int) -> list[Site]:
        """Who is asked of the sites that have joined: the method's choice, else a seeded one."""
        here = [s for s in self.sites if s.joins <= round]
        if not here:
            raise ConfigError(f"no site has joined by round {round}")
        turn = self.method.asks(round, [s.name for s in here])
        if turn is not None:
            return [s for s in here if s.name in turn]
        share = self.participation
        count = share if isinstance(share, int) else round_up(share * len(here))
        if count >= len(here):
            return here
        if count < 1:
            raise ConfigError(f"participation {share} asks no site at all")
        rng: Generator = generator(self.seed, "participation", round)
        chosen = sorted(torch.randperm(len(here), generator=rng)[:count].tolist())
        return [here[i] for i in chosen]


def round_up(value: float) -> int:
    return int(-(-value // 1))


@dataclass(frozen=True)
class Failure:
    """A site that did not answer, or whose answer was refused."""

    site: str
    reason: str


@dataclass(frozen=True, eq=False)
class Post:
    """One run's message of one round, and to whom it goes."""

    run: Run
    inbox: Inbox
    sites: list[Site]


@dataclass(frozen=True, eq=False)
class Question:
    """How well does this state predict the named parts of `run.judged`? Asked of their holders."""

    run: Run
    state: State
    parts: tuple[str, ...]


class Engine(Protocol):
    def exchange(self, posts: Sequence[Post]) -> list[list[Reply | Failure]]:
        """Deliver every run's inbox to its sites; answers in the order of the sites.

        What the sites remember of it waits for `commit`.
        """

    def commit(self, run: Run, sites: Sequence[str]) -> None:
        """These sites' replies were accepted: their memories are renewed, the others' stay."""

    def work(self, visits: Sequence[Work[State]]) -> list[State | Exception]:
        """Carry out the server's side; an error is of its run alone."""

    def score(self, questions: Sequence[Question]) -> list[dict[str, Scores]]:
        """Evaluate; in a real federation each site scores its own data."""

    def memories(self, run: Run) -> dict[str, Tree]:
        """What the sites remember, for a checkpoint; empty where sites keep it themselves."""

    def remember(self, run: Run, memories: Mapping[str, Tree]) -> None:
        """Put it back, on resume."""


@dataclass(frozen=True, eq=False)
class Round:
    """A finished round of one run."""

    index: int
    state: State
    replies: list[Reply]
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0


def leave(run: Run, error: FeddgError) -> None:
    """Where nobody deals with a run's failure it ends them all."""
    raise error


def rounds(
    runs: Sequence[Run],
    engine: Engine,
    starts: Sequence[tuple[int, State]] | None = None,
    failed: Callable[[Run, FeddgError], None] = leave,
) -> Iterator[list[tuple[Run, Round]]]:
    """Step all unfinished runs one round at a time; `starts` goes on from (round, state).

    A run that fails is handed to `failed` and leaves; the others go on.
    """
    began = starts or [(0, first_state(r)) for r in runs]
    states = {id(run): at for run, at in zip(runs, began, strict=True)}

    def fails(run: Run, error: Exception) -> None:
        k, _ = states.pop(id(run))
        failed(run, described(run, k, error))

    while True:
        going = [r for r in runs if id(r) in states and states[id(r)][0] < r.rounds]
        if not going:
            return
        t = perf_counter()
        posts, heard, visits, done = [], [], [], []
        for run in going:
            try:
                posts.append(posted(run, *states[id(run)]))
            except Exception as error:
                fails(run, error)
        for post, answers in zip(posts, engine.exchange(posts), strict=True):
            try:
                with stage("guard"):
                    good, bad = sift(post, answers)
            except Exception as error:
                fails(post.run, error)
            else:
                heard.append((post, good, bad))
                visits.append(merged(post, states[id(post.run)][1], good))
        with stage("aggregation"):
            after = engine.work(visits)
        took = (perf_counter() - t) / len(going)
        for (post, good, bad), state in zip(heard, after, strict=True):
            run, k = post.run, post.inbox.round
            if isinstance(state, Exception):
                fails(run, state)
                continue
            engine.commit(run, [r.site for r in good])
            states[id(run)] = (k + 1, state)
            done.append((run, Round(k, state, good, bad, took)))
        if done:
            yield done


def posted(run: Run, round: int, state: State) -> Post:
    return Post(run, run.method.broadcast(state, round), run.asked(round))


def merged(post: Post, state: State, good: Sequence[Reply]) -> Work[State]:
    """The next state, never one with a dead model."""
    run, k = post.run, post.inbox.round
    after = yield from run.method.aggregate(fresh(state), good, run.job(run.server, k))
    if not torch.isfinite(after.model.vector).all():
        raise SiteFailure(
            f"round {k}: the model that {spelled(run.method)} merged is not finite (NaN or"
            " infinity); try a lower learning rate"
        )
    return after


def described(run: Run, round: int, error: Exception) -> FeddgError:
    """An error at the server, in words; what is in words already stays as it is."""
    if isinstance(error, FeddgError):
        return error
    found = SiteFailure(
        f"round {round}: {spelled(run.method)} failed at the server: {explained(error)}"
    )
    found.__cause__ = error
    return found


def first_state(run: Run) -> State:
    return run.method.init(run.model, run.names)


def fresh(state: State) -> State:
    """The state without the last round's trace."""
    return State(model=state.model, notes=state.notes)


def sift(post: Post, answers: Sequence[Reply | Failure]) -> tuple[list[Reply], list[Failure]]:
    """Good replies and failures; too few good ones end the run with a clear word."""
    run = post.run
    good: list[Reply] = []
    bad: list[Failure] = []
    declared = frozenset(run.method.reveals.notes)
    for site, answer in zip(post.sites, answers, strict=True):
        if isinstance(answer, Failure):
            bad.append(answer)
            continue
        fault = run.guard.fault(answer, post.inbox, declared, site.name)
        if fault:
            bad.append(Failure(site.name, fault))
        else:
            good.append(answer)
    needed = len(post.sites) if run.min_sites is None else run.min_sites
    if len(good) < max(needed, 1):
        what = said_once((f.site, f.reason) for f in bad)
        raise SiteFailure(
            f"round {post.inbox.round}: {len(good)} of {len(post.sites)} sites gave a good reply,"
            f" {max(needed, 1)} are needed. {what}"
        )
    return good, bad
