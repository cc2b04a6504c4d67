"""Sites in parallel processes, one thread each: the in-process engine, spread over cores.

Workers are forked after the runs are made, so data and models are shared memory and nothing
is copied or imported again. They keep nothing: a visit's memory travels with it, so any worker
can take any visit and the result does not depend on how many there are.
"""

import os
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from feddg import wire
from feddg.engines.inprocess import InProcess, explained, scored
from feddg.engines.loop import Failure, Post, Question, Run
from feddg.errors import FeddgError, SiteFailure
from feddg.packets import Inbox, Reply, State
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
        for _ in range(self.count):
            ours, theirs = context.Pipe()
            others = [c for _, c in self.pool] + [ours]
            process = context.Process(target=serve, args=(theirs, others, self.runs), daemon=True)
            process.start()
            theirs.close()
            self.pool.append((process, ours))

    def close(self) -> None:
        for process, pipe in self.pool:
            pipe.close()  # a worker whose pipe is closed ends
            process.join(timeout=5)
            if process.is_alive():
                process.kill()
                process.join()
        self.pool = []

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def exchange(self, posts: Sequence[Post]) -> list[list[Reply | Failure]]:
        visits = [(post, site) for post in posts for site in post.sites]
        inboxes = {id(p): wire.pack_packet(p.inbox) for p in posts}

        def task(at: int) -> Task:
            post, site = visits[at]
            memory = self.memories(post.run).get(site.name, {})
            where = {"run": self.index(post.run), "site": site.name}
            return "visit", where, [inboxes[id(post)], wire.pack(memory)]

        def cost(at: int) -> float:
            post, site = visits[at]
            recipe = post.run.recipe
            n = len(site.train)
            return float(recipe.at(post.inbox.round).length(n) * recipe.batch(n))

        order = sorted(range(len(visits)), key=cost, reverse=True)
        answers: list[list[Reply | Failure]] = [[] for _ in posts]
        place = {id(p): i for i, p in enumerate(posts)}
        for (post, site), (head, packets) in zip(visits, self.spread(order, task), strict=True):
            if "error" in head:
                answers[place[id(post)]].append(Failure(site.name, head["error"]))
                continue
            reply = wire.unpack_packet(packets[0])
            assert isinstance(reply, Reply)
            self.kept.setdefault(id(post.run), {})[site.name] = wire.unpack(packets[1])
            answers[place[id(post)]].append(reply)
        return answers

    def score(self, questions: Sequence[Question]) -> list[dict[str, Scores]]:
        def task(at: int) -> Task:
            q = questions[at]
            where = {"run": self.index(q.run), "parts": q.parts}
            return "score", where, [wire.pack_packet(q.state)]

        found: list[dict[str, Scores]] = []
        for head, _ in self.spread(range(len(questions)), task):
            if "error" in head:
                raise FeddgError(f"evaluation failed: {head['error']}")
            found.append(head["scores"])
        return found

    def index(self, run: Run) -> int:
        return next(i for i, r in enumerate(self.runs) if r is run)

    def spread(
        self, order: Iterable[int], task: Callable[[int], Task]
    ) -> list[tuple[dict[str, Any], list[bytes]]]:
        """Hand out tasks in this order, each to the next idle worker; results by number."""
        todo = list(order)
        total = len(todo)
        todo.reverse()
        busy: dict[Connection, int] = {}
        done: dict[int, tuple[dict[str, Any], list[bytes]]] = {}
        idle = [pipe for _, pipe in self.pool]
        while len(done) < total:
            while idle and todo:
                at, pipe = todo.pop(), idle.pop()
                busy[pipe] = at
                send(pipe, *task(at))
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                try:
                    _, head, packets = receive(ready)
                except (EOFError, ConnectionError) as error:
                    raise SiteFailure(
                        "a worker process died (out of memory?); run the same command again to go"
                        " on, with --workers 1 if it happens again"
                    ) from error
                done[busy.pop(ready)] = head, packets
                idle.append(ready)
        return [done[i] for i in range(total)]


def send(pipe: Connection, what: str, head: dict[str, Any], packets: Sequence[bytes]) -> None:
    pipe.send((what, head, len(packets)))
    for packet in packets:
        pipe.send_bytes(packet)


def receive(pipe: Connection) -> Task:
    what, head, count = pipe.recv()
    return what, head, [pipe.recv_bytes() for _ in range(count)]


def serve(pipe: Connection, others: Sequence[Connection], runs: Sequence[Run]) -> None:
    """A worker's life: answer tasks until the pipe is closed.

    Copies of the other pipes came along with the fork; they are closed, or nobody would
    notice when the main process is gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's to handle
    for other in others:
        other.close()
    torch.set_num_threads(1)
    try:
        while True:
            what, head, packets = receive(pipe)
            send(pipe, "answer", *carried_out(what, head, packets, runs))
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
        [result] = InProcess().drive([visit])
        if isinstance(result, Exception):
            return {"error": explained(result)}, []
        reply, memory = result
        return {}, [wire.pack_packet(reply), wire.pack(memory)]
    except Exception as error:  # whatever it was, the main process is to know
        return {"error": explained(error)}, []
