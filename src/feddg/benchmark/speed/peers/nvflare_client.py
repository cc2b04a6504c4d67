"""A client of NVFlare's simulator: receives the model, trains, sends it back."""

# mypy: ignore-errors
# Runs elsewhere: what it imports is not installed here.

import json
import time
from pathlib import Path

import nvflare.client as flare
import torch
from shared_work import Net, Work, train

if __name__ == "__main__":
    torch.set_num_threads(1)
    flare.init()
    work, model = Work.read(), Net()
    name = flare.get_site_name()
    site, marks = work.sites()[int(name.rpartition("-")[2]) - 1], list[float]()
    while flare.is_running():
        received = flare.receive()
        if received is None:
            break
        marks.append(time.time())
        model.load_state_dict({k: torch.as_tensor(v) for k, v in received.params.items()})
        steps = train(model, site, work)
        told = {"NUM_STEPS_CURRENT_ROUND": steps}
        flare.send(flare.FLModel(params=model.state_dict(), meta=told))
    marks.append(time.time())
    (Path(work.out).parent / f"marks-{name}.json").write_text(json.dumps(marks), "utf-8")
