"""Which runs share a table, what it is called, and who stands where in it."""

import pytest

from feddg.benchmark.bench import Bench, run, table
from feddg.benchmark.stored import stored_runs
from feddg.errors import ConfigError, DataError
from feddg.report.groups import grouped, in_order, short
from tests.report.stored import record, stored


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("fedavg", "fedavg"),
        ("fedavg(weights='uniform')", "fedavg(weights='uniform')"),
        ("ga(step=0.05)+csac(lam=0.2)", "ga+csac(lam=0.2)"),
        ("ppdg(lam=0.2)", "ppdg(lam=0.2)"),
        ("csac:official", "csac:official"),
        ("copa(cutout=0)", "copa:digits"),
    ],
)
def test_short_names_read_back_as_the_same_method(spec, name):
    from feddg.catalogue import compose

    assert short(spec) == name
    assert compose(name) == compose(spec)


def test_what_the_numbers_depend_on_is_never_mixed():
    """Another schedule, recipe, number of rounds or selection is another table."""
    runs = [
        stored("fedavg"),
        stored("csac"),
        stored("fedavg", seed=1),
        stored("fedavg", target="m15"),
        stored("fedavg", schedule="short"),
        stored("fedavg", recipe={"lr": 0.5}),
        stored("fedavg", accuracies=(0.5, 0.6)),
        stored("fedavg", selection="oracle"),
    ]
    groups = grouped(runs)
    assert [len(g.runs) for g in groups] == [4, 1, 1, 1, 1]
    assert len({g.title for g in groups}) == 5
    assert "SHORTENED schedule 'short'" in groups[1].title
    assert "lr=0.5" in groups[2].title
    assert "rounds=2" in groups[3].title
    assert "selection: oracle (the target's labels)" in groups[4].title


def test_diagnostics_are_no_other_protocol_and_no_second_seed():
    [group] = grouped([stored("fedavg"), stored("fedavg", diagnostics="curves")])
    assert group.scores == {"fedavg": {"m0": {0: 50.0}}}


def test_records_alone_make_a_table_but_not_of_what_groups_decide(tmp_path, monkeypatch):
    """Neither model nor data are at hand; FMoW goes by its worst group, which no record says."""
    monkeypatch.setenv("FEDDG_DATA", str(tmp_path))
    lone = stored("fedavg", "usps", data="digit-five")
    [group] = grouped([lone])
    assert group.scores == {"fedavg": {"usps": {0: 50.0}}}
    scores = {"test/usps": {"accuracy": 0.5, "worst_group": 0.25}}
    apart = stored(
        "fedavg", "usps", data="digit-five", records=(record("usps", 0.5, scores=scores),)
    )
    with pytest.raises(DataError, match="is not there"):
        grouped([apart])


def test_a_rule_by_name_picks_for_all_and_says_so():
    """The last round has 50%, the best on the target 80%: only the oracle may take it."""
    runs = [stored("fedavg", accuracies=(0.8, 0.5))]
    assert grouped(runs)[0].scores["fedavg"]["m0"] == {0: 50}
    [oracle] = grouped(runs, "oracle")
    assert oracle.scores["fedavg"]["m0"] == {0: 80}
    assert "selection: oracle" in oracle.title
    with pytest.raises(ConfigError, match="'source-val' needs validation data"):
        grouped(runs, "source-val")
    with pytest.raises(ConfigError, match="did you mean 'oracle'"):
        grouped(runs, "orcale")


def test_bounds_stand_first_and_methods_in_the_catalogues_order():
    runs = [
        stored("ga"),
        stored("csac"),
        stored("fedprox"),
        stored("fedavg"),
        stored("fedavg", pooled=True),
        stored("fedavg", sources=("m15",)),
    ]
    [group] = grouped(runs)
    assert list(group.scores) == [
        "deepall (shares data)", "m15 alone", "fedavg", "fedprox", "csac", "ga",
    ]  # fmt: skip
    assert group.methods == ("fedavg", "fedprox", "csac", "ga")
    assert [r.reference for r in group.table().rows] == [True, True, False, False, False, False]


def test_a_part_of_the_sources_is_named():
    [group] = grouped([stored("csac", sources=("m15", "m30"))])
    assert list(group.scores) == ["csac (m15+m30)"]


def test_the_papers_number_stands_beside_its_own_protocol_only():
    """Six targets by the paper's schedule: FedAvg's published average is 92.65."""
    names = tuple(f"m{k}" for k in range(0, 90, 15))
    runs = [stored("fedavg", target=t, accuracies=(0.9,) * 41, rounds=41) for t in names]
    assert grouped(runs)[0].table().rows[0].paper == 92.65
    assert grouped(runs[:5])[0].table().rows[0].paper is None
    shorter = [stored("fedavg", target=t) for t in names]
    assert grouped(shorter)[0].table().rows[0].paper is None


def test_what_is_cut_off_or_was_not_judged_is_left_out():
    cut = stored("fedavg", accuracies=(0.5,), rounds=3)
    with pytest.raises(ConfigError, match="feddg bench"):
        grouped([cut])
    [group] = grouped([cut, stored("csac", targets=()), stored("csac", rounds=1)])
    assert list(group.scores) == ["csac"]


def test_a_score_that_is_missing_is_no_number():
    [group] = grouped([stored("fedavg"), stored("csac", records=(record("m0", None),))])
    assert list(group.scores) == ["fedavg"]


def test_the_tables_of_a_bench_come_back_from_its_runs(tmp_path):
    """Numbers, order of the hospitals, bounds and all: as `feddg bench` printed them."""
    bench = Bench(data="heart-disease", methods=("fedavg", "fedprox"), schedule="demo",
                  changes={"rounds": 1}, targets=("cleveland", "switzerland", "va"))  # fmt: skip
    for _ in run(bench, tmp_path, 1):
        pass
    printed = table(bench, tmp_path)
    [group] = grouped(stored_runs([tmp_path]))
    again = group.table()
    assert again.columns == printed.columns
    ours = {r.name: (r.numbers, r.average) for r in again.rows}
    assert ours == {r.name: (r.numbers, r.average) for r in printed.rows}
    assert again.title == printed.title
    assert again.notes == printed.notes[:1]  # the data set's own; the others are of single runs
    order = in_order(group.runs)
    assert [n for n in order if n != "hungarian"] == ["cleveland", "switzerland", "va"]
