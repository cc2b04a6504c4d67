"""`feddg compare`: is a method better than another, or is it chance?"""

from typing import Annotated

import typer

from feddg.cli import options as o
from feddg.cli.bench import Markdown
from feddg.cli.draw import drawn, print_json
from feddg.cli.table import ByRule, Runs

Against = Annotated[str, typer.Option(help="The method that all others are compared with.")]


def compare(
    runs: Runs,
    against: Against = "fedavg",
    selection: ByRule = None,
    json: o.Json = False,
    markdown: Markdown = False,
) -> None:
    """Paired t-test and Wilcoxon's against one method, Holm's correction, average ranks."""
    from feddg.benchmark.stored import stored_runs
    from feddg.report.compare import comparisons

    found = comparisons(stored_runs(runs), against, selection)
    if json:
        print_json([one.to_dict() for one in found])
    elif markdown:
        print(*(one.markdown() for one in found), sep="\n\n")
    else:
        for one in found:
            drawn(one.title, one.lines(), one.notes)
