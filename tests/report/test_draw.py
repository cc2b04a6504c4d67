"""The renderer: what is drawn where, in every format, the same bytes every time."""

import builtins
from dataclasses import replace
from typing import Any

import pytest

from feddg.errors import ConfigError
from feddg.report.bars import span
from feddg.report.charts import Chart, Series
from feddg.report.draw import figure, levels, noted, rendered, write_charts

LINE = Chart(
    "toy", "A line", "line", "round", "accuracy (%)",
    (
        Series("fedavg", (1.0, 2.0, 3.0), (50.0, None, 70.0), (1.0, None, 2.0)),
        Series("csac", (1.0, 2.0, 3.0), (55.0, 65.0, 75.0), dashed=True),
    ),
    note="toy data", reference=60.0,
)  # fmt: skip
BARS = Chart("bars", "Bars", "bar", "", "seconds", (
    Series("up", ("fedavg", "csac"), (1.0, 3.0), (0.1, None)),
    Series("down", ("fedavg",), (2.0,)),
))  # fmt: skip
CLOUD = Chart("cloud", "Points", "scatter", "", "", (
    Series("a", (0.0, 1.0), (1.0, 2.0)), Series("b", (5.0,), (5.0,)),
))  # fmt: skip
GROUND = Chart("ground", "Loss", "surface", "", "", (
    Series("loss", (0.0, 1.0), (0.0, 1.0, 2.0), z=((1.0, 2.0), (3.0, 4.0), (5.0, 9.0))),
    Series("merged", (0.0,), (0.0,)),
    Series("m15", (0.0, 1.0), (0.0, 2.0), dashed=True),
))  # fmt: skip


@pytest.mark.parametrize("chart", [LINE, BARS, CLOUD, GROUND], ids=lambda c: c.kind)
@pytest.mark.parametrize(
    ("kind", "starts"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?x")]
)
def test_every_kind_in_every_format_and_twice_the_same(chart, kind, starts):
    found = rendered([chart], kind)
    assert found.startswith(starts)
    assert rendered([chart], kind) == found


def test_lines_have_gaps_bands_and_a_reference():
    with figure([LINE]) as drawn:
        [ax] = drawn.axes
        by_label: dict[str, Any] = {str(v.get_label()): v for v in ax.lines}
        assert list(by_label["fedavg"].get_xdata()) == [1, 3]
        assert list(by_label["csac"].get_ydata()) == [55, 65, 75]
        assert by_label["csac"].get_linestyle() == "--"
        assert any(list(v.get_ydata()) == [60, 60] for v in by_label.values())
        assert ax.get_legend() is not None


def test_bars_stand_side_by_side():
    with figure([BARS]) as drawn:
        patches: Any = drawn.axes[0].patches
        assert [p.get_height() for p in patches] == [1, 3, 2]
        assert [t.get_text() for t in drawn.axes[0].get_xticklabels()] == ["fedavg", "csac"]


def test_a_bar_of_one_run_has_no_whisker_and_a_missing_one_keeps_its_place():
    one = Series("t", ("a", "b", "c"), (1.0, 2.0, None))
    for series, whiskers in ((one, 0), (replace(one, error=(0.5, None, None)), 1)):
        with figure([replace(BARS, series=(series,))]) as drawn:
            [ax] = drawn.axes
            assert len(ax.collections) == whiskers
            assert ax.get_xlim() == pytest.approx((-0.55, 2.55))


def test_bars_begin_at_zero_unless_all_are_high_and_level():
    """All from 81 to 85: begins 60% of these 4 below, 78.6; ends a fifth of 6.4 above, 86.28."""
    assert span([(1.0, 1.0), (3.0, 3.0)]) is None
    assert span([(-1.0, 1.0)]) is None
    assert span([]) is None
    assert span([(81.0, 83.0), (84.0, 85.0)]) == pytest.approx((78.6, 86.28))


def test_panels_of_the_same_names_share_a_legend():
    with figure([LINE, LINE, LINE, LINE]) as drawn:
        assert len(drawn.legends) == 1
        assert all(ax.get_legend() is None for ax in drawn.axes)
        assert sum(ax.axison for ax in drawn.axes) == 4  # of two rows of three


def test_ranks_are_named_at_their_points():
    points = (
        Series("a", (1.0,), (2.0,), text=("a: 1.00",)),
        Series("alike", (1.0, 2.0), (0.6, 0.6)),
    )
    with figure([Chart("ranks", "Ranks", "line", "rank", "", points)]) as drawn:
        [ax] = drawn.axes
        assert [t.get_text() for t in ax.texts] == ["a: 1.00", "alike"]
        assert ax.get_legend() is None
        assert not ax.get_yticks().size


def test_names_on_the_right_stand_left_of_their_points_and_all_stay_inside():
    long = "csac(position=False, channel=False)"
    points = tuple(
        Series(f"{long}{k}", (float(k),), (9.0 - k,), text=(f"{long}: {k}",)) for k in range(1, 9)
    )
    with figure([Chart("ranks", "Ranks", "line", "rank", "", points)]) as drawn:
        drawn.canvas.draw()
        edge = drawn.bbox.width
        boxes = [t.get_window_extent() for t in drawn.axes[0].texts]
        assert all(box.x0 >= 0 and box.x1 <= edge for box in boxes)


def test_many_long_names_are_read_from_left_to_right():
    names = tuple(f"csac(lam=0.{k})" for k in range(9))
    with figure([Chart("c", "Time", "bar", "", "s", (Series("t", names, (1.0,) * 9),))]) as drawn:
        [ax] = drawn.axes
        patches: Any = ax.patches
        assert [t.get_text() for t in ax.get_yticklabels()] == list(names)
        assert [p.get_width() for p in patches] == [1.0] * 9
        assert ax.get_xlabel() == "s"


def test_colours_come_again_with_other_dashes():
    many = tuple(Series(f"m{k}", (1.0, 2.0), (1.0, float(k))) for k in range(12))
    with figure([replace(LINE, series=many)]) as drawn:
        looks: Any = [(v.get_color(), str(v.get_linestyle())) for v in drawn.axes[0].lines[:12]]
        assert looks[0][0] == looks[10][0]
        assert len(set(looks)) == 12


def test_surfaces_side_by_side_have_one_scale():
    higher = replace(GROUND, series=(replace(GROUND.series[0], z=((10.0, 20.0),) * 3),))
    assert levels([GROUND, higher])[-1] == 20
    assert levels([GROUND, LINE])[-1] == 9
    assert levels([LINE]) == []
    flat = replace(GROUND, series=(replace(GROUND.series[0], z=((1.0, 1.0),) * 3),))
    assert rendered([flat])  # one level would be no contour


def test_what_notes_have_in_common_is_said_once():
    one, two = (replace(LINE, note=f"data: 2 seeds. run {k}") for k in (1, 2))
    assert noted([one, two, one]) == "data: 2 seeds. run 1. run 2"
    assert noted([one]) == "data: 2 seeds. run 1"
    assert noted([LINE, two]) == "toy data. data: 2 seeds. run 2"


def test_spots_on_a_surface_are_named():
    with figure([GROUND]) as drawn:
        assert [t.get_text() for t in drawn.axes[0].texts] == ["merged", "m15"]


def test_the_files_name_says_the_format(tmp_path):
    write_charts([LINE], tmp_path / "x.SVG")
    assert (tmp_path / "x.SVG").read_bytes().startswith(b"<?xml")
    with pytest.raises(ConfigError, match=r"unknown format of a figure 'x\.gif'"):
        write_charts([LINE], tmp_path / "x.gif")


def test_without_matplotlib_the_way_out_is_said(monkeypatch):
    original = builtins.__import__

    def absent(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ConfigError, match=r"feddg\[report\]"):
        rendered([LINE])
