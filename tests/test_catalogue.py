"""Names, compositions, and what other packages bring."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest

from feddg import catalogue
from feddg.catalogue import compose, spelled
from feddg.errors import ConfigError
from feddg.method import Method, Wrapper
from feddg.methods.fedavg import FedAvg


@dataclass(frozen=True)
class FedMine(Wrapper):
    """A method of another package."""

    inner: Method = FedAvg()
    much: float = 1.0


def factory() -> FedMine:
    return FedMine()


@pytest.fixture
def plugged(monkeypatch):
    points = [
        EntryPoint("FedMine", f"{__name__}:FedMine", "feddg.methods"),
        EntryPoint("broken", "no_such_package:Method", "feddg.methods"),
        EntryPoint("made", f"{__name__}:factory", "feddg.methods"),
    ]
    monkeypatch.setattr(catalogue, "entry_points", lambda group: points)
    catalogue.methods.cache_clear()
    yield
    catalogue.methods.cache_clear()


@pytest.mark.usefixtures("plugged")
def test_another_packages_method_whatever_the_case_of_its_name():
    assert spelled(compose("FedMine(much=2)+fedprox")) == "fedmine(much=2.0)+fedprox(mu=0.1)"


@pytest.mark.usefixtures("plugged")
def test_a_broken_plug_in_breaks_nothing_but_itself():
    assert spelled(compose("fedprox")) == "fedprox(mu=0.1)"
    with pytest.raises(ConfigError, match="'broken' cannot be imported"):
        compose("broken")
    with pytest.raises(ConfigError, match=r"'made'.*no dataclass"):
        compose("made")


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("fedporx", "did you mean 'fedprox'"),
        ("fedprox(mo=1)", "unknown option of fedprox 'mo'"),
        ("fedprox(mu=much)", "must be a float"),
        ("fedprox(0.1)", "write option=value"),
        ("fedprox:pubic", "unknown preset of fedprox"),
        ("fed prox", "is not a method"),
        ("fedavg+fedprox", "comes last"),
        ("fedprox+fedprox", "stands twice"),
        ("ga+ga", "GA stands twice"),
        ("csac+ppdg", "both decide how the replies become one model"),
        ("ga+arfl", "both decide how much say"),
        ("fedprox+ga", "write it first"),
        ("ppdg+fedavg(weights='size', merge=1)", "unknown option of fedavg 'merge'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(spec, sentence):
    with pytest.raises(ConfigError, match=sentence):
        compose(spec)
