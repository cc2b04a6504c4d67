"""`feddg report` from real runs."""

import json
import re

from tests.cli.command import feddg, sites


def test_a_page_of_real_runs(capsys, tmp_path):
    data, root = sites(tmp_path / "clinics", ("a", "b", "c", "d")), tmp_path / "runs"
    bench = feddg(
        capsys, "bench", data, "--methods", "fedavg,ga,csac,ppdg", "--seeds", 2, "--rounds", 3,
        "--targets", "a,b", "--workers", 1, "--out", root, "--json",
    )  # fmt: skip
    assert bench.code == 0, bench.err
    out = tmp_path / "new" / "page.html"
    said = feddg(capsys, "report", root, "--out", out, "--title", "Clinics")
    assert said.code == 0, said.err
    assert said.out.startswith(f"16 runs in {out} (")
    text = out.read_text("utf-8")
    [found] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    data = json.loads(found)
    [group] = data["groups"]
    table = {row["name"]: row for row in json.loads(bench.out)["rows"]}
    for row in group["rows"]:
        assert row["average"]["mean"] == table[row["name"]]["average"]["mean"]
    inside = {(i["row"], k["name"]) for i in group["insides"] for k in i["kinds"]}
    assert {("ga", "Say of each site"), ("csac", "Say of each site, by layer")} <= inside


def test_what_is_no_run_or_no_figure_is_said(capsys, tmp_path):
    said = feddg(capsys, "report", tmp_path, "--out", tmp_path / "page.html")
    assert said.code == 2
    assert "no run in" in said.err
    assert not (tmp_path / "page.html").exists()


def test_records_are_mirrored_where_track_says(capsys, tmp_path, monkeypatch):
    """`run` and `bench` hand their events to the sinks, also of runs that were through before."""
    from tests.report.test_sinks import Remembering

    sink = Remembering()
    monkeypatch.setattr("feddg.report.sinks.opened", lambda texts: (sink,))
    argv = ("run", sites(tmp_path / "clinics"), "--rounds", 2, "--target", "a", "--workers", 1,
            "--out", tmp_path / "runs", "--track", "tensorboard:x")  # fmt: skip
    assert feddg(capsys, *argv).code == 0
    assert list(sink.held.values()) == [[0, 1]]
    bench = ("bench", tmp_path / "clinics", "--seeds", 1, *argv[2:])
    sink.held.clear()
    assert feddg(capsys, *(w if w != "--target" else "--targets" for w in bench)).code == 0
    assert list(sink.held.values()) == [[0, 1]]
