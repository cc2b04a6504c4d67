"""Apple's pfl: FederatedAveraging on its simulated backend, one process, torch's own threads.

Its data set knows no last partial batch to leave out: the sites have whole batches only.
"""

# mypy: ignore-errors
# Runs elsewhere: what it imports is not installed here.

import time
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from shared_work import Net, Work, differences
from torch import Tensor


class Judged(Net):
    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        self.train()
        return F.cross_entropy(self(x), y)

    def metrics(self, x: Tensor, y: Tensor) -> dict[str, Any]:
        return {"loss": Weighted(F.cross_entropy(self(x), y, reduction="sum").item(), len(y))}


class Timed(TrainingProcessCallback):
    def __init__(self) -> None:
        self.marks: list[float] = []

    def on_train_begin(self, *, model: Any) -> Any:
        self.marks.append(time.time())
        return Metrics()

    def after_central_iteration(
        self, aggregate_metrics: Any, model: Any, *, central_iteration: int
    ) -> tuple[bool, Any]:
        self.marks.append(time.time())
        return False, Metrics()


if __name__ == "__main__":
    work = Work.read()
    work.threaded()
    whole = [(x[: len(x) // work.batch * work.batch], y) for x, y in work.sites()]
    sites = [PyTorchTensorDataset((x, y[: len(x)])) for x, y in whole]
    data = FederatedDataset(lambda i: sites[i], get_user_sampler("minimize_reuse", range(5)))
    net = Judged()
    model = PyTorchModel(
        model=net,
        local_optimizer_create=partial(torch.optim.SGD, momentum=work.momentum),
        central_optimizer=torch.optim.SGD(net.parameters(), lr=1.0),
    )
    timed = Timed()
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=work.rounds, evaluation_frequency=work.rounds + 1,
            train_cohort_size=5, val_cohort_size=None,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        model,
        NNTrainHyperParams(
            local_num_epochs=work.epochs, local_learning_rate=work.lr, local_batch_size=work.batch
        ),
        NNEvalHyperParams(local_batch_size=None),
        callbacks=[timed],
    )  # fmt: skip
    work.tell(differences(timed.marks), timed.marks[0], threads=torch.get_num_threads())
