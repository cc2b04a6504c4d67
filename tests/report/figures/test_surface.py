"""Planes through models, worked by hand, and the loss on them where it is known."""

from dataclasses import replace

import pytest
import torch

from feddg.benchmark.driver import conduct
from feddg.benchmark.locals import read_locals
from feddg.benchmark.protocols import experiment
from feddg.benchmark.stored import stored_runs
from feddg.errors import ConfigError
from feddg.local import Evaluation, evaluate
from feddg.report.figures import surface
from feddg.report.figures.surface import GRID, Plane, loss_surfaces
from feddg.weights import Layout, Weights

LAYOUT = Layout(("w", "mean"), ((3,), (1,)), 1)


def model(*values):
    return Weights(torch.tensor([*values, 9.0]), LAYOUT)


def test_three_models_and_their_mean_lie_in_the_plane():
    """Triangle (3,0,1), (0,3,1), (-3,-3,1) around (0,0,1): places keep lengths and angles."""
    sites = {"a": model(3.0, 0, 1), "b": model(0.0, 3, 1), "c": model(-3.0, -3, 1)}
    plane = Plane.of(model(0.0, 0, 1), sites)
    assert plane.kept == pytest.approx(1)
    assert torch.allclose(plane.axes @ plane.axes.T, torch.eye(2, dtype=torch.float64))
    a, b, c = (torch.tensor(plane.sites[k]) for k in "abc")
    assert a.norm().item() == pytest.approx(3)
    assert (a @ b).item() == pytest.approx(0, abs=1e-6)
    assert (b - c).norm().item() == pytest.approx(45**0.5)
    for name, (x, y) in plane.sites.items():
        assert torch.allclose(plane.at(x, y).vector, sites[name].vector, atol=1e-5)
    assert torch.equal(plane.at(0, 0).vector, model(0.0, 0, 1).vector)
    assert plane.sites["a"][0] > 0
    assert plane.sites["a"][1] > 0


def test_a_fourth_direction_is_left_out_and_told():
    """Squares along the axes are 32, 8 and 2: the two largest are 40 of 42."""
    sites = {
        name: model(*values)
        for name, values in {
            "a": (4.0, 0, 0), "b": (-4.0, 0, 0), "c": (0.0, 2, 0), "d": (0.0, -2, 0),
            "e": (0.0, 0, 1), "f": (0.0, 0, -1),
        }.items()
    }  # fmt: skip
    plane = Plane.of(model(0.0, 0, 0), sites)
    assert plane.kept == pytest.approx(40 / 42)
    assert plane.sites["e"] == pytest.approx((0, 0))


def test_the_sides_go_around_all_models():
    """The larger spread is 8, from -4 to 4: with a quarter more on either side it is 12.

    The other one, from 0 to 1, has its middle at 0.5.
    """
    plane = Plane(model(0.0, 0, 0), torch.eye(2, 3, dtype=torch.float64),
                  {"a": (4.0, 1.0), "b": (-4.0, 0.5)}, 1.0)  # fmt: skip
    xs, ys = plane.sides()
    assert len(xs) == len(ys) == GRID
    assert (xs[0], xs[-1]) == pytest.approx((-6, 6))
    assert (ys[0], ys[-1]) == pytest.approx((-5.5, 6.5))


def test_two_sites_and_their_mean_are_one_line():
    with pytest.raises(ConfigError, match="spans no plane; a loss surface takes three sites"):
        Plane.of(model(0.0, 0, 0), {"a": model(1.0, 0, 0), "b": model(-1.0, 0, 0)})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root = tmp_path_factory.mktemp("surface")
    one = experiment("heart-disease", method="fedavg", targets=("va",), rounds=1,
                     diagnostics="models")  # fmt: skip
    for _ in conduct([one], root, 1):
        pass
    return stored_runs([root])[0]


def test_the_surface_at_the_models_is_their_own_loss(run, monkeypatch):
    """A grid that has the sites' places in it: the heights there are what `evaluate` finds."""
    models = read_locals(run)
    plane = Plane.of(models.merged.model, {k: r.model for k, r in models.sites.items()})
    monkeypatch.setattr(surface, "EXAMPLES", 1000)  # all there are
    xs, ys = ((0.0, *(p[k] for p in plane.sites.values())) for k in (0, 1))
    monkeypatch.setattr(Plane, "sides", lambda self: (xs, ys))
    [chart] = loss_surfaces([run])
    z = chart.series[0].z
    data = run.experiment.prepared().run
    va, collection = data.judged["test/va"], data.federation.collection
    for k, packet in enumerate((models.merged, *models.sites.values())):
        found = evaluate(
            Evaluation(models.predictor(packet), va, collection.task, collection.prepare)
        )
        assert z[k][k] == pytest.approx(found["loss"], abs=1e-4)


def test_its_spots_are_the_models(run):
    [chart] = loss_surfaces([run, replace(run, finished=False)])
    ground, merged, *sites = chart.series
    assert (len(ground.x), len(ground.y), len(ground.z), len(ground.z[0])) == (GRID,) * 4
    assert (merged.name, merged.x, merged.y) == ("merged", (0.0,), (0.0,))
    assert [s.name for s in sites] == ["cleveland", "hungarian", "switzerland"]
    assert all(s.x[0] == s.y[0] == 0 for s in sites)
    assert "loss of 128 examples of va" in chart.note
