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
FEW = 4  # steps that are not worth a recording


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
class Recorded(Eager):
    """A CUDA graph of the step, with memory of its own that it reads from and writes to.

    It is made when the program has carried out `FEW` steps as they are, in however many visits:
    a server that trains for a step or two, or in another stack every round, need not wait for it.
    The data are read where they lie (`shared`), all else is copied in. It belongs to the stream
    on which it was recorded.
    """

    shared: Sequence[Tensor] = ()  # tensors of `fixed` that outlive it and are not copied
    ran: int = 0
    graph: Any = None
    own: list[list[Tensor]] = field(default_factory=list)  # state, given, fixed
    spec: Any = None

    def begin(self, state: Tree, fixed: Tree) -> None:
        if self.graph is None:
            super().begin(state, fixed)
            return
        mine, _, still = self.own
        torch._foreach_copy_(mine, pytree.tree_leaves(state))
        for ours, theirs in zip(still, pytree.tree_leaves(fixed), strict=True):
            if ours is not theirs:
                ours.copy_(theirs)

    def run(self, given: Tree) -> None:
        if self.graph is None and self.ran < FEW:
            self.ran += 1
            super().run(given)
            return
        if self.graph is None:
            self.graph = self.recorded(given)
            self.at = self.fixed = None
        torch._foreach_copy_(self.own[1], pytree.tree_leaves(given))
        self.graph.replay()

    def state(self) -> Tree:
        if self.graph is None:
            return super().state()
        return pytree.tree_unflatten([x.clone() for x in self.own[0]], self.spec)

    def recorded(self, given: Tree) -> Any:
        kept = {id(t) for t in self.shared}

        def own(x: Tensor) -> Tensor:
            return x if id(x) in kept else x.clone(memory_format=torch.contiguous_format)

        mine = [pytree.tree_map(own, tree) for tree in (self.at, given, self.fixed)]
        self.own, self.spec = list(map(pytree.tree_leaves, mine)), pytree.tree_structure(mine[0])
        return self.captured(mine)

    def captured(self, mine: Sequence[Tree]) -> Any:
        self.step(*mine)  # once in this memory, of which a kernel's choice may depend
        torch.cuda.current_stream().synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(
            graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"
        ):
            torch._foreach_copy_(self.own[0], pytree.tree_leaves(self.step(*mine)))
        return graph
