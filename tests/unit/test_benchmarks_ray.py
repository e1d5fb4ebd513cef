"""The benchmark of windows over Ray actors, with tiny counts; never a timing."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks import ray_scale
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.ray_scale import Costs, costs, project
from benchmarks.report import Figure


def test_projection():
    """One actor counts whole, each further one by the processor time that it takes of the driver."""
    assert project(Costs(5.0, 0.5), 1) == 5.0
    assert project(Costs(5.0, 0.5), 1001) == 505.0
    sizes = {
        "4": {"bare": [9.0], "bare processor": [3.0]}, "1": {"bare": [2.0, 3.0, 9.0], "bare processor": [1.5]},
        "16": {"bare": [40.0], "bare processor": [9.0]},
    }  # fmt: skip
    assert costs(sizes, "bare") == Costs(3.0, 0.5)


def test_without_ray_it_is_said(capsys, monkeypatch):
    """Where Ray is missing nothing is measured, and nothing fails."""
    monkeypatch.setattr(ray_scale, "find_spec", lambda _name: None)
    assert main(["--only", "ray"]) == 0
    assert "ray is not installed" in capsys.readouterr().out


def test_what_was_measured_is_shown_after_ctrl_c(capsys, monkeypatch):
    """An interrupted run shows the figures that it has, and says what it lacks."""

    def interrupted(_plan):
        yield Figure("ray", "the first part", 1.5, "x")
        raise KeyboardInterrupt

    monkeypatch.setitem(BENCHMARKS, "ray", interrupted)
    assert main(["--only", "ray", "stage"]) == 1
    said = capsys.readouterr()
    assert "the first part" in said.out
    assert "interrupted" in said.out
    assert "stage:" not in said.err


def test_torch_is_not_begun_where_it_does_not_fit(monkeypatch):
    """Where memory is short, no further actor imports torch, and the line says how much is wanted and free."""
    ray_actors = pytest.importorskip(
        "benchmarks.ray_actors", reason="ray is not installed: its actors are not measured"
    )
    measured, free = [], {"MemAvailable": 5000 << 20, "MemTotal": 20000 << 20}

    def part(handles, profiler, _rounds, _seed):
        measured.append((len(handles), profiler))
        free["MemAvailable"] = (5000 - 200 * len(handles)) << 20
        return {"said": profiler}

    monkeypatch.setattr(ray_actors, "find_spec", lambda _name: True)
    monkeypatch.setattr(ray_actors, "_memory", free.__getitem__)
    monkeypatch.setattr(ray_actors, "_part", part)
    *_, last = ray_actors._with_torch([None] * 64, [1, 16, 64], {}, 1)
    both = (ray_actors.NOTHING, ray_actors.GENERATION)
    assert measured == [(size, profiler) for size in (1, 16) for profiler in both]
    assert "64 actors with torch do not fit: 48 more need 9600 MiB" in last["skipped"]
    assert "1800 MiB that are free" in last["skipped"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_windows_over_actors_are_measured(tmp_path, monkeypatch, capsys):
    """The curve, its projection and a step that is not selected are measured; only real work has a bound."""
    pytest.importorskip("ray", reason="ray is not installed: nothing can be measured")
    monkeypatch.setattr(ray_scale, "ROUNDS", {1: 5, 2: 5})
    monkeypatch.setattr(ray_scale, "QUICK", 2)
    target = tmp_path / "figures.json"
    assert main(["--scale", "0.01", "--only", "ray", "--json", str(target)]) == 0
    figures = json.loads(target.read_text())["figures"]
    words = [each["what"] for each in figures]
    profilers = ["empty calls"]
    if "torch" in sys.modules:
        profilers += ["torch.profiler, nothing", "torch.profiler, 200 tokens"]
    curve = [f"{each}, {size}: window / bare fan-out" for each in profilers for size in ("1 actor", "2 actors")]
    projections = len(profilers) * len(ray_scale.PROJECTED)
    assert words[:2] == curve[:2]
    assert "not selected" in words[2]
    assert sorted([*words[:2], *words[3:-projections]]) == sorted(curve)
    assert all("PROJECTION" in each for each in words[-projections:])
    assert {each["what"] for each in figures if each["target"]} == set(curve[4:])
    said = capsys.readouterr().err
    assert all(each.partition(" actor")[0] in said for each in curve)
