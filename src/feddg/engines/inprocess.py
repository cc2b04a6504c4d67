"""All sites in this process; their requests are answered one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

from feddg.data.domain import Site
from feddg.engines.alone import train
from feddg.engines.loop import Failure, Post, Question, Run
from feddg.errors import explained
from feddg.local import Answer, Evaluation, Prediction, Request, Training, evaluate, outputs
from feddg.method import Asked, Visit, Work, every, shared_out
from feddg.packets import Reply, State
from feddg.shelf import Shelf
from feddg.stages import stage
from feddg.tasks import Scores
from feddg.trees import Tree
from feddg.weights import Weights

T = TypeVar("T")
Memories = WeakKeyDictionary[Run, dict[str, Tree]]  # by site; gone with their run


def perform(request: Request) -> Answer:
    if isinstance(request, Training):
        with stage("training"):
            return train(request)
    with stage("evaluation"):
        if isinstance(request, Prediction):
            return outputs(request.predictor, request.data, request.prepare)
        return evaluate(request)


@dataclass(eq=False)
class InProcess:
    kept: Memories = field(default_factory=WeakKeyDictionary)
    staged: Memories = field(default_factory=WeakKeyDictionary)  # until they are committed

    gathers: ClassVar[bool] = False  # the requests of all visits, which then are all held at once

    def exchange(self, posts: Sequence[Post]) -> list[list[Reply | Failure]]:
        visits = [
            visit(post, site, self.memories(post.run).get(site.name, {}))
            for post in posts
            for site in post.sites
        ]
        one_by_one = chain.from_iterable(self.drive([v]) for v in visits)
        done = iter(self.drive(visits)) if self.gathers else one_by_one
        answers: list[list[Reply | Failure]] = []
        with Shelf() as shelf:
            for post in posts:
                self.staged[post.run] = {}
                answers.append([self.shelve(post, s, next(done), shelf) for s in post.sites])
        return answers

    def shelve(
        self, post: Post, site: Site, result: tuple[Reply, Tree] | Exception, shelf: Shelf
    ) -> Reply | Failure:
        if isinstance(result, Exception):
            return Failure(site.name, explained(result))
        reply, self.staged[post.run][site.name] = result
        return shelved(reply, shelf)

    def commit(self, run: Run, sites: Sequence[str]) -> None:
        staged = self.staged.pop(run, {})
        kept = {name: staged[name] for name in sites if name in staged}
        self.kept[run] = {**self.memories(run), **kept}

    def work(self, visits: Sequence[Work[State]]) -> list[State | Exception]:
        return self.drive(visits)

    def score(self, questions: Sequence[Question]) -> list[dict[str, Scores]]:
        return [scored(q) for q in questions]

    def memories(self, run: Run) -> dict[str, Tree]:
        return self.kept.get(run, {})

    def remember(self, run: Run, memories: Mapping[str, Tree]) -> None:
        self.kept[run] = dict(memories)

    def drive(self, visits: Sequence[Work[T]]) -> list[T | Exception]:
        """Let every visit work up to its next request, answer them together, and go on."""
        results: dict[int, T | Exception] = {}
        answers: dict[int, Any] = dict.fromkeys(range(len(visits)))
        while answers:
            pending: dict[int, Asked] = {}
            for i, answer in answers.items():
                try:
                    if isinstance(answer, Exception):
                        visits[i].close()
                        results[i] = answer
                    else:
                        pending[i] = visits[i].send(answer)
                except StopIteration as end:
                    results[i] = end.value
                except Exception as error:  # a site's trouble is the site's, not the run's
                    results[i] = error
            answers = shared_out(pending, self.answer(every(pending)))
        return [results[i] for i in range(len(visits))]

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        return [attempted(r) for r in requests]


def shelved(reply: Reply, shelf: Shelf) -> Reply:
    model = reply.model
    return replace(reply, model=Weights(shelf.placed(model.vector), model.layout))


def attempted(request: Request) -> Answer:
    try:
        return perform(request)
    except Exception as error:
        return error


def visit(post: Post, site: Site, memory: Tree) -> Visit:
    """Nothing of the method runs before the visit is driven, so that no error escapes it."""
    job = post.run.job(site, post.inbox.round)
    return (yield from post.run.method.local_update(post.inbox, job, memory))


def evaluations(question: Question) -> list[tuple[str, Evaluation]]:
    """One predictor, all the data that it is asked about."""
    run = question.run
    collection = run.federation.collection
    predictor = run.method.predictor(question.state, run.model)
    return [
        (name, Evaluation(predictor, run.judged[name], collection.task, collection.prepare))
        for name in question.parts
    ]


def scored(question: Question) -> dict[str, Scores]:
    with stage("evaluation"):
        return {name: evaluate(request) for name, request in evaluations(question)}
