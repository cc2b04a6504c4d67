"""The loop that one writes without a library: a module per site, the mean of the state dicts."""

# mypy: ignore-errors
# Runs elsewhere: what it imports is not installed here.

import copy
import sys
import time

import torch
from shared_work import Net, Work, train

if __name__ == "__main__":
    work = Work.read()
    work.threaded()
    sites, model = work.sites(), Net()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()  # two loops side by side begin together
    began, took = time.time(), []
    for _ in range(work.rounds):
        t = time.perf_counter()
        replies = []
        for site in sites:
            local = copy.deepcopy(model)
            train(local, site, work)
            replies.append(local.state_dict())
        model.load_state_dict({k: torch.stack([r[k] for r in replies]).mean(0) for k in replies[0]})
        took.append(time.perf_counter() - t)
    work.tell(took, began, threads=torch.get_num_threads())
