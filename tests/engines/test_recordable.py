"""A server's training steps, too, are made of what a CUDA graph can record (docs/adr/0004)."""

from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from feddg.catalogue import compose
from feddg.engines import stacked
from feddg.engines.programs import Eager
from feddg.local import TaskLoss
from feddg.methods.fedavg import FedAvg
from feddg.trees import part
from tests import toy

WAITS = {  # the host reads what the device has computed, or brings along a number of its own
    "_local_scalar_dense", "nonzero", "masked_select", "_unique2", "lift_fresh", "lift_fresh_copy",
}  # fmt: skip
PICKS = {"index", "index_put", "index_put_", "_index_put_impl_"}
SERVERS = [
    "copa-uda(threshold=0.4)", "copa-uda(threshold=0.4, branch='cofc-plain')",
    "kd3a(gate=(0.4, 0.6))", "kd3a(gate=(0.4, 0.6), mixup=False)", "shot(epochs=1)",
    "shot(epochs=1, beta=0.0)", "fada",
]  # fmt: skip


class Watch(TorchDispatchMode):
    """Notes what could not be recorded; a mask as an index is as bad as `nonzero`."""

    def __init__(self, found):
        super().__init__()
        self.found = found

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        masked = name in PICKS and any(i is not None and i.dtype == torch.bool for i in args[1])
        if name in WAITS or masked:
            self.found.add(name)
        return func(*args, **(kwargs or {}))


@pytest.fixture
def found(monkeypatch):
    seen: set[str] = set()

    class Watched(Eager):
        warm = False  # the first step is not recorded: in it constants are made

        def run(self, given):
            with Watch(seen if self.warm else set()):
                super().run(given)
            self.warm = True

    monkeypatch.setattr(stacked, "Eager", Watched)
    return seen


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("spec", SERVERS)
def test_steps_of_the_server_can_be_recorded(spec, together, found):
    engine = stacked.Stacked(stacking=together)
    recipe = toy.steps(toy.RECIPE, epochs=1)
    *_, done = toy.history(toy.run(compose(spec), 2, recipe=recipe), engine)
    assert "tuning_loss" in done.state.trace or spec.startswith("shot")
    assert not engine.slow
    assert not found


@part()
class Peeking(TaskLoss):
    """Leaves out a class by a mask."""

    def loss(self, fwd):
        return fwd.task.loss(fwd.logits[fwd.y > 0], fwd.y[fwd.y > 0])


class Impatient(FedAvg):
    def local_update(self, inbox, job, memory):
        return super().local_update(inbox, replace(job, parts=(Peeking(),)), memory)


def test_what_cannot_be_recorded_is_found(found):
    list(toy.history(toy.run(Impatient(), 1), stacked.Stacked(stacking=False)))
    assert "index" in found
