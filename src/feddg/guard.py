"""What is checked on every reply before it may touch the model."""

from dataclasses import dataclass

import torch

from feddg.packets import Inbox, Reply
from feddg.wire import flatten


@dataclass(frozen=True)
class Guard:
    """Sender, names, shapes, dtype, finiteness, size of the update, and undeclared notes.

    `largest` bounds ||reply - sent|| as a multiple of 1 + ||sent||, of the parameters and of the
    buffers: far beyond honest training, so that only a broken or hostile reply meets it.
    """

    largest: float = 1e4

    def fault(
        self, reply: Reply, inbox: Inbox, layout_notes: frozenset[str], asked: str
    ) -> str | None:
        """What is wrong with the reply of the site that was `asked`, in words, or None."""
        mine, sent = reply.model, inbox.model
        if reply.site != asked:
            return f"it speaks for another site, {reply.site!r}"
        if mine.layout != sent.layout:
            return "its model has other names or shapes than the one that was sent"
        if mine.vector.dtype != sent.vector.dtype or mine.vector.shape != sent.vector.shape:
            return f"its weights are {mine.vector.dtype} {tuple(mine.vector.shape)}"
        if not torch.isfinite(mine.vector).all():
            return "its weights are not finite (NaN or infinity)"
        for what, after, before in (
            ("update", mine.parameters, sent.parameters),
            ("change of the buffers", mine.buffers, sent.buffers),
        ):
            moved = torch.linalg.vector_norm(after - before)
            if not moved <= self.largest * (1 + torch.linalg.vector_norm(before)):
                return f"its {what} is too large (norm {moved:.3g})"
        if not (reply.weight > 0 and reply.weight < float("inf")):
            return f"its weight is {reply.weight}"
        if reply.steps < 1:
            return f"it made {reply.steps} steps"
        extra = set(reply.notes) - layout_notes
        if extra:
            return f"it sent the undeclared note {min(extra)!r}"
        for name, value in flatten(reply.notes).items():
            if value.is_floating_point() and not torch.isfinite(value).all():
                return f"its note {name!r} is not finite"
        return None
