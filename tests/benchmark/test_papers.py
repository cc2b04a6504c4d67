"""Every table and figure of the papers: it parses, all it names exists, and one round runs."""

from dataclasses import replace
from warnings import catch_warnings

import pytest

from feddg.benchmark import roles
from feddg.benchmark.bench import run_all
from feddg.benchmark.papers import Item, ItemRow, find, items, read
from feddg.benchmark.reproduce import Plan, scores
from feddg.benchmark.sheets import sheet
from feddg.data import catalogue
from feddg.engines.compute import Compute
from feddg.errors import ConfigError
from feddg.models.catalogue import BUILDERS
from feddg.report.figures import FIGURES
from tests.benchmark import mini_sets

SECTIONS = {
    "csac": "table1 table2-alexnet table2-resnet-18 table3 fig4 fig5 fig6 fig7 fig8 fig9"
    " table4-pacs table4-vlcs table5-pacs table5-vlcs table6-pacs table6-vlcs",
    "csac-v1": "table1 table2-alexnet table2-resnet-18 table3 fig3-left fig3-right fig4 fig5 fig6"
    " table4-pacs table4-vlcs table5-pacs table5-vlcs table6-pacs table6-vlcs",
    "ppdg": "table1 table2 table3 table4 table5-resnet-18 table5-resnet-50 fig1 table6"
    " table7-camelyon17 table7-rotated-mnist",
    "copa": "table1 table2 table3 table4 table5 table6 table7 fig2 fig3 fig4",
    "ga": "table1-pacs table1-office-home table1-terra-incognita table2 table3-pacs"
    " table3-office-home table3-terra-incognita fig3 fig4",
}
ITEMS = items()


def test_no_table_or_figure_is_missing():
    """Sixty experiments in the papers; those over several data sets are an item for each."""
    wanted = {(p, i) for p, line in SECTIONS.items() for i in line.split()}
    assert len(wanted) == 60
    for paper, item in wanted:
        found = find(paper, item)
        assert {i.item.startswith(item) for i in found} == {True}, (paper, item)
    assert {i.name for one in wanted for i in find(*one)} == {i.name for i in ITEMS}


@pytest.mark.parametrize("item", ITEMS, ids=lambda i: i.name)
def test_all_that_it_names_exists(item: Item):
    """Methods are composed when it is read; here are the network, the data and their options."""
    assert item.model in BUILDERS
    assert item.data in mini_sets.DOMAINS
    assert {*item.targets} <= {*mini_sets.DOMAINS[item.data].split()}
    spec = catalogue.catalogue()[item.data]
    spec.parse(item.data_options)
    if not item.official:
        assert {*spec.counts} <= {*mini_sets.DOMAINS[item.data].split()}
    if item.kind == "figure":
        assert item.chart in FIGURES
    assert len({row.key for row in item.rows}) == len(item.rows)
    assert item.unstated


@pytest.mark.parametrize("item", [i for i in ITEMS if i.numbers], ids=lambda i: i.name)
def test_every_row_and_column_is_the_papers(item: Item):
    """A row under a name that the paper does not print would stand beside nothing."""
    printed = {row.key: row for row in item.published()}
    ours = {row.key for row in item.rows}
    extra = {("CSAC", "merged, last round"), (item.against, "")}
    assert ours - extra <= set(printed)
    columns = {*item.targets, *(c.name for c in item.columns), "average", ""}
    assert all(set(row.cells) <= columns for row in printed.values())
    left_out = [row for key, row in printed.items() if key not in ours]
    assert all(row.quoted for row in left_out), "what the authors ran, we run"


@pytest.fixture(scope="module")
def mini_data():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "SPECS", mini_sets.SPECS)
        roles.opened.cache_clear()
        roles.federated.cache_clear()
        yield
    roles.opened.cache_clear()
    roles.federated.cache_clear()


def small(item: Item) -> Item:
    recipe = replace(
        item.recipe, epochs=1, first_epochs=None, steps=1, batch_size=4, drop_last=True
    )
    return replace(
        item, model="tests.benchmark.mini_sets:Tiny", weights="", rounds=1, recipe=recipe,
        seeds=1, share=0.25 if item.share else 0.0,
    )  # fmt: skip


def firsts() -> list[tuple[Item, tuple[ItemRow, ...]]]:
    """Each item with the rows whose like no item before it has; one row at least."""
    seen, found = set(), []
    for item in ITEMS:
        rows = []
        for row in item.rows:
            kind = (row.method, item.task, item.official, row.pooled, bool(row.local))
            rows += [] if kind in seen else [row]
            seen.add(kind)
        found.append((item, tuple(rows or item.rows[-1:])))
    return found


@pytest.mark.parametrize(("item", "rows"), firsts(), ids=[i.name for i in ITEMS])
def test_one_round_runs_on_miniature_data(item, rows, mini_data, tmp_path):
    wanted = Plan(item=small(item), rows=rows, targets=item.targets[:1], seeds=1)
    with catch_warnings(action="ignore"):  # λ = 0.5 says that it is bold
        list(run_all(wanted.runs(), tmp_path, Compute(device="cpu", workers=1)))
        found = sheet(wanted, tmp_path)
    assert len(found.body) >= len(rows) - bool(item.against)
    assert not any("not finished" in note for note in found.notes)
    for row in rows:
        assert set(scores(wanted, tmp_path)[row.key]) == set(wanted.columns), row.name


def test_a_name_stands_for_its_parts():
    assert [i.item for i in find("csac", "table2")] == ["table2-alexnet", "table2-resnet-18"]
    assert [i.item for i in find("csac", "table2-alexnet")] == ["table2-alexnet"]
    assert len(find("ga")) == 11


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (("cscc",), "unknown paper 'cscc'; did you mean 'csac'"),
        (("csac", "tabel3"), "unknown table or figure of csac 'tabel3'; did you mean 'table3'"),
    ],
)
def test_misspelt(argv, sentence):
    with pytest.raises(ConfigError, match=sentence):
        find(*argv)


GOOD = """
title = "T"
paper = "csac"
item = "table9"
data = "rotated-mnist"
model = "lenet"
rounds = 1
share = 0.0
selection = "last"
targets = ["m0"]
seeds = 1
[recipe]
[[rows]]
label = "FedAvg"
method = "fedavg"
"""


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"fedavg"', '"fedavgg"', "unknown method 'fedavgg'; did you mean 'fedavg'"),
        ('selection = "last"', 'selection = "lst"', "unknown selection 'lst'"),
        ("rounds = 1", 'rounds = "1"', r"x.toml: rounds must be a whole number, not '1'"),
        ("share = 0.0", "shares = 0.0", "unknown key in x.toml: 'shares'; did you mean 'share'"),
        ("seeds = 1", "", "x.toml lacks the key 'seeds'"),
        ('targets = ["m0"]', "", "csac table9 names no targets"),
        ("seeds = 1", 'seeds = 1\nagainst = "FedAvg"', "'against' goes with the kind significance"),
        ("[recipe]", "[recipe", "x.toml is not TOML"),
    ],
)
def test_what_is_wrong_is_said(old, new, sentence):
    assert read(GOOD, "x.toml").name == "csac table9"
    with pytest.raises(ConfigError, match=sentence):
        read(GOOD.replace(old, new), "x.toml")
