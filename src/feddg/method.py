"""A federated method: five verbs, explicit state, no knowledge of the engine.

server   init --> broadcast -----------------> aggregate --> broadcast --> ...
site                  '--> local_update --'
anyone   predictor: the module that a state, an inbox or a reply stands for

`local_update` and `aggregate` are generators: they *yield* their heavy work (a training, an
evaluation, or a list of such) and receive the result, so an engine may gather the work of many
sites and runs.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from torch import nn

from feddg.errors import ConfigError
from feddg.local import Answer, Job, Request
from feddg.packets import Inbox, Packet, Reply, State
from feddg.trees import Tree

T = TypeVar("T")
Asked = Request | list[Request]  # several at once are answered by a list
Work = Generator[Asked, Answer, T]
Visit = Work[tuple[Reply, Tree]]

Sees = Literal["sums", "numbers", "gram", "everything"]
"""What the server must see of the updates in the clear, from least to most."""
SEES: tuple[Sees, ...] = ("sums", "numbers", "gram", "everything")


@dataclass(frozen=True)
class Reveals:
    """What leaves a site besides its weights, number of examples, steps and losses."""

    notes: dict[str, str] = field(default_factory=dict)  # note -> what it says, in words
    server_sees: Sees = "sums"

    def __or__(self, other: "Reveals") -> "Reveals":
        most = max(self.server_sees, other.server_sees, key=SEES.index)
        return Reveals({**self.notes, **other.notes}, most)


class Method(Protocol):
    @property
    def reveals(self) -> Reveals:
        """Declared here, enforced by the guard."""

    def architecture(self, model: nn.Module) -> nn.Module:
        """The network that is trained, made of the one given; once before a run.

        What it has made already it gives back as it is.
        """

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        """The server's state before round 0."""

    def broadcast(self, state: State, round: int) -> Inbox:
        """What every site is sent."""

    def asks(self, round: int, names: Sequence[str]) -> Sequence[str] | None:
        """Whose turn it is, of the sites at hand; None leaves it to the run's participation."""

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        """One site's work. `memory` stays at the site and is empty at first."""

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        """The next state. `job` has the server's stream and its own data, if it holds any."""

    def predictor(self, packet: Packet, model: nn.Module) -> nn.Module:
        """The module to evaluate: merged for a state or inbox, local for a reply."""


@dataclass(frozen=True)
class Wrapper:
    """Delegates every verb to `inner`; a method overrides the verbs it changes.

    `claims` are decisions of which a composition can have only one taker: "merge" (how
    replies become a model), "weights" (a site's say), "step" (how an update is made), "head"
    (what becomes of the classifiers), "start" (the model from which a site trains on).
    A wrapper that claims the merge says which leaf it brings in `leaf`. `deploys` names the
    notes of the state that its predictor needs: these, and no others, go into a saved model.
    """

    inner: Method

    claims: ClassVar[frozenset[str]] = frozenset()
    own: ClassVar[Reveals] = Reveals()
    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    deploys: ClassVar[tuple[str, ...]] = ()
    outermost: ClassVar[bool] = False  # it judges or weighs what the whole composition makes
    adapts: ClassVar[bool] = False  # it learns from unlabelled data of the target at the server

    @property
    def leaf(self) -> Any:
        """The FedAvg that this method needs innermost, or None if any will do."""
        return None

    @property
    def reveals(self) -> Reveals:
        return self.own | self.inner.reveals

    def __post_init__(self) -> None:
        for other in chain(self.inner):
            if type(other) is type(self):
                raise ConfigError(f"{title(self)} stands twice in one composition; once is enough")
            if getattr(other, "outermost", False):
                raise ConfigError(
                    f"{title(other)} goes around {title(self)}, not inside it: write it first"
                )
            both = self.claims & getattr(other, "claims", frozenset())
            if both:
                raise ConfigError(
                    f"{title(self)} and {title(other)} cannot be combined: both decide"
                    f" {MEANING.get(min(both), min(both))}"
                )
        if self.leaf is not None:
            object.__setattr__(self, "inner", planted(self.inner, self.leaf))

    def architecture(self, model: nn.Module) -> nn.Module:
        return self.inner.architecture(model)

    def init(self, model: nn.Module, sites: Sequence[str]) -> State:
        return self.inner.init(model, sites)

    def broadcast(self, state: State, round: int) -> Inbox:
        return self.inner.broadcast(state, round)

    def asks(self, round: int, names: Sequence[str]) -> Sequence[str] | None:
        return self.inner.asks(round, names)

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        return (yield from self.inner.local_update(inbox, job, memory))

    def aggregate(self, state: State, replies: Sequence[Reply], job: Job) -> Work[State]:
        return (yield from self.inner.aggregate(state, replies, job))

    def predictor(self, packet: Packet, model: nn.Module) -> nn.Module:
        return self.inner.predictor(packet, model)


MEANING = {
    "merge": "how the replies become one model",
    "weights": "how much say each site has",
    "step": "how a local update is made",
    "head": "what becomes of the sites' classifiers",
    "start": "from which model a site trains on",
}


def every(asked: Mapping[int, Asked]) -> list[Request]:
    """All that several have asked for, in order."""
    return [r for some in asked.values() for r in (some if isinstance(some, list) else [some])]


def shared_out(asked: Mapping[int, Asked], answers: Sequence[Answer]) -> dict[int, Answer]:
    """To everyone his own; of several answers, an error stands for all."""
    left, found = iter(answers), dict[int, Answer]()
    for i, some in asked.items():
        if not isinstance(some, list):
            found[i] = next(left)
            continue
        mine = [next(left) for _ in some]
        found[i] = next((a for a in mine if isinstance(a, Exception)), mine)
    return found


def together(works: Sequence[Work[T]]) -> Work[list[T]]:
    """Works that know nothing of each other, side by side."""
    results: dict[int, T] = {}
    answers: dict[int, Answer] = dict.fromkeys(range(len(works)))
    while answers:
        asked: dict[int, Asked] = {}
        for i, answer in answers.items():
            try:
                asked[i] = works[i].send(answer)
            except StopIteration as end:
                results[i] = end.value
        answers = shared_out(asked, (yield every(asked))) if asked else {}
    return [results[i] for i in range(len(works))]


def title(method: Any) -> str:
    return type(method).__name__


def chain(method: Method) -> list[Any]:
    """The method and all that it wraps, outermost first."""
    links: list[Any] = [method]
    while isinstance(links[-1], Wrapper):
        links.append(links[-1].inner)
    return links


def adapts(method: Method) -> bool:
    return any(getattr(link, "adapts", False) for link in chain(method))


def planted(method: Method, leaf: Method) -> Method:
    """The same wrappers around another leaf, in place of a leaf with no will of its own."""
    if isinstance(method, Wrapper):
        return replace(method, inner=planted(method.inner, leaf))
    if method not in (type(method)(), leaf):
        raise ConfigError(f"{method} cannot be set where another method brings {leaf}")
    return leaf
