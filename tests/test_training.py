"""One site's training beside the loop that anybody would write in PyTorch."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from feddg.data.domain import Examples, Site
from feddg.data.transforms import Scale
from feddg.engines.alone import train
from feddg.engines.loop import Run
from feddg.errors import FeddgError
from feddg.local import Job
from feddg.methods.fedavg import FedAvg
from feddg.models import build
from feddg.recipe import Recipe
from feddg.tasks import Classification
from feddg.training import order, tied
from feddg.weights import Weights, load
from tests import toy

DATA = toy.images(0, 50)
RECIPE = Recipe(lr=0.05, momentum=0.9, weight_decay=0.01, batch_size=16, epochs=2)


def job(recipe=RECIPE, data=DATA, model=None, **options):
    model = build("tests.toy:Net") if model is None else model
    site = Site("a", data)
    task = Classification(("row", "column", "diagonal"))
    return Job(site, model, task, recipe, 0, name="a", **{"rounds": 4, **options})


def ours(the_job, optimizer=None):
    return train(the_job.training(Weights.of(the_job.model), optimizer))


def plain(the_job, make, rates=None):
    """A module, torch's optimiser, the same batches."""
    request = the_job.training(Weights.of(the_job.model))
    model = load(the_job.model, request.start).train()
    optimizer = make([p for p in model.parameters() if p.requires_grad])
    smoothing = the_job.local.label_smoothing
    for t, at in enumerate(order(request)):
        if rates:
            optimizer.param_groups[0]["lr"] = rates[t]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(DATA.x[at]), DATA.y[at], label_smoothing=smoothing)
        loss.backward()
        optimizer.step()
    return model


def close(trained, model):
    torch.testing.assert_close(trained.model.vector, Weights.of(model).vector, atol=2e-5, rtol=1e-4)


def sgd(**options):
    return lambda p: torch.optim.SGD(
        p, lr=0.05, **{"momentum": 0.9, "weight_decay": 0.01} | options
    )


def test_equals_a_plain_loop_with_momentum_decay_and_batch_norm():
    """Weights and batch norm's running buffers, after two epochs of three batches."""
    done = ours(job())
    assert done.steps == 6
    close(done, plain(job(), sgd()))


@pytest.mark.parametrize(
    ("changes", "make"),
    [
        ({"nesterov": True}, sgd(nesterov=True)),
        ({"optimizer": "adam", "lr": 0.01}, lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.01)),
        ({"label_smoothing": 0.2}, sgd()),
        ({"drop_last": False}, sgd()),
        ({"steps": 5}, sgd()),
    ],
    ids=lambda v: str(v) if isinstance(v, dict) else "",
)  # fmt: skip
def test_equals_a_plain_loop_in_other_ways(changes, make):
    the_job = job(replace(RECIPE, **changes))
    close(ours(the_job), plain(the_job, make))


def test_equals_a_plain_loop_with_adamw():
    """Without batch norm, which leaves rounding errors for the slope of a bias before it.

    Adam makes these as large as any other slope.
    """
    recipe = replace(RECIPE, optimizer="adamw", lr=0.01)
    the_job = job(recipe, model=build("tests.toy:Net", norm=False))
    close(ours(the_job), plain(the_job, lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.01)))


def test_the_schedule_is_followed_step_by_step():
    recipe = replace(RECIPE, schedule="cosine", per="step")
    the_job = job(recipe, round=1)
    close(ours(the_job), plain(the_job, sgd(), recipe.rates(1, 4, 50)))


def test_the_first_round_differs():
    recipe = replace(RECIPE, first_epochs=4, first_label_smoothing=0.2)
    assert (ours(job(recipe)).steps, ours(job(recipe, round=1)).steps) == (12, 6)
    close(ours(job(recipe)), plain(job(recipe), sgd()))


def test_drop_last_and_a_site_smaller_than_a_batch():
    """50 examples by 16: three batches and a rest of two. Ten examples are one batch of ten."""
    sizes = [len(b) for b in order(job(replace(RECIPE, epochs=1)).training(Weights.of(toy.Net())))]
    assert sizes == [16, 16, 16]
    whole = replace(RECIPE, epochs=1, drop_last=False)
    sizes = [len(b) for b in order(job(whole).training(Weights.of(toy.Net())))]
    assert sizes == [16, 16, 16, 2]
    few = DATA.take(torch.arange(10))
    assert ours(job(data=few)).steps == 2


def test_every_epoch_is_a_fresh_order_of_all_examples():
    recipe = replace(RECIPE, drop_last=False)
    batches = order(job(recipe).training(Weights.of(toy.Net())))
    first, second = torch.cat(batches[:4]), torch.cat(batches[4:])
    assert first.sort()[0].tolist() == second.sort()[0].tolist() == list(range(50))
    assert not torch.equal(first, second)


def test_steps_go_on_from_epoch_to_epoch():
    recipe = replace(RECIPE, steps=5, drop_last=False)
    batches = order(job(recipe).training(Weights.of(toy.Net())))
    assert [len(b) for b in batches] == [16, 16, 16, 2, 16]


def test_order_depends_on_seed_site_and_round_alone():
    def batches(**changes):
        return torch.cat(order(replace(job(), **changes).training(Weights.of(toy.Net()))))

    assert torch.equal(batches(), batches())
    for changes in ({"seed": 1}, {"name": "b"}, {"round": 1}):
        assert not torch.equal(batches(), batches(**changes))


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(144, 3)

    def forward(self, x):
        return self.head(self.drop(x.flatten(1)))


def test_dropout_is_seeded_and_leaves_the_global_stream():
    model = Dropping()
    torch.manual_seed(5)
    first, before = ours(job(model=model)), torch.rand(1)
    torch.rand(17)
    second = ours(job(model=model))
    assert torch.equal(first.model.vector, second.model.vector)
    torch.manual_seed(5)
    assert torch.equal(before, torch.rand(1))
    other = ours(job(model=model, round=1))
    assert not torch.equal(first.model.vector, other.model.vector)


def test_frozen_parameters_stay_and_are_no_step_of_the_optimiser():
    model = build("tests.toy:Net")
    model.early.requires_grad_(False)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    done = ours(job(model=model))
    after = done.model.views()
    for name in ("early.0.weight", "early.0.bias", "early.1.weight"):
        assert torch.equal(after[name], before[name])
    assert not torch.equal(after["head.weight"], before["head.weight"])
    close(done, plain(job(model=model), sgd()))


def test_the_module_itself_is_not_trained():
    model = build("tests.toy:Net")
    before = {k: v.clone() for k, v in model.state_dict().items()}
    ours(job(model=model))
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert model.training


def test_momentum_can_be_carried_over():
    """Two rounds of one epoch with the velocity kept differ from two with it reset."""
    first = ours(job())
    kept = ours(replace(job(), round=1), first.optimizer)
    reset = ours(replace(job(), round=1))
    assert first.optimizer.keys() == {"velocity"}
    assert not torch.equal(kept.model.vector, reset.model.vector)


def test_preparation_is_part_of_every_batch():
    """uint8 images, scaled by `prepare`, are as images scaled before."""
    bytes_ = (DATA.x.clamp(0, 1) * 255).to(torch.uint8)
    scaled = ours(job(data=Examples(bytes_, DATA.y), prepare=(Scale(),)))
    before = ours(job(data=Examples(bytes_ / 255, DATA.y)))
    torch.testing.assert_close(scaled.model.vector, before.model.vector, atol=1e-6, rtol=1e-5)


def test_losses_are_means_of_the_last_epoch():
    done = ours(
        job(
            replace(
                RECIPE, lr=1e-12, momentum=0.0, weight_decay=0.0, drop_last=False, batch_size=50
            )
        )
    )
    model = build("tests.toy:Net").train()
    loss = F.cross_entropy(model(DATA.x), DATA.y).item()
    assert done.losses["total"] == pytest.approx(loss, rel=1e-4)
    assert done.losses["TaskLoss"] == done.losses["total"]


class Masked(nn.Module):
    """A network with a mask and an index among its buffers."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(144, 3)
        self.register_buffer("on", torch.ones(144, dtype=torch.bool))
        self.register_buffer("order", torch.arange(143, -1, -1))

    def forward(self, x):
        return self.head((x.flatten(1) * self.on)[:, self.order])


def test_masks_and_indices_are_as_the_network_has_them():
    """They do not travel and are not trained; as zeros they would silence the network."""
    run = Run(FedAvg(), Masked(), toy.federation(), toy.RECIPE, 1)
    *_, done = toy.history(run)
    moved = done.state.model.vector - Weights.of(run.model).vector
    assert moved.abs().max() > 1e-3


@pytest.mark.parametrize(
    ("norm", "recipe", "sentence"),
    [
        (nn.BatchNorm2d(6, momentum=None), {}, "momentum=None"),
        (nn.BatchNorm2d(6), {"drop_last": False, "batch_size": 5}, "one example"),
    ],
)
def test_what_batch_norm_cannot_do_is_said(norm, recipe, sentence):
    run = toy.run(FedAvg(), recipe=toy.steps(toy.RECIPE, **recipe))
    run.model.early[1] = norm  # type: ignore[operator]
    with pytest.raises(FeddgError, match=sentence):
        list(toy.history(run))


class Shared(nn.Module):
    """One weight under two names."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Flatten(), nn.Linear(144, 12), nn.Tanh())
        self.there, self.back = nn.Linear(12, 12), nn.Linear(12, 12)
        self.back.weight = self.there.weight
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.back(torch.tanh(self.there(self.first(x)))))


def test_a_weight_with_two_names_is_trained_as_torch_does():
    torch.manual_seed(0)
    the_job = job(model=Shared())
    assert tied(the_job.model)
    assert not tied(toy.Net())
    close(ours(the_job), plain(the_job, sgd()))
