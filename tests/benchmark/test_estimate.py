"""What a full run is said to cost: counted by hand, times what a step takes."""

import pytest

from feddg.benchmark.estimate import SETS, Estimator, clock
from feddg.benchmark.papers import find, items
from feddg.engines.compute import Compute


def estimator(seconds=1e-3):
    found = Estimator(Compute(device="cpu"))
    for item in items():
        found.measured[item.model, SETS[item.data][2]] = seconds
    found.measured["resnet18", (3, 224, 224)] = seconds
    return found


def test_images_by_hand():
    """Six targets; 5,000 images of the other five; 30 epochs, then 40 rounds of 5: 230."""
    [item] = find("csac", "table3")
    assert estimator().images(item, 0) == pytest.approx(6 * 5_000 * 230)
    assert estimator().runs(item) == 4 * 6 * 5
    assert estimator().seconds(item) == pytest.approx(4 * 5 * 6 * 5_000 * 230 * 1e-3)


def test_a_share_of_the_sites_and_official_splits():
    """PovertyMap: 9,797 training images, half of the sites in each of 200 rounds, one run a row."""
    [item] = find("ppdg", "table2")
    assert estimator().images(item, 0) == pytest.approx(9_797 * 0.5 * 200)
    assert estimator().runs(item) == 8 * 3


def test_fewer_sources_and_what_is_held_out():
    """One source of seven with 10% held out; one target."""
    [item] = find("csac", "fig5")
    one = SETS["office-caltech-home"][0] / 7
    assert estimator().images(item, 0) == pytest.approx(one * 0.9 * 430)


def test_larger_networks_in_proportion_to_their_multiplications():
    found = estimator()
    assert found.per_image("resnet50", (3, 224, 224)) == pytest.approx(4.1 / 1.8 * 1e-3)
    assert found.per_image("resnet18", (3, 112, 112)) == pytest.approx(1e-3 / 4)


def test_a_step_is_measured_once():
    found = Estimator(Compute(device="cpu"))
    first = found.step("lenet", (1, 28, 28))
    assert 0 < first < 1
    assert found.step("lenet", (1, 28, 28)) == first


def test_every_item_has_an_estimate():
    assert all(estimator().seconds(item) > 0 for item in items())


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (5, "5 s"),
        (89, "89 s"),
        (90, "1.5 min"),
        (4_000, "67 min"),
        (90_000, "25 h"),
        (1e6, "12 days"),
    ],
)  # fmt: skip
def test_clock(seconds, said):
    assert clock(seconds) == said
