"""The one federated loop, for any number of runs at once. An engine only reaches the sites."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Protocol

import torch
from torch import Generator, nn

from feddg.data.domain import Examples, Federation, Site
from feddg.errors import ConfigError, SiteFailure
from feddg.guard import Guard
from feddg.local import Job
from feddg.method import Method, Work
from feddg.packets import Inbox, Reply, State
from feddg.recipe import Recipe
from feddg.seeds import generator, seed_for
from feddg.tasks import Scores
from feddg.trees import Tree


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
    server: Site | None = None  # the server's own (unlabelled) data
    guard: Guard = Guard()

    def __post_init__(self) -> None:
        """Every verb, and whoever saves the model, sees the network as the method wants it."""
        object.__setattr__(self, "model", self.method.architecture(self.model))

    @property
    def sites(self) -> tuple[Site, ...]:
        return self.federation.sites

    @property
    def names(self) -> list[str]:
        return [s.name for s in self.sites]

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
        """Deliver every run's inbox to its sites; answers in the order of the sites."""

    def work(self, visits: Sequence[Work[State]]) -> list[State]:
        """Carry out the server's side."""

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


def rounds(
    runs: Sequence[Run], engine: Engine, starts: Sequence[tuple[int, State]] | None = None
) -> Iterator[list[tuple[Run, Round]]]:
    """Step all unfinished runs one round at a time; `starts` goes on from (round, state)."""
    began = starts or [(0, first_state(r)) for r in runs]
    states = {id(run): at for run, at in zip(runs, began, strict=True)}
    while True:
        going = [r for r in runs if states[id(r)][0] < r.rounds]
        if not going:
            return
        t = perf_counter()
        posts = []
        for run in going:
            k, state = states[id(run)]
            posts.append(Post(run, run.method.broadcast(state, k), run.asked(k)))
        sifted = [sift(p, got) for p, got in zip(posts, engine.exchange(posts), strict=True)]
        visits = [
            p.run.method.aggregate(
                fresh(states[id(p.run)][1]), good, p.run.job(p.run.server, p.inbox.round)
            )
            for p, (good, _) in zip(posts, sifted, strict=True)
        ]
        after = engine.work(visits)
        took = (perf_counter() - t) / len(going)
        done = []
        for post, state, (good, bad) in zip(posts, after, sifted, strict=True):
            k = post.inbox.round
            states[id(post.run)] = (k + 1, state)
            done.append((post.run, Round(k, state, good, bad, took)))
        yield done


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
    for answer in answers:
        if isinstance(answer, Failure):
            bad.append(answer)
            continue
        fault = run.guard.fault(answer, post.inbox, declared)
        if fault:
            bad.append(Failure(answer.site, fault))
        else:
            good.append(answer)
    needed = len(post.sites) if run.min_sites is None else run.min_sites
    if len(good) < max(needed, 1):
        what = "; ".join(f"{f.site}: {f.reason}" for f in bad)
        raise SiteFailure(
            f"round {post.inbox.round}: {len(good)} of {len(post.sites)} sites gave a good reply,"
            f" {max(needed, 1)} are needed. {what}"
        )
    return good, bad
