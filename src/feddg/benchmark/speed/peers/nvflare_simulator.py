"""NVFlare's simulator: the FedAvg recipe, a thread (and a process) for every client."""

# mypy: ignore-errors
# Runs elsewhere: what it imports is not installed here.

import json
import sys
import tempfile
from pathlib import Path

from nvflare.app_opt.pt.recipes.fedavg import FedAvgRecipe
from nvflare.recipe import SimEnv
from shared_work import Net, Work, differences

if __name__ == "__main__":
    work = Work.read()
    recipe = FedAvgRecipe(
        name="speed", model=Net(), min_clients=5, num_rounds=work.rounds,
        train_script=str(Path(__file__).parent / "nvflare_client.py"),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        environment = SimEnv(num_clients=5, workspace_root=folder)
        recipe.execute(environment)
    marks = [json.loads(p.read_text("utf-8")) for p in Path(work.out).parent.glob("marks-*.json")]
    if len(marks) != 5 or any(len(m) != work.rounds + 1 for m in marks):
        sys.exit(f"the clients took part in {[len(m) - 1 for m in marks]} rounds")
    begun = [min(times) for times in zip(*marks, strict=True)]  # of every round, at the quickest
    work.tell(differences(begun), begun[0])
