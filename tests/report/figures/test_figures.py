"""Every figure from real runs, a round or two each; and what each says when it lacks something."""

import json
import re
import shlex
from math import isfinite
from typing import Any

import pytest
from typer.main import get_command

from feddg.benchmark.driver import conduct
from feddg.benchmark.protocols import experiment
from feddg.benchmark.stored import stored_runs
from feddg.cli import app
from feddg.errors import ConfigError
from feddg.report.draw import rendered
from feddg.report.figures import FIGURES, figure
from feddg.report.figures.common import Lacking, narrowed
from feddg.report.figures.variants import FIG_2, FIG_3, FIG_4
from tests.cli.command import images
from tests.report.stored import stored

METHODS = ("fedavg", "ppdg", "ppdg(lam=0.2)", "ga", "ga(step=0.0)", "csac", "csac(lam=0.2)",
           "ind-average")  # fmt: skip
VARIANTS = ("copa-fig2", "copa-fig3")


def conducted(folder, wanted):
    for _ in conduct(list(wanted.values()), folder, 1):
        pass
    return stored_runs([folder])


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory):
    """Tables, so that all of it takes seconds."""
    wanted = [
        experiment("heart-disease", method=m, targets=("va",), seed=s, rounds=2,
                   diagnostics="curves,distances,models")
        for m in METHODS for s in range(2)
    ]  # fmt: skip
    few = [
        experiment("heart-disease", method="csac", targets=("va",), rounds=2, sources=names)
        for names in (("cleveland",), ("cleveland", "hungarian"))
    ]
    return conducted(tmp_path_factory.mktemp("hospitals"), {e.key: e for e in (*wanted, *few)})


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """COPA's norms want convolutions."""
    root = images(tmp_path_factory.mktemp("pictures") / "all", ("day", "night", "dusk"))
    options = {"size": "16", "channels": "1"}

    def one(method, **more):
        return experiment(str(root), method=method, targets=("dusk",), rounds=1,
                          data_options=options, **more)  # fmt: skip

    plain = [one(m) for m in dict.fromkeys((*FIG_2.values(), *FIG_3.values()))]
    adapted = [one(m, task="uda") for m in FIG_4.values()]
    wanted = {e.key: e for e in (*plain, *adapted)}
    return conducted(tmp_path_factory.mktemp("copa"), wanted)


def runs_for(key, hospitals, pictures):
    if not key.startswith("copa"):
        return hospitals
    adapted = key == "copa-fig4"
    return tuple(r for r in pictures if r.experiment.adapted == adapted)


@pytest.mark.parametrize("key", FIGURES)
def test_every_figure_is_drawn_from_real_runs(key, hospitals, pictures):
    charts = figure(key).charts(runs_for(key, hospitals, pictures))
    assert charts
    assert len({c.key for c in charts}) == len(charts)
    for chart in charts:
        assert chart.series, chart.key
        assert re.fullmatch(r"[\w.+-]+", chart.key), chart.key
        assert chart.note
        numbers = [v for s in chart.series for v in (*s.y, *s.error) if v is not None]
        assert numbers
        assert all(map(isfinite, numbers))
        json.dumps(chart.to_dict(), allow_nan=False)
    assert rendered(charts)[:4] == b"\x89PNG"


@pytest.mark.parametrize("key", [k for k in FIGURES if k not in ("rounds", "cost")])
def test_what_is_lacking_is_one_sentence_with_a_command_that_there_is(key):
    """The command's name and options exist; one run of FedAvg is enough for no other figure."""
    with pytest.raises(Lacking, match=f"the figure {key} needs") as said:
        figure(key).charts([stored("fedavg")])
    text = str(said.value)
    assert "\n" not in text
    program, command, *words = shlex.split(text.partition("`")[2].partition("`")[0])
    assert program == "feddg"
    commands: Any = get_command(app)
    known = {o for p in commands.commands[command].params for o in p.opts}
    assert {w for w in words if w.startswith("--")} <= known


def test_no_figure_mixes_protocols(hospitals):
    other = stored("fedavg", data="heart-disease", target="va", accuracies=(0.5,) * 2,
                   recipe={"lr": 0.7})  # fmt: skip
    with pytest.raises(ConfigError, match=r"2 protocols.*lr=0\.7"):
        figure("rounds").charts([*hospitals, other])


def test_a_folder_of_several_papers_has_a_figure_of_the_one_that_fits(hospitals, pictures):
    """As after `feddg reproduce` of this and that: the runs of one data set have λ, not others."""
    alone = figure("ppdg-fig1").charts(hospitals)
    assert figure("ppdg-fig1").charts([*pictures, *hospitals]) == alone
    assert figure("copa-fig4").charts([*hospitals, *pictures])[0].series
    with pytest.raises(Lacking, match="figure ga-fig3 needs"):
        figure("ga-fig3").charts(pictures)


def test_runs_are_narrowed_to_a_target_or_a_method(hospitals):
    of_csac = narrowed(hospitals, "va", "csac(lam=0.6)")
    assert {r.experiment.method.partition("(")[0] for r in of_csac} == {"csac"}
    assert len(of_csac) == 4
    with pytest.raises(ConfigError, match="target 'vancouver'"):
        narrowed(hospitals, "vancouver")
    with pytest.raises(ConfigError, match="method 'scaffold'"):
        narrowed(hospitals, None, "scaffold")


def test_misspelt():
    with pytest.raises(ConfigError, match="unknown figure 'csac-fig10'; did you mean"):
        figure("csac-fig10")
