"""The benchmarks of evidence, with tiny counts: their traces, journals and measured programs; never a timing."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest

from benchmarks import big_ascend
from benchmarks.__main__ import main
from benchmarks.big_run import STAGES, write_run
from benchmarks.big_trace import MADE, base, write_trace
from benchmarks.child import run_code
from benchmarks.journals import overlaps, read_run


def test_the_commands_on_big_files_are_measured(capsys, monkeypatch):
    """Check, two processes, timeline and report run to their end, on a made trace; absent peers are said."""
    monkeypatch.setenv("PROFWIN_REAL_TRACES", "absent")
    monkeypatch.delenv("PEERS_PYTHON", raising=False)
    assert main(["--scale", "0.01", "--only", "check", "files", "timeline", "run"]) == 0
    printed = capsys.readouterr().out
    for words in (
        "profwin check / gunzip",
        "made here repeated",
        "one process / two processes",
        "slices a second",
        "Ascend: peak memory",
        "the report's page",
        "PEERS_PYTHON is not set",
    ):
        assert words in printed


def test_a_trace_is_repeated_later_and_with_numbers_of_its_own(tmp_path, monkeypatch):
    """The repeated trace is JSON, has as many events as are said, and no correlation belongs to two launches."""
    monkeypatch.setenv("PROFWIN_REAL_TRACES", "absent")
    trace = base()
    assert trace.source == MADE
    events, size = write_trace(tmp_path / "trace.json.gz", trace, 2)
    text = gzip.decompress((tmp_path / "trace.json.gz").read_bytes())
    read = json.loads(text)["traceEvents"]
    assert (len(read), len(text)) == (events, size)
    launches = [event for event in read if event.get("cat") == "cuda_runtime"]
    assert len({event["args"]["correlation"] for event in launches}) == len(launches) == 20_000
    assert [event["ts"] for event in launches] == sorted(event["ts"] for event in launches)


@pytest.mark.parametrize("real", [True, False])
def test_an_ascend_timeline_is_repeated_later_and_with_arrows_of_its_own(tmp_path, monkeypatch, real):
    """The repeated timeline is JSON, has as many events as are said, and arrows have as many ends as they had."""
    if not real:
        monkeypatch.setenv("PROFWIN_REAL_TRACES", "absent")
    timeline = big_ascend.base()
    events, size = big_ascend.write_timeline(tmp_path / "a/trace_view.json", timeline, 2)
    text = (tmp_path / "a/trace_view.json").read_text()
    read = json.loads(text)
    assert (len(read), len(text)) == (events, size)
    length = len(timeline.events)
    same = ("ph", "name", "pid", "args")
    assert all(each.get(key) == old.get(key) for each, old in zip(read, timeline.events, strict=False) for key in same)
    first, second = (Counter((each["cat"], str(each["id"])) for each in part if each["ph"] in "sf")
                     for part in (read[:length], read[length : 2 * length]))  # fmt: skip
    assert not first & second
    assert sorted(first.values()) == sorted(second.values())
    assert max(float(each["ts"]) for each in read[:length]) < min(
        float(each["ts"]) for each in read[length : 2 * length]
    )


def test_the_journals_of_many_ranks_are_a_run_in_which_nothing_is_amiss(tmp_path):
    """The reader of the benchmarks finds every interval closed, none overlapping, and no broken line."""
    records = write_run(tmp_path, 3, 2)
    files = list((tmp_path / "journal").iterdir())
    assert records == sum(len(file.read_bytes().splitlines()) for file in files)
    run = read_run(str(tmp_path), {})
    assert len(run.intervals) == 3 * 2 * (1 + len(STAGES))
    assert all(each.closed for each in run.intervals)
    assert (overlaps(run.intervals), run.undecodable) == ([], 0)


def test_a_program_is_measured_with_all_that_it_starts(tmp_path):
    """The peak of a child counts both by itself and in the sum, and a failure is told with its last words."""
    large = 'import time; large = b"x" * 60_000_000; time.sleep(0.3)'
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {large!r}])"
    child = run_code(code)
    assert child.largest > 60
    assert child.together > child.largest
    with pytest.raises(RuntimeError, match="in vain"):
        run_code("raise SystemExit('in vain')")
