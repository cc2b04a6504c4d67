"""Predictions, evaluations and models as rich tables; rich is imported when one is drawn.

Names come from the user's data, so every cell is plain text and never markup.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from feddg.deploy.evaluate import Evaluation, Report
from feddg.deploy.load import Deployed
from feddg.deploy.predict import Predictions

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

WIDE = 12  # more classes than this, and the confusion matrix no longer fits a screen
PERCENT = ("accuracy", "balanced_accuracy")


def evaluation_view(evaluation: Evaluation) -> "Group":
    """By domain, by class, and who is taken for whom."""
    from rich.console import Group

    return Group(*_tables(evaluation))


def predictions_view(predictions: Predictions, limit: int = 20) -> "Table":
    """The first rows; `write_csv` has them all."""
    shown = min(limit, len(predictions))
    more = f" (first {shown} of {len(predictions)})" if shown < len(predictions) else ""
    words = {"domain", predictions.inputs.id_name, "predicted", "label", "true label"}
    header = predictions.header
    made = _table(
        f"Predictions: {predictions.inputs.name}{more}",
        [h for h in header if h in words],
        header,
    )
    for _, row in zip(range(shown), predictions.rows(), strict=False):
        made.add_row(*(_text(f"{v:.3f}" if isinstance(v, float) else v) for v in row))
    return made


def model_view(deployed: Deployed) -> "Table":
    """What a folder holds, in a few lines."""
    meta = deployed.meta
    made = _table(f"Model: {deployed.folder}", ["", " "], ["", " "])
    made.show_header = False
    for key, value in (
        ("data", f"{meta.data} ({meta.protocol})" if meta.protocol else meta.data),
        ("method", meta.method),
        ("network", meta.architecture.model),
        ("takes", meta.takes),
        ("classes", ", ".join(deployed.classes) or "–"),
        ("sites", ", ".join(meta.training.get("sites", ())) or "–"),
        ("held out", ", ".join(meta.training.get("targets", ())) or "–"),
        ("sha256", meta.weights.sha256),
    ):
        made.add_row(_text(key), _text(value))
    return made


def _tables(e: Evaluation) -> "Iterator[Table]":
    scores = [name.replace("_", " ") for name in e.overall.scores]
    made = _table(
        f"{e.data}: {e.overall.examples} examples", ["domain"], ["domain", "examples", *scores]
    )
    for name, report in e.domains.items():
        made.add_row(*_row(name + ("*" if name in e.trained_on else ""), report))
    notes = []
    if len(e.domains) > 1:
        made.add_section()
        made.add_row(*_row("all", e.overall), style="bold")
        if e.worst:
            notes.append(f"worst domain by {e.metric.replace('_', ' ')}: {e.worst}")
    if e.trained_on:
        notes.append("* the model was trained on this domain: no measure of generalisation")
    made.caption = _text("\n".join(notes)) if notes else None
    made.caption_justify = "left"
    yield made
    if e.classes:
        yield _by_class(e)
        yield _confusion(e) if len(e.classes) <= WIDE else _confused(e)


def _by_class(e: Evaluation) -> "Table":
    made = _table("By class", ["class"], ["class", "precision", "recall", "F1", "support"])
    for row in e.classes:
        scores = (_cell("", v) for v in (row.precision, row.recall, row.f1))
        made.add_row(_text(row.name), *scores, str(row.support))
    return made


def _confusion(e: Evaluation) -> "Table":
    title = "Confusion: a row per true class, a column per predicted one"
    made = _table(title, [""], ["", *(row.name for row in e.classes)])
    made.min_width = len(title)  # a title wraps to its table
    for k, (row, counts) in enumerate(zip(e.classes, e.confusion, strict=True)):
        cells = (_text(n, "bold" if j == k else "") for j, n in enumerate(counts))
        made.add_row(_text(row.name), *cells)
    return made


def _confused(e: Evaluation, most: int = 10) -> "Table":
    """With many classes: the pairs that are confused most."""
    names = [row.name for row in e.classes]
    wrong = [
        (n, names[i], names[j])
        for i, counts in enumerate(e.confusion)
        for j, n in enumerate(counts)
        if n and i != j
    ]
    title = f"Most confused (of {sum(n for n, _, _ in wrong)} errors)"
    made = _table(title, ["true", "predicted"], ["true", "predicted", "times"])
    for n, true, predicted in sorted(wrong, key=lambda w: -w[0])[:most]:
        made.add_row(_text(true), _text(predicted), str(n))
    return made


def _row(name: str, report: Report) -> "list[Text | str]":
    return [
        _text(name),
        str(report.examples),
        *(_cell(k, v) for k, v in report.scores.items()),
    ]


def _cell(metric: str, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.1f} %" if metric in PERCENT else f"{value:.3f}"


def _text(value: object, style: str = "") -> "Text":
    from rich.text import Text

    return Text(str(value), style)


def _table(title: str, words: Sequence[str], header: Sequence[str]) -> "Table":
    """Columns of `words` stand at the left, those of numbers at the right."""
    from rich import box
    from rich.table import Table

    made = Table(title=_text(title), title_justify="left", box=box.SIMPLE)
    for name in header:
        made.add_column(_text(name), justify="left" if name in words else "right")
    return made
