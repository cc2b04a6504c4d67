"""Our optimisers, which are pure functions, beside torch's."""

from typing import Any

import pytest
import torch

from feddg.optim import SGD, Adam

CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    (SGD(), torch.optim.SGD, {}),
    (SGD(weight_decay=0.1), torch.optim.SGD, {"weight_decay": 0.1}),
    (SGD(0.9), torch.optim.SGD, {"momentum": 0.9}),
    (SGD(0.9, 0.1), torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
    (SGD(0.9, 0, True), torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    (Adam(), torch.optim.Adam, {}),
    (Adam(weight_decay=0.1), torch.optim.Adam, {"weight_decay": 0.1}),
    (Adam(beta1=0.5, beta2=0.9, eps=1e-3), torch.optim.Adam, {"betas": (0.5, 0.9), "eps": 1e-3}),
    (Adam(decoupled=True), torch.optim.AdamW, {"weight_decay": 0.0}),
    (Adam(weight_decay=0.1, decoupled=True), torch.optim.AdamW, {"weight_decay": 0.1}),
]  # fmt: skip
names = [f"{type(a).__name__}-{'-'.join(o)}" for a, _, o in CASES]


@pytest.mark.parametrize(("ours", "theirs", "options"), CASES, ids=names)
def test_equals_torch_over_several_steps(ours, theirs, options):
    """The rate changes on the way; two parts, as where a term trains parameters of its own."""
    torch.manual_seed(0)
    theta: dict[str, Any] = {"model": torch.randn(5), "head": {"w": torch.randn(2, 3)}}
    twins = [theta["model"].clone(), theta["head"]["w"].clone()]
    optimizer = theirs([t.requires_grad_() for t in twins], lr=1.0, **options)
    state = ours.init(theta)
    for k in range(6):
        rate = 0.05 / (k + 1)
        g: dict[str, Any] = {"model": torch.randn(5), "head": {"w": torch.randn(2, 3)}}
        twins[0].grad, twins[1].grad = g["model"].clone(), g["head"]["w"].clone()
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        theta, state = ours.step(theta, g, state, torch.tensor(rate))
        torch.testing.assert_close(theta["model"], twins[0].detach(), atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(theta["head"]["w"], twins[1].detach(), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(("ours", "theirs", "options"), CASES, ids=names)
def test_nothing_is_changed_in_place(ours, theirs, options):
    theta, g = {"model": torch.ones(3)}, {"model": torch.ones(3)}
    state = ours.init(theta)
    after, kept = ours.step(theta, g, state, torch.tensor(0.1))
    assert torch.equal(theta["model"], torch.ones(3))
    assert torch.equal(g["model"], torch.ones(3))
    assert not torch.equal(after["model"], theta["model"])
    assert all(
        not v["model"].any() for k, v in state.items() if k in ("velocity", "mean", "square")
    )
    assert kept.keys() == state.keys()


def test_plain_sgd_keeps_nothing():
    assert SGD().init({"model": torch.ones(1)}) == {}
