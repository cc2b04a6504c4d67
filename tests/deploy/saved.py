"""What the tests of deployment share: a toy run, its last state, and its folder."""

from functools import cache
from pathlib import Path
from typing import Any

import torch

from feddg.deploy import Architecture, save_model
from feddg.engines.loop import Run
from feddg.local import outputs
from feddg.methods.fedavg import FedAvg
from feddg.packets import State
from tests import toy

PLAIN = FedAvg()
NET = Architecture("tests.toy:Net", {"norm": True})


@cache
def trained(method: Any = PLAIN) -> tuple[Run, State]:
    run = toy.run(method, 1)
    return run, list(toy.history(run))[-1].state


def save(folder: Path, method: Any = PLAIN, **options) -> tuple[Run, State]:
    run, state = trained(method)
    save_model(folder, run, state, **{"architecture": NET} | options)
    return run, state


def output(run: Run, state: State) -> torch.Tensor:
    """Of the run's own predictor, on the held-out domain."""
    predictor = run.method.predictor(state, run.model)
    collection = run.federation.collection
    return outputs(predictor, collection["night"].examples.x, collection.prepare)
