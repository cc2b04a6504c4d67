import pytest

from feddg.errors import ConfigError
from feddg.report.groups import grouped
from feddg.report.shown import OWN, SLOW, shown
from tests.report.folders import bench


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    return grouped(bench(tmp_path_factory.mktemp("runs")))


def test_what_the_runs_can_give_is_shown_and_the_rest_passed_over(groups):
    """Three methods have ranks; there are no variants of COPA; `rounds` the page draws itself."""
    keys = [c.key for c in shown(groups)(groups[0])]
    assert "ranks" in keys
    assert not any(k.startswith(("copa", "rounds", *OWN, *SLOW)) for k in keys)


def test_a_figure_asked_for_by_name_is_shown_or_refused(groups):
    asked = [c.key for c in shown(groups, ["rounds"])(groups[0])]
    assert {"rounds-m0", "rounds-m15"} <= set(asked)
    with pytest.raises(ConfigError, match="copa-fig2 needs runs of two variants"):
        shown(groups, ["copa-fig2"])
    with pytest.raises(ConfigError, match="unknown figure 'csac-fig'"):
        shown(groups, ["csac-fig"])


def test_a_figure_does_not_repeat_its_groups_title(groups):
    for chart in shown(groups, ["rounds"])(groups[0]):
        assert groups[0].title not in chart.note
