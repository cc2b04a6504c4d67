"""A dry start: what a method cannot do with a model, data and recipe shows before anything else."""

from dataclasses import replace
from typing import Any

import torch

from feddg.catalogue import spelled
from feddg.data.domain import Site
from feddg.engines.inprocess import perform, visit
from feddg.engines.loop import Post, Run, described, first_state, posted
from feddg.errors import ConfigError, explained
from feddg.local import Request, Training
from feddg.method import every, shared_out

ROWS = 32  # of an evaluation


def rehearse(run: Run) -> None:
    """One step at one site, of which nothing is kept.

    Where one of the sites can begin, the others' trouble is their own: the rounds will tell. Where
    none can, the first one's reason stands for all, for they may differ in the site's name alone.
    """
    try:
        post = posted(run, 0, first_state(run))
    except Exception as error:
        raise described(run, 0, error) from error
    reasons = []
    for site in post.sites:
        try:
            begin(post, site)
        except Exception as error:
            reasons.append(f"{site.name}: {explained(error)}")
        else:
            return
    raise ConfigError(
        f"{spelled(run.method)} cannot train this model on these data by this recipe at any site;"
        f" {reasons[0]}"
    )


def begin(post: Post, site: Site) -> None:
    """Up to and including the first step of the first training."""
    work = visit(post, site, {})
    answer: Any = None
    with torch.random.fork_rng(devices=[]):
        try:
            while True:
                asked = {0: work.send(answer)}
                requests = every(asked)
                answer = shared_out(asked, [perform(shortened(r)) for r in requests])[0]
                if any(isinstance(r, Training) for r in requests):
                    return
        except StopIteration:  # a method that trains nothing here
            return
        finally:
            work.close()


def shortened(request: Request) -> Request:
    if not isinstance(request, Training):
        n = len(request.data)
        rows = torch.arange(0, n, max(1, n // ROWS))  # from all over: data may be sorted by class
        return replace(request, data=request.data.take(rows))
    recipe = replace(request.job.recipe, steps=1, first_steps=1)
    return replace(request, job=replace(request.job, recipe=recipe))
