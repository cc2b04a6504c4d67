"""Flower's simulation: ServerApp and ClientApp on Ray actors of one core each."""

# mypy: ignore-errors
# Runs elsewhere: what it imports is not installed here.

import os
import time
from typing import Any

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from shared_work import Net, Work, differences, held, train

MARKS: list[float] = []


client = ClientApp()
server = ServerApp()


@client.train()
def fit(message: Message, context: Context) -> Message:
    torch.set_num_threads(1)
    work, model = Work.read(), Net()
    site = held()[int(context.node_config["partition-id"])]
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    train(model, site, work)
    content = {
        "arrays": ArrayRecord(model.state_dict()),
        "metrics": MetricRecord({"num-examples": len(site[1])}),
    }
    return Message(content=RecordDict(content), reply_to=message)


class Timed(FedAvg):
    def configure_train(self, *args: Any, **options: Any) -> Any:
        MARKS.append(time.time())
        return super().configure_train(*args, **options)


@server.main()
def main(grid: Grid, context: Context) -> None:
    work = Work.read()
    strategy = Timed(fraction_train=1.0, fraction_evaluate=0.0, min_available_nodes=5)
    strategy.start(
        grid=grid, initial_arrays=ArrayRecord(Net().state_dict()), num_rounds=work.rounds
    )
    MARKS.append(time.time())


if __name__ == "__main__":
    resources = {"num_cpus": 1, "num_gpus": 0.0}
    run_simulation(server, client, 5, backend_config={"client_resources": resources})
    found = differences(MARKS)
    Work.read().tell(found, MARKS[0], processes=os.cpu_count())
