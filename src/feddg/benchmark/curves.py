"""How well every site's own model does on every domain, round by round (CSAC's Fig. 9).

No real federation can measure it: it takes every site's model to every other site's data. So it is
a diagnostic of simulations, asked for by name, and goes nowhere but into the record.
"""

from collections.abc import Sequence

from torch import nn

from feddg.data.domain import Examples
from feddg.engines.inprocess import InProcess
from feddg.engines.loop import Round, Run
from feddg.local import Evaluation

MERGED = "merged"  # beside the sites' names: the model that came of the round
Curves = dict[str, dict[str, float]]  # whose model -> domain -> the task's metric


def curves(engine: InProcess, done: Sequence[tuple[Run, Round]]) -> list[Curves]:
    """Of every run's round: the replies as they came, then what was merged of them."""
    asked = [
        (i, whose, domain, Evaluation(model, data, task.task, task.prepare))
        for i, (run, k) in enumerate(done)
        for task in (run.federation.collection,)
        for whose, model in local_models(run, k).items()
        for domain, data in everywhere(run).items()
    ]
    found: list[Curves] = [{} for _ in done]
    answers = engine.answer([question for *_, question in asked])
    for (i, whose, domain, question), scores in zip(asked, answers, strict=True):
        if isinstance(scores, Exception):
            raise scores
        found[i].setdefault(whose, {})[domain] = scores[question.task.metric]
    return found


def local_models(run: Run, k: Round) -> dict[str, nn.Module]:
    ours = {r.site: run.method.predictor(r, run.model) for r in k.replies}
    return {**ours, MERGED: run.method.predictor(k.state, run.model)}


def everywhere(run: Run) -> dict[str, Examples]:
    """A source by what it holds out, else by what it trains on; others by all they judge."""
    fed = run.federation
    found = {s.name: s.train if s.val is None else s.val for s in fed.sites}
    judged = {k.partition("/")[2]: v for k, v in run.judged.items() if not k.startswith("val/")}
    return {**found, **judged}
