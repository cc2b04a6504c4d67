"""One site's training as a pure function of tensors.

`updater` makes `update(theta, buffers, optimizer, parts, batch, draws, rate)`: no module is
changed and no seed is drawn, so it runs alone (`engines.alone`) or under vmap over many sites.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call
from torch.func import grad as traced
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils import _pytree as pytree

from feddg import stages
from feddg.errors import ConfigError
from feddg.local import Change, Forward, Grad, Outcome, Slope, Trained, Training
from feddg.optim import Theta
from feddg.seeds import seed_for
from feddg.trees import Tensors, part
from feddg.weights import Layout, Weights

Draws = dict[int, Tensors]  # by the number of the part; the step's own under STEP
STEP = -1


@part("x", "y", "columns")
class Batch:
    x: Tensor
    y: Tensor
    columns: dict[int, Tensors]  # by the number of the part


def func_grad(loss: Any) -> Slope:
    """Works under vmap, and within another gradient."""

    def tensors(theta: Theta) -> tuple[Tensor, tuple[Tensor, ...]]:
        value, outcome = loss(theta)
        return value, (outcome.buffers, outcome.logits, outcome.losses)

    def slope(theta: Theta) -> tuple[Theta, Outcome]:
        g, kept = traced(tensors, has_aux=True)(theta)
        return g, Outcome(*kept)

    return slope


def tape_grad(loss: Any) -> Slope:
    """For one site alone: the same numbers, without the cost of tracing."""

    def slope(theta: Theta) -> tuple[Theta, Outcome]:
        leaves, spec = pytree.tree_flatten(theta)
        leaves = [x.detach().requires_grad_() for x in leaves]
        value, outcome = loss(pytree.tree_unflatten(leaves, spec))
        slopes = torch.autograd.grad(value, leaves, materialize_grads=True)
        return pytree.tree_unflatten(slopes, spec), outcome

    return slope


def forward(
    module: nn.Module,
    values: Tensors,
    x: Tensor,
    taps: Sequence[str] = (),
    change: Change | None = None,
    training: bool = False,
) -> tuple[Tensor, Tensors]:
    """A pure forward pass that also returns (and may change) inputs and outputs of submodules."""
    seen: Tensors = {}

    def keep(name: str, value: Tensor) -> Tensor:
        seen[name] = change(name, value) if change else value
        return seen[name]

    with ExitStack() as hooks:
        for tap in taps:
            name, _, side = tap.partition(":")
            inner = module.get_submodule(name)
            if side == "in":
                handle = inner.register_forward_pre_hook(
                    lambda _, args, tap=tap: (keep(tap, args[0]), *args[1:])
                )
            else:
                handle = inner.register_forward_hook(lambda _, __, out, tap=tap: keep(tap, out))
            hooks.callback(handle.remove)
        if module.training != training:
            hooks.callback(module.train, module.training)
            module.train(training)
        output: Tensor = functional_call(module, values, (x,), tie_weights=tied(module))
    return output, seen


TIED: "WeakKeyDictionary[nn.Module, bool]" = WeakKeyDictionary()


def tied(module: nn.Module) -> bool:
    """Whether two names stand for one weight, which torch finds out anew in every call."""
    found = TIED.get(module)
    if found is None:
        named = module.named_parameters(remove_duplicate=False)
        others = module.named_buffers(remove_duplicate=False)
        both = [id(v) for _, v in named] + [id(v) for _, v in others]
        TIED[module] = found = len(set(both)) < len(both)
    return found


def updater(
    request: Training,
    grad: Grad = func_grad,
    laid_out: Callable[[Layout, Tensor], Tensors] = Layout.views,
) -> Callable[..., Any]:
    """One training step as a pure function; requests of the same structure share it.

    `laid_out` makes the trained weights by name of their vector, in the form the device likes.
    """
    job, layout = request.job, request.start.layout
    learned, kept = layout.parameters(), layout.buffers()
    # Masks and indices do not travel: they are the architecture's own.
    whole = {k: v for k, v in job.model.named_buffers() if not v.is_floating_point()}
    idle: dict[str, Any] = dict.fromkeys(counters(job.model))  # None: batch norm does not count
    still = {k: v for k, v in whole.items() if k not in idle}
    descend, smoothing = job.recipe.make_optimizer().step, job.local.label_smoothing

    def update(
        theta: Theta, buffers: Tensor, opt: Theta, parts: Sequence[Any], batch: Batch,
        draws: Draws, rate: Tensor,
    ) -> tuple[Theta, Tensor, Theta, Tensor]:  # fmt: skip
        transforms = [(i, p) for i, p in enumerate(parts) if hasattr(p, "apply")]
        terms = [(i, p) for i, p in enumerate(parts) if hasattr(p, "loss")]
        names = {n for _, t in terms for n in t.taps} | {p.at for _, p in transforms if p.at}
        unaltered = all(p.at or i in fixed(request) for i, p in transforms)

        def loss(
            theta: Theta,
            /,
            *,
            batch: tuple[Tensor, Tensor] | None = None,
            change: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
        ) -> tuple[Tensor, Outcome]:
            x, y = batch or (first.x, first.y)
            also = change or {}
            plain = unaltered and batch is None and "" not in also

            def changed(at: str, value: Tensor) -> Tensor:
                for i, p in transforms:
                    value = p.apply(value, draws.get(i, {})) if p.at == at else value
                return also[at](value) if at in also else value

            own = kept.views(buffers.clone())  # batch norm writes here
            if grad is not tape_grad:  # under functorch a write into a view is lost
                own = {k: v.clone() for k, v in own.items()}
            fixed_values = {k: v.clone() for k, v in still.items()}
            values = {**idle, **laid_out(learned, theta["model"]), **own, **fixed_values}
            if clock := stages.active:
                clock.enter("data")
            x, taps = changed("", x), sorted(names | (set(also) - {""}))
            if clock:
                clock.leave()
            logits, seen = forward(job.model, values, x, taps, changed, training=True)
            losses = []
            for i, term in terms:
                fwd = Forward(
                    job.model, job.task, learned, theta, values, x, y, logits, seen, smoothing,
                    draws.get(i, {}), first.columns.get(i, {}), plain,
                )  # fmt: skip
                losses.append(term.loss(fwd))
            total = losses[0] if len(losses) == 1 else torch.stack(losses).sum()
            report = torch.stack([*(v.detach() for v in losses), total.detach()])
            after = [own[k].detach().reshape(-1) for k in kept.names]
            return total, Outcome(torch.cat(after) if after else buffers, logits.detach(), report)

        first = batch
        g, outcome = job.step(loss, theta, grad, draws.get(STEP, {}))
        theta, opt = descend(theta, g, opt, rate)
        return theta, outcome.buffers, opt, outcome.losses

    return update


def counters(model: nn.Module) -> list[str]:
    """Batch norm's counts of batches, which nobody reads: momentum=None is refused."""
    norms = ((k, m) for k, m in model.named_modules() if isinstance(m, _BatchNorm))
    return [f"{k}.num_batches_tracked".lstrip(".") for k, m in norms if m.track_running_stats]


def all_parts(request: Training) -> tuple[Any, ...]:
    """The data's transforms first, then the method's parts."""
    return (*request.job.augment, *request.job.prepare, *request.job.parts)


Begun = tuple[Theta, Tensor, Theta, tuple[Any, ...]]  # theta, buffers, optimiser, parts


def begin(request: Training) -> Begun:
    theta = request.theta
    opt = resumed(request.job.recipe.make_optimizer().init(theta), request.optimizer or {})
    return theta, request.start.buffers, opt, all_parts(request)


def resumed(fresh: Theta, kept: Theta) -> Theta:
    """A kept optimiser's state; a part that was not there when it was kept starts afresh."""

    def taken(now: Any, before: Any) -> Any:
        return {k: before.get(k, v) for k, v in now.items()} if isinstance(now, dict) else before

    return {name: taken(now, kept.get(name, now)) for name, now in fresh.items()}


def order(request: Training) -> list[Tensor]:
    """The rows of every step's batch: passes over the data, each in a fresh order."""
    recipe, n = request.job.local, len(request.data)
    rng, size = request.job.rng("order"), recipe.batch(n)
    each_epoch, todo = recipe.per_epoch(n), recipe.length(n)
    batches: list[Tensor] = []
    while len(batches) < todo:
        batches += torch.randperm(n, generator=rng).split(size)[:each_epoch]
    return batches[:todo]


def chancy(request: Training) -> dict[int, Any]:
    """The parts that draw, by their numbers; the step under STEP."""
    parts = dict(enumerate(all_parts(request)))
    parts[STEP] = request.job.step
    return {i: p for i, p in parts.items() if hasattr(p, "draw") and i not in fixed(request)}


def streams(request: Training) -> dict[int, Generator]:
    """One of its own for every part: a method's draws leave those of the data's augmentation be."""
    return {i: request.job.rng(f"draws/{i}") for i in chancy(request)}


def draws(
    request: Training, batches: Sequence[Tensor], rngs: Mapping[int, Generator] | None = None
) -> Iterator[Draws]:
    """All chance of the steps, in their order, from the streams as they are."""
    chance, from_ = chancy(request), streams(request) if rngs is None else rngs
    for rows in batches:
        yield {i: p.draw(from_[i], len(rows)) for i, p in chance.items()}


def fixed(request: Training) -> range:
    """The numbers of the parts that prepare the data: they draw nothing."""
    job = request.job
    return range(len(job.augment), len(job.augment) + len(job.prepare))


def columns(parts: Sequence[Any]) -> dict[int, Tensors]:
    return {i: p.columns for i, p in enumerate(parts) if getattr(p, "columns", None)}


def term_names(parts: Sequence[Any]) -> list[str]:
    return [getattr(p, "name", type(p).__name__) for p in parts if hasattr(p, "loss")]


def refuse(request: Training) -> None:
    """What batch norm cannot do, in words instead of wrong statistics or a traceback."""
    recipe, n = request.job.local, len(request.data)
    norms = [m for m in request.job.model.modules() if isinstance(m, _BatchNorm)]
    if any(m.momentum is None and m.track_running_stats for m in norms):
        raise ConfigError(
            "batch norm with momentum=None counts its batches, and the count does not travel; give"
            " it a momentum"
        )
    if norms and not recipe.drop_last and n % recipe.batch(n) == 1 < recipe.batch(n):
        raise ConfigError(
            f"the last of its batches has one example, which batch norm cannot take (n = {n},"
            f" batch_size = {recipe.batch_size}); set drop_last or another batch_size"
        )


def tail_from(request: Training, steps: int) -> int:
    """The first step of the last epoch, over which the reported losses are averaged."""
    return max(steps - request.job.local.per_epoch(len(request.data)), 0)


def module_seed(request: Training) -> int:
    """Of the chance that a module takes from the global stream."""
    job = request.job
    return seed_for(job.seed, job.name, job.round, "module")


def finished(
    request: Training,
    theta: Theta,
    buffers: Tensor,
    opt: Theta,
    steps: int,
    means: Tensor | None,
) -> Trained:
    """`means`: of every term's loss over the last epoch; None where there was no step."""
    model = Weights(torch.cat([theta["model"], buffers]), request.start.layout)
    learned = {k: v for k, v in theta.items() if k != "model"}
    names = [*term_names(request.job.parts), "total"]
    found = [] if means is None else means.tolist()
    return Trained(model, steps, dict(zip(names, found, strict=False)), learned, opt)
