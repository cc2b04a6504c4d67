"""One training step as a program of fixed shapes; on a GPU it is recorded once and replayed.

A step is step(state, given, fixed) -> state, of trees of tensors:
state   theta, buffers, the optimiser's state, the sum of the reported losses
given   of this step alone: the rows of its batch, its draws, its rate
fixed   of the whole visit: the parts of the method and all the data
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

Tree = Any
Step = Callable[[Tree, Tree, Tree], Tree]
WARM = 2  # runs before recording, in which libraries choose their kernels


class Program(Protocol):
    def begin(self, state: Tree, fixed: Tree) -> None: ...
    def run(self, given: Tree) -> None: ...
    def state(self) -> Tree: ...


@dataclass(eq=False)
class Eager:
    """Every step by itself."""

    step: Step
    at: Tree = None
    fixed: Tree = None

    def begin(self, state: Tree, fixed: Tree) -> None:
        self.at, self.fixed = state, fixed

    def run(self, given: Tree) -> None:
        self.at = self.step(self.at, given, self.fixed)

    def state(self) -> Tree:
        return self.at


@dataclass(eq=False)
class Recorded:
    """A CUDA graph of the step, with memory of its own that it reads from and writes to.

    The data are read where they lie (`shared`), all else is copied in. It belongs to the stream
    on which it was recorded.
    """

    step: Step
    shared: Sequence[Tensor]  # tensors of `fixed` that outlive the program and are not copied
    graph: Any = None
    at: list[Tensor] = field(default_factory=list)
    fixed: list[Tensor] = field(default_factory=list)
    given: list[Tensor] = field(default_factory=list)
    spec: Any = None
    waiting: tuple[Tree, Tree] | None = None

    def begin(self, state: Tree, fixed: Tree) -> None:
        if self.graph is None:
            self.waiting = state, fixed
            return
        torch._foreach_copy_(self.at, pytree.tree_leaves(state))
        own = [(a, b) for a, b in zip(self.fixed, pytree.tree_leaves(fixed), strict=True)]
        for ours, theirs in own:
            if ours is not theirs:
                ours.copy_(theirs)

    def run(self, given: Tree) -> None:
        if self.graph is None:
            self.record(given)
        torch._foreach_copy_(self.given, pytree.tree_leaves(given))
        self.graph.replay()

    def state(self) -> Tree:
        return pytree.tree_unflatten([x.clone() for x in self.at], self.spec)

    def record(self, given: Tree) -> None:
        assert self.waiting is not None
        state, fixed = self.waiting
        self.waiting = None
        kept = {id(t) for t in self.shared}

        def own(x: Tensor) -> Tensor:
            return x if id(x) in kept else x.clone(memory_format=torch.contiguous_format)

        mine = [pytree.tree_map(own, tree) for tree in (state, given, fixed)]
        for _ in range(WARM):
            self.step(*mine)
        torch.cuda.current_stream().synchronize()
        graph = torch.cuda.CUDAGraph()
        self.at, self.spec = pytree.tree_flatten(mine[0])
        self.given, self.fixed = (pytree.tree_leaves(tree) for tree in mine[1:])
        with torch.cuda.graph(
            graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"
        ):
            after = pytree.tree_leaves(self.step(*mine))
            torch._foreach_copy_(self.at, after)
        self.graph = graph
