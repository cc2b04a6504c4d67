"""Sites in parallel processes, one thread each: the in-process engine, spread over cores.

Workers are forked after the runs are made, so data and models are shared memory and nothing
is copied or imported again. They keep nothing: a visit's memory travels with it, so any worker
can take any visit and the result does not depend on how many there are.
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from feddg import stages, wire
from feddg.engines.alone import Paused
from feddg.engines.inprocess import InProcess, scored, shelved
from feddg.engines.loop import Failure, Post, Question, Run
from feddg.engines.pieces import LEAST, Handed, cuts, shifted
from feddg.engines.processes import die_with, keep_memory, quietly
from feddg.errors import FeddgError, SiteFailure, explained
from feddg.packets import Inbox, Reply, State
from feddg.shelf import Shelf
from feddg.stages import stage
from feddg.tasks import Scores

Task = tuple[str, dict[str, Any], list[bytes]]  # what to do, its small arguments, its packets


@dataclass(eq=False)
class Workers(InProcess):
    """`count` processes for these runs; close it (or use `with`) to end them."""

    runs: Sequence[Run] = ()
    count: int = 2
    pool: list[tuple[BaseProcess, Connection]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for run in self.runs:
            _ = run.judged  # made once here, shared by all
        context = get_context("fork")
        parent = os.getpid()
        for _ in range(self.count):
            ours, theirs = context.Pipe()
            others = [c for _, c in self.pool] + [ours]
            process = context.Process(
                target=serve, args=(theirs, others, self.runs, parent), daemon=True
            )
            with quietly():
                process.start()
            theirs.close()
            self.pool.append((process, ours))

    def close(self, at_once: bool = False) -> None:
        """Let them end, or end them `at_once`, whatever they are doing."""
        for process, pipe in self.pool:
            pipe.close()  # a worker whose pipe is closed ends
            if at_once:
                process.kill()
        for process, _ in self.pool:
            process.join(timeout=5)
            if process.is_alive():
                process.kill()
                process.join()
        self.pool = []

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(at_once=kind is not None)

    def exchange(self, posts: Sequence[Post]) -> list[list[Reply | Failure]]:
        visits = [(post, site) for post in posts for site in post.sites]
        inboxes = {id(p): wire.pack_packet(p.inbox) for p in posts}
        steps = [p.run.recipe.at(p.inbox.round).length(len(s.train)) for p, s in visits]
        sizes = [p.run.recipe.batch(len(s.train)) for p, s in visits]
        costs = [float(n * size) for n, size in zip(steps, sizes, strict=True)]
        firsts = [round(n * c) for n, c in zip(steps, cuts(costs, self.count), strict=True)]
        cut = [LEAST <= first <= n - LEAST for first, n in zip(firsts, steps, strict=True)]
        handed: dict[int, tuple[dict[str, Any], list[bytes]]] = {}

        def task(at: int) -> Task:
            post, site = visits[at]
            where = {"run": self.index(post.run), "site": site.name}
            memory = wire.pack(self.memories(post.run).get(site.name, {}))
            if at in handed:
                head, paused = handed.pop(at)
                return "visit", {**where, **head}, [inboxes[id(post)], memory, *paused]
            until = {"until": firsts[at]} if cut[at] else {}
            return "visit", where | until, [inboxes[id(post)], memory]

        replies: dict[int, Reply | Failure] = {}
        shelf = Shelf()

        def arrived(at: int, head: dict[str, Any], packets: list[bytes]) -> bool:
            post, site = visits[at]
            if "answers" in head:
                handed[at] = head, packets
            elif "error" in head:
                replies[at] = Failure(site.name, head["error"])
            else:
                reply = wire.unpack_packet(packets[0])
                assert isinstance(reply, Reply)
                self.staged[post.run][site.name] = wire.unpack(packets[1])
                replies[at] = shelved(reply, shelf)
            return at in replies

        first = [firsts[i] if cut[i] else 0 for i in range(len(visits))]
        order = sorted(range(len(visits)), key=lambda i: (first[i], costs[i]), reverse=True)
        self.staged |= {p.run: {} for p in posts}
        with shelf:
            self.spread(order, task, arrived)
        found = iter([replies[at] for at in range(len(visits))])
        return [[next(found) for _ in post.sites] for post in posts]

    def score(self, questions: Sequence[Question]) -> list[dict[str, Scores]]:
        """Where there are more workers than questions, several answer one question's parts."""
        pieces = [
            (at, part) for at, q in enumerate(questions) for part in self.pieces(q, len(questions))
        ]
        states = [wire.pack_packet(q.state) for q in questions]

        def task(i: int) -> Task:
            at, parts = pieces[i]
            return "score", {"run": self.index(questions[at].run), "parts": parts}, [states[at]]

        found: list[dict[str, Scores]] = [{} for _ in questions]

        errors: list[str] = []

        def arrived(i: int, head: dict[str, Any], packets: list[bytes]) -> bool:
            found[pieces[i][0]].update(head.get("scores", {}))
            errors.extend([head["error"]] if "error" in head else [])
            return True

        self.spread(range(len(pieces)), task, arrived)
        if errors:
            raise FeddgError(f"evaluation failed: {errors[0]}")
        return [{p: f[p] for p in q.parts} for q, f in zip(questions, found, strict=True)]

    def pieces(self, question: Question, questions: int) -> list[tuple[str, ...]]:
        """A question's parts in groups of about the same number of examples."""
        wanted = max(1, min(-(-self.count // questions), len(question.parts)))
        sizes = {p: len(question.run.judged[p]) for p in question.parts}
        groups: list[list[str]] = [[] for _ in range(wanted)]
        for part in sorted(sizes, key=lambda p: -sizes[p]):
            min(groups, key=lambda g: sum(sizes[p] for p in g)).append(part)
        return [tuple(g) for g in groups]

    def index(self, run: Run) -> int:
        return next(i for i, r in enumerate(self.runs) if r is run)

    def spread(
        self,
        order: Iterable[int],
        task: Callable[[int], Task],
        arrived: Callable[[int, dict[str, Any], list[bytes]], bool],
    ) -> None:
        """Hand out tasks in this order, each to the next idle worker.

        Every answer goes to `arrived`; what it says is not done goes to the end of the queue.
        """
        todo = deque(order)
        left = len(todo)
        busy: dict[Connection, int] = {}
        idle = [pipe for _, pipe in self.pool]
        while left:
            while idle and todo:
                at, pipe = todo.popleft(), idle.pop()
                busy[pipe] = at
                with alive(), stage("wire"):
                    send(pipe, *task(at))
            with stage("waiting"):
                over = wait(list(busy))
            for ready in over:
                assert isinstance(ready, Connection)
                with stage("wire"):
                    with alive():
                        _, head, packets = receive(ready)
                    at = busy.pop(ready)
                    idle.append(ready)
                    if stages.active:
                        stages.active.add(head.pop("spent"))
                    if arrived(at, head, packets):
                        left -= 1
                    else:
                        todo.append(at)


@contextmanager
def alive() -> Iterator[None]:
    """Talk to a worker, who may have died."""
    try:
        yield
    except (EOFError, ConnectionError) as error:
        raise SiteFailure(
            "a worker process died (out of memory?); run the same command again to go on, with"
            " --workers 1 if it happens again"
        ) from error


def send(pipe: Connection, what: str, head: dict[str, Any], packets: Sequence[bytes]) -> None:
    pipe.send((what, head, len(packets)))
    for packet in packets:
        pipe.send_bytes(packet)


def receive(pipe: Connection) -> Task:
    what, head, count = pipe.recv()
    return what, head, [pipe.recv_bytes() for _ in range(count)]


def serve(pipe: Connection, others: Sequence[Connection], runs: Sequence[Run], parent: int) -> None:
    """A worker's life: answer tasks until the pipe is closed.

    Copies of the other pipes came along with the fork; they are closed, or nobody would
    notice when the main process is gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's to handle
    die_with(parent)
    for other in others:
        other.close()
    torch.set_num_threads(1)
    keep_memory()
    if stages.active:
        stages.active = stages.Stages()
    try:
        while True:
            what, head, packets = receive(pipe)
            if stages.active:  # what went before was idleness
                stages.active.take()
            answer, packets = carried_out(what, head, packets, runs)
            if stages.active:
                answer["spent"] = stages.active.take()
            send(pipe, "answer", answer, packets)
    except (EOFError, ConnectionError):
        os._exit(0)


def carried_out(
    what: str, head: dict[str, Any], packets: Sequence[bytes], runs: Sequence[Run]
) -> tuple[dict[str, Any], list[bytes]]:
    run = runs[head["run"]]
    packet = wire.unpack_packet(packets[0])
    try:
        if what == "score":
            assert isinstance(packet, State)
            return {"scores": scored(Question(run, packet, tuple(head["parts"])))}, []
        assert isinstance(packet, Inbox)
        [site] = [s for s in run.sites if s.name == head["site"]]
        job = run.job(site, packet.round)
        visit = run.method.local_update(packet, job, wire.unpack(packets[1]))
        before = None
        if "answers" in head:
            before = Handed(head["answers"], Paused(wire.unpack(packets[2])))
        result = shifted(visit, head.get("until"), before)
        if isinstance(result, Handed):
            return {"answers": result.answers}, [wire.pack(result.paused.tree)]
        if isinstance(result, Exception):
            return {"error": explained(result)}, []
        reply, memory = result
        return {}, [wire.pack_packet(reply), wire.pack(memory)]
    except Exception as error:  # whatever it was, the main process is to know
        return {"error": explained(error)}, []
