"""Which of the registry's figures the page shows of a group, besides those that it draws itself."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from feddg.errors import FeddgError
from feddg.report.charts import Chart
from feddg.report.figures import FIGURES, figure
from feddg.report.groups import Group

OWN = frozenset({"rounds", "weights", "conflicts", "cost", "csac-fig7", "csac-fig9"})
SLOW = frozenset({"csac-fig4", "csac-fig8", "ga-fig4"})  # they take the data, or minutes
Shown = Callable[[Group], list[Chart]]


def shown(groups: Sequence[Group], asked: Sequence[str] = ()) -> Shown:
    """By group. What was asked for and none of the groups can give is an error, the rest is not."""
    found: dict[int, list[Chart]] = {id(group): [] for group in groups}
    for key in (*(k for k in FIGURES if k not in OWN | SLOW and k not in asked), *asked):
        lacking: list[FeddgError] = []
        for group in groups:
            try:
                charts = figure(key).charts(group.runs)
            except FeddgError as error:
                lacking.append(error)
            else:
                found[id(group)] += [own_words(c, group) for c in charts]
        if key in asked and len(lacking) == len(groups):
            raise lacking[0]
    return lambda group: found[id(group)]


def own_words(chart: Chart, group: Group) -> Chart:
    """Without the group's title, under which the figure stands."""
    return replace(chart, note=chart.note.removeprefix(group.title).strip(" .;"))
