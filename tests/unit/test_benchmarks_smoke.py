"""The benchmarks' harness, with tiny counts: tables, verdicts, intervals and judges; never a timing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import calls, measure
from benchmarks.__main__ import main
from benchmarks.journals import Interval, overlaps, read_run
from benchmarks.report import Figure, table
from benchmarks.witness import Witness, dead, seen


def test_one_command_prints_a_table_and_writes_json(tmp_path, capsys):
    """The chosen benchmarks appear with target and verdict, in the table and in the JSON, beside the machine."""
    target = tmp_path / "figures.json"
    assert main(["--scale", "0.01", "--only", "locks", "stage", "--json", str(target)]) == 0
    printed = capsys.readouterr().out
    assert "pair, 8 devices" in printed
    assert "recorded stage, one device, p99" in printed
    written = json.loads(target.read_text())
    assert {"cpu", "cores", "kernel", "python", "torch"} <= written["machine"].keys()
    figures = {figure["what"]: figure for figure in written["figures"]}
    assert figures["pair, 1 device"]["target"] == 12.0
    assert figures["pair, 1 device"]["verdict"] in ("reached", "missed")
    assert figures["recorded stage, one device, p50"]["count"] > 0


def test_ranges_are_measured(tmp_path, capsys):
    """The range of the nvtx backend is compared with the bare one, without a tool and with one, and has its target."""
    pytest.importorskip("nvtx")
    target = tmp_path / "figures.json"
    assert main(["--scale", "0.01", "--only", "nvtx", "--json", str(target)]) == 0
    figures = {figure["what"]: figure for figure in json.loads(target.read_text())["figures"]}
    assert figures["range around a stage, no tool: profwin / nvtx.annotate"]["target"] == 1.5
    assert "recorded stage, backend nvtx, no device" in figures
    listened = "range around a stage, a tool listens: profwin / nvtx.annotate" in figures
    assert listened or "no C compiler" in capsys.readouterr().out


def test_what_several_processes_do_to_each_other_is_measured(capsys):
    """Requests, waits in event loops, in a crowd and idle, and neighbours on other devices: each runs to its end."""
    assert main(["--scale", "0.01", "--only", "requests", "waiting", "neighbours"]) == 0
    printed = capsys.readouterr().out
    for words in (
        "to the other's entry, p50",
        "asyncio: stage to window, p99",
        "8 waiters",
        "an idle waiter",
        "/ none",
    ):
        assert words in printed


@pytest.mark.parametrize("kind", calls.KINDS)
@pytest.mark.parametrize("state", ["off", "recording"])
def test_every_kind_of_call_is_measured_beside_the_closure(state, kind, monkeypatch):
    """The decorated call, the bare one and the closure are measured in the same rounds, in each state."""
    monkeypatch.setattr("benchmarks.calls.load", lambda *, installed: _load_without_packages())
    answer = calls.one_process(state=state, kind=kind, calls=5, rounds=3, seed=1)
    rounds = {name: len(values) for name, values in answer["nanoseconds"].items()}
    assert rounds == {calls.OWN: 3, calls.BARE: 3, calls.HAND: 3}


def _load_without_packages():
    from benchmarks.peers import load

    return load(installed=False)


def test_an_unknown_benchmark_is_refused_by_name(capsys):
    """A wrong name ends the command and lists the right ones."""
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])
    assert "handover" in capsys.readouterr().err


def test_a_benchmark_that_fails_is_said_and_makes_the_command_fail(monkeypatch, capsys):
    """A failure in one benchmark is printed with its reason, and the exit status is 1."""

    def broken(plan):
        raise RuntimeError("no such machine")

    monkeypatch.setitem(sys.modules["benchmarks.__main__"].BENCHMARKS, "locks", broken)
    assert main(["--scale", "0.01", "--only", "locks"]) == 1
    assert "no such machine" in capsys.readouterr().out


def test_the_verdict_follows_the_rule_of_the_target():
    """An upper bound, a lower bound and "the same within an interval" are each judged as they say."""
    assert Figure("b", "w", 1.0, "us", target=1.0).verdict == "reached"
    assert Figure("b", "w", 1.1, "us", target=1.0).verdict == "missed"
    assert Figure("b", "w", 1.1, "x", target=1.0, rule="least").verdict == "reached"
    assert Figure("b", "w", 1.0, "x", 0.99, 1.01, 0.02, "same").verdict == "reached"
    assert Figure("b", "w", 1.0, "x", 0.95, 1.05, 0.02, "same").verdict == "missed"
    assert Figure("b", "w", 1.01, "x", 1.005, 1.015, 0.02, "same").verdict == "missed"
    assert Figure("b", "w", 1.05, "x", 0.99, 1.09, 0.1, "not more").verdict == "reached"
    assert Figure("b", "w", 0.8, "x", 0.7, 0.9, 0.1, "not more").verdict == "reached"
    assert Figure("b", "w", 1.05, "x", 1.01, 1.09, 0.1, "not more").verdict == "missed"
    assert Figure("b", "w", 1.05, "x", 0.99, 1.2, 0.1, "not more").verdict == "missed"
    assert Figure("b", "w", 1.01, "x", 1.005, 1.015, 0.02, "within").verdict == "reached"
    assert Figure("b", "w", 1.01, "x", 0.995, 1.025, 0.02, "within").verdict == "missed"
    assert Figure("b", "w", 0.99, "x", 0.975, 1.005, 0.02, "within").verdict == "missed"
    assert Figure("b", "w", 1.0, "us").verdict == ""
    assert "<= 1 us" in table([Figure("b", "w", 0.5, "us", target=1.0)])


def test_the_interval_of_a_median_holds_it_and_shrinks_to_equal_values():
    """The bootstrap interval surrounds the median, and is a point where all values are the same."""
    values = [float(number) for number in range(101)]
    middle = measure.estimate(values)
    assert middle.low < middle.value == 50.0 < middle.high
    assert measure.estimate([2.0] * 9)[:3] == (2.0, 2.0, 2.0)
    assert measure.percentile(values, 99) == 99.0
    assert measure.percentile(values, 100) == 100.0
    assert measure.percentile([7.0], 50) == 7.0


def test_the_reader_finds_overlaps_broken_lines_and_skips(tmp_path):
    """Two processes on one device at once are an overlap; an open record without its close lasts to the death."""
    first = [
        {"kind": "process", "t": 0, "pid": 1},
        {"kind": "open", "t": 10, "collection": 1, "purpose": "rollout", "devices": ["a"]},
    ]
    second = [
        {"kind": "process", "t": 0, "pid": 2},
        {"kind": "open", "t": 20, "collection": 1, "purpose": "training", "devices": ["a", "b"]},
        {"kind": "close", "t": 30, "collection": 1},
        {"kind": "skip", "t": 31, "id": 5, "reason": "peer"},
        {"kind": "enter", "t": 32, "id": 5, "what": "stage"},
    ]
    for name, records in (("first.jsonl", first), ("second.jsonl", second)):
        (tmp_path / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    with (tmp_path / "second.jsonl").open("a") as file:
        file.write('broken}\n{"kind": "trunc')
    run = read_run(str(tmp_path), {1: 25})
    assert [(each.device, each.end, each.closed) for each in run.intervals] == [
        ("a", 25, False),
        ("a", 30, True),
        ("b", 30, True),
    ]
    assert (run.undecodable, run.truncated, dict(run.skips)) == (1, 1, {("stage", "peer"): 1})
    assert len(overlaps(run.intervals)) == 1
    assert overlaps(read_run(str(tmp_path), {1: 20}).intervals) == []
    assert overlaps([Interval("", 0, 9, "p", "rollout", True), Interval("", 1, 2, "q", "rollout", True)]) == []


def test_the_witness_reports_the_living_and_takes_over_from_the_dead(tmp_path):
    """A file of a living process is an overlap; one of a process that is gone or a zombie is not."""
    witness = Witness(tmp_path, lambda: 0.0)
    witness.enter("a")
    assert seen(tmp_path) == []
    witness.enter("a")
    assert len(seen(tmp_path)) == 1
    witness.leave("a")
    witness.leave("a")
    assert len(seen(tmp_path)) == 2
    ended = subprocess.Popen([sys.executable, "-c", "pass"])
    start = Path(f"/proc/{ended.pid}/stat").read_text().rpartition(")")[2].split()[19]
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert dead(f"{ended.pid} {start}".encode())
    ended.wait()
    assert dead(f"{ended.pid} {start}".encode())
    (tmp_path / "device-b").write_text(f"{ended.pid} {start}")
    witness.enter("b")
    witness.leave("b")
    assert len(seen(tmp_path)) == 2
