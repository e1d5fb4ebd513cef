"""Clocks: what can be put on one time axis is, to the nanosecond; what cannot stands apart and says so."""

from __future__ import annotations

import pytest
from journal_builder import SECOND, WALL, JournalBuilder
from perfetto_decoder import slices
from timeline_support import draw, event, named, paths, write_trace

DEVICE = "gpu-0"
OTHER = "77770000-0000-4000-8000-000000000000"


def test_unknown_clock_stands_after_everything(tmp_path):
    """A trace without a base time does not pretend to be at the same time as anything: it is behind, and marked."""
    journal = JournalBuilder(tmp_path / "run", fields={"root": True})
    journal.stage(1, 10, 20)
    journal.end().save()
    write_trace(tmp_path / "run", "0.json.gz", [event("when", 5, 10)], base=None)
    write_trace(tmp_path / "run", "1.json.gz", [event("later", 5_000e6, 10)])
    timeline, tracks = draw(tmp_path / "run")
    ((start, end, _name, *_),) = named(tracks, "clock not aligned: 0.json.gz", "process 7 thread 1").slices
    assert start > max(end for _start, end, name in slices(tracks) if name != "when")
    assert end - start == 10_000
    assert ["0.json.gz" in note for note in timeline.notes] == [True]


def test_a_trace_without_any_clock_alone(tmp_path):
    """It can be looked at, in either format."""
    write_trace(tmp_path / "some", "a.json.gz", [event("when", 5, 10)], base=None)
    _timeline, tracks = draw(tmp_path / "some")
    assert [end - start for start, end, _name in slices(tracks)] == [10_000]


def test_wall_clock_that_was_set(tmp_path):
    """Within a boot distances are those of the monotonic clock, and it is said that the wall clock was set."""
    first = JournalBuilder(tmp_path / "run", "driver", fields={"root": True})
    first.window(1, 10, 20)
    first.end().save()
    # Its process began, and so took its anchor, after the wall clock had been set back by an hour.
    second = JournalBuilder(tmp_path / "run", "actor", pid=200, fields={"wall": WALL - 3600 * SECOND})
    path = write_trace(tmp_path / "run", "step_000001/a.json.gz", [event("mm", 21e6, 10)], base=WALL - 3600 * SECOND)
    second.stage(1, 20.5, 30, trace=(path, 1))
    second.end().save()
    timeline, tracks = draw(tmp_path / "run")
    assert [start - WALL for start, *_ in named(tracks, "devices", DEVICE).slices] == [10 * SECOND, 20.5 * SECOND]
    assert [start - WALL for start, *_ in named(tracks, "actor (rank 0, pid 200)", "process 7 thread 1").slices] == [
        21 * SECOND
    ]
    assert any("was set" in note and "3600.000 s" in note for note in timeline.notes)


@pytest.mark.parametrize("away", [0, 30 * 24 * 3600])
def test_hosts(tmp_path, away):
    """Two hosts are aligned by their wall clocks; one whose clock contradicts the launch is set apart and named."""
    first = JournalBuilder(tmp_path / "run", "driver", fields={"root": True})
    first.window(1, 10, 20)
    first.end().save()
    second = JournalBuilder(
        tmp_path / "run", "actor", boot=OTHER, host="other", pid=200, clock=5 * SECOND,
        fields={"wall": WALL - away * SECOND},
    )  # fmt: skip
    second.stage(1, 21, 30)
    second.end().save()
    timeline, tracks = draw(tmp_path / "run")
    mark = "clock not aligned: " if away else ""
    ((start, end, *_),) = named(tracks, f"{mark}devices of other", DEVICE).slices
    assert end - start == 9 * SECOND
    assert (start == WALL + 21 * SECOND) is not bool(away)
    assert (start > WALL + 3600 * SECOND) is bool(away)
    assert any("host other" in note for note in timeline.notes) is bool(away)
    assert ("devices of host", DEVICE) in paths(tracks)
