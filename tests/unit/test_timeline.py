"""The timeline: what journals and traces hold is on it, where it belongs, each thing once."""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING

import pytest
from journal_builder import BOOT, SECOND, WALL, JournalBuilder, make_run
from perfetto_decoder import slices
from timeline_support import draw, event, named, paths, write_trace

from profwin.evidence import traces
from profwin.evidence.chrome import JsonWriter
from profwin.evidence.timeline import draw_timeline

if TYPE_CHECKING:
    from pathlib import Path

DEVICE = "gpu-0"


@pytest.fixture
def run(tmp_path) -> Path:
    """Return a run: a driver's window, an actor's stages, one of them skipped, and two traces."""
    directory = tmp_path / "run"
    driver = JournalBuilder(directory, "driver", fields={"root": True})
    path = write_trace(directory, "step_000002/rollout/a.pt.trace.json.gz", [event("generate", 10_000_000, 4e6)])
    driver.window(2, 10, 15, trace=(path, 1), opened={"waited": 2.0})
    driver.end(60).save()
    actor = JournalBuilder(directory, "actor", pid=200, clock=1000 * SECOND)
    path = write_trace(
        directory, "step_000002/train/update/b.pt.trace.json.gz",
        [event("mm", 20_000_000, 1000), event("mm", 20_000_500, 1000), event("kernel", 20_000_600, 10, 7, "kernel")],
    )  # fmt: skip
    actor.step(2, 19)
    actor.stage(2, 20, 25, trace=(path, 1))
    actor.skipped("stage", "values", 2, 26, 27, "busy", holder="somebody", waited=0.5)
    actor.stage(4, 40, 45)
    actor.end(60).save()
    return directory


def test_devices_show_who_held_their_lock(run):
    """A device's row has each collection from open to close, with step and holder."""
    _timeline, tracks = draw(run)
    device = named(tracks, "devices", DEVICE)
    assert device.rank == 0
    assert [(start - WALL, end - WALL, name, kind) for start, end, name, kind, _data in device.slices] == [
        (10 * SECOND, 15 * SECOND, "rollout (step 2)", "rollout"),
        (20 * SECOND, 25 * SECOND, "update (step 2)", "training"),
        (40 * SECOND, 45 * SECOND, "update (step 4)", "training"),
    ]
    data = device.slices[0][4]
    assert (data["holder"], data["step"], data["ended_by"]) == ("driver (rank 0, pid 100)", 2, "end")


def test_processes_show_what_they_did(run):
    """Windows, stages, waits, skips and exports have rows of their own below their process."""
    _timeline, tracks = draw(run)
    driver, actor = "driver (rank 0, pid 100)", "actor (rank 0, pid 200)"
    assert {track.process for track in tracks.values() if track.path in ((driver,), (actor,))} == {1, 2}
    assert [each[2] for each in named(tracks, driver, "windows").slices] == ["rollout"]
    assert [each[2] for each in named(tracks, actor, "stages").slices] == ["update", "values", "update"]
    ((start, end, name, _kind, data),) = named(tracks, actor, "unrecorded").slices
    assert (start - WALL, end - WALL, name) == (26 * SECOND, 27 * SECOND, "busy: values")
    assert data["holder"] == "somebody"
    ((start, end, *_),) = named(tracks, driver, "waiting").slices
    assert (start - WALL, end - WALL) == (8 * SECOND, 10 * SECOND)
    assert [name for _at, name, _data in named(tracks, actor, "notes").instants] == ["training step 2"]
    assert named(tracks, actor, "exports").slices[0][4]["path"] == "step_000002/train/update/b.pt.trace.json.gz"


def test_traces_lie_below_the_process_that_exported_them(run):
    """Every event of the traces is there at its wall-clock time, overlapping ones on rows of their own."""
    timeline, tracks = draw(run)
    assert named(tracks, "driver (rank 0, pid 100)", "process 7 thread 1").slices[0][:3] == (
        WALL + 10 * SECOND, WALL + 14 * SECOND, "generate"
    )  # fmt: skip
    actor = "actor (rank 0, pid 200)"
    first, second = (named(tracks, actor, f"process 7 thread 1{number}") for number in ("", " (2)"))
    assert [each[0] - WALL for each in (*first.slices, *second.slices)] == [20 * SECOND, 20 * SECOND + 500_000]
    assert named(tracks, actor, "device 7 stream 7").rank < first.rank
    assert timeline.read == 4
    assert timeline.records + timeline.read == timeline.written
    assert timeline.files == {
        "step_000002/rollout/a.pt.trace.json.gz": 1,
        "step_000002/train/update/b.pt.trace.json.gz": 3,
    }


def test_counts_are_of_what_is_in_the_file(run):
    """What is said to be written is what a reader finds."""
    timeline, tracks = draw(run)
    assert timeline.written == sum(len(track.slices) + len(track.instants) for track in tracks.values())


def test_one_step(run):
    """With a step only what belongs to it is drawn, and traces of others are counted."""
    timeline, tracks = draw(run, step=4)
    assert paths(tracks) == {
        ("devices", DEVICE),
        ("actor (rank 0, pid 200)", "stages"),
        ("actor (rank 0, pid 200)", "recording"),
    }
    assert (timeline.read, timeline.other_steps, timeline.left_out) == (0, 2, {})


def test_what_has_no_step(tmp_path):
    """What belongs to no step is drawn with the step in whose time it is."""
    journal = JournalBuilder(tmp_path / "run", fields={"root": True})
    journal.stage(2, 10, 20)
    journal.write("finding", 15, code="inside").write("finding", 25, code="outside")
    journal.end().save()
    _timeline, tracks = draw(tmp_path / "run", step=2)
    assert [name for track in tracks.values() for _at, name, _data in track.instants] == ["inside"]


def test_no_such_step(run):
    """A step that is not there leaves no file."""
    with pytest.raises(ValueError, match="nothing of step 9"):
        draw(run, step=9)
    assert not run.with_suffix(".pftrace.gz").exists()


def test_without_traces(run):
    """The journals alone: nothing of a trace is read."""
    timeline, tracks = draw(run, traces=False)
    assert timeline.read == 0
    assert not any("thread" in part for path in paths(tracks) for part in path)


def test_json(run, tmp_path):
    """The other format has the same events, with every nanosecond, and balanced lanes."""
    output = tmp_path / "run.json"
    timeline = draw_timeline(str(run), str(output), kind="json")
    content = json.loads(output.read_text(), parse_float=str)
    events = [event for event in content["traceEvents"] if event["ph"] in "Xi"]
    assert len(events) == timeline.written
    assert content["baseTimeNanoseconds"] == WALL
    (generate,) = (event for event in events if event["name"] == "generate")
    assert (generate["ts"], generate["dur"]) == ("10000000.000", "4000000.000")
    names = {event["args"]["name"] for event in content["traceEvents"] if event["name"] == "process_name"}
    assert {"devices", "driver (rank 0, pid 100)", "actor (rank 0, pid 200)"} <= names


def test_json_counters():
    """A counter has a name within its process and a value at a time; what is no number is none."""
    parts = []
    writer = JsonWriter(parts.append, WALL)
    counter = writer.counter("memory", writer.group("card", writer.group("actor", process=True)))
    for at, value in ((0, 1.5), (1001, 1 << 40), (2000, math.inf)):
        writer.value(counter, WALL + at, value)
    writer.close()
    events = [each for each in json.loads(b"".join(parts), parse_float=str)["traceEvents"] if each["ph"] == "C"]
    assert [(each["pid"], each["name"], each["ts"], each["args"]) for each in events] == [
        (1, "card: memory", "0.000", {"value": "1.5"}), (1, "card: memory", "1.001", {"value": 1 << 40}),
        (1, "card: memory", "2.000", {"value": None}),
    ]  # fmt: skip
    assert writer.events == 3


def test_json_without_journals(tmp_path):
    """Times count from the first event, so that readers that take them for floating-point numbers lose nothing."""
    write_trace(tmp_path / "some", "a.json.gz", [event("first", 0.001, 1), event("second", 0.003, 1)])
    draw_timeline(str(tmp_path / "some"), str(tmp_path / "a.json"), kind="json")
    content = json.loads((tmp_path / "a.json").read_text())
    assert content["baseTimeNanoseconds"] == WALL + 1
    assert [each["ts"] for each in content["traceEvents"] if each["ph"] == "X"] == [0, 0.002]


def test_a_row_goes_on_in_the_next_file(tmp_path):
    """A thread has one row in all files of its process; where they overlap in time there is a second."""
    journal = JournalBuilder(tmp_path / "run", fields={"root": True})
    for step, start in ((1, 10.0), (2, 20.0), (3, 20.1)):
        path = write_trace(tmp_path / "run", f"step_{step:06d}/{step}.json.gz", [event(f"op {step}", start * 1e6, 1e6)])
        journal.stage(step, start, start + 1, trace=(path, 1))
    journal.end().save()
    _timeline, tracks = draw(tmp_path / "run")
    process = "actor (rank 0, pid 100)"
    assert [each[2] for each in named(tracks, process, "process 7 thread 1").slices] == ["op 1", "op 2"]
    assert [each[2] for each in named(tracks, process, "process 7 thread 1 (2)").slices] == ["op 3"]


def test_files_without_a_journal(tmp_path):
    """Traces that no journal names have groups of their own, though all say the same process and thread."""
    for name in ("a", "b"):
        write_trace(tmp_path / "some", f"{name}.json.gz", [event(name, 0, 10)])
    timeline, tracks = draw(tmp_path / "some")
    assert paths(tracks) == {("a.json.gz", "process 7 thread 1"), ("b.json.gz", "process 7 thread 1")}
    assert len({track.process for track in tracks.values() if track.process}) == 2
    assert timeline.records == 0


def test_unfinished(tmp_path):
    """What never ended reaches to the last that its process is known to have done, and says so."""
    journal = JournalBuilder(tmp_path / "run", fields={"root": True})
    journal.stage(1, 10, 20, reason=None, status=None)
    journal.write("paused", 30)
    journal.save()
    _timeline, tracks = draw(tmp_path / "run")
    ((start, end, name, *_),) = named(tracks, "devices", DEVICE).slices
    assert (start - WALL, end - WALL, name) == (10 * SECOND, 30 * SECOND, "update (step 1) (never closed)")
    assert named(tracks, "actor (rank 0, pid 100)", "stages").slices[0][2] == "update (never ended)"


def test_device_of_nobody(tmp_path):
    """Where no device is known the process stands for it, with a row among the devices."""
    journal = JournalBuilder(tmp_path / "run", fields={"root": True})
    journal.stage(1, 10, 20, devices=())
    journal.end().save()
    _timeline, tracks = draw(tmp_path / "run")
    assert ("devices", f"process 100-{BOOT[:4]}") in paths(tracks)


def test_marks_and_incidents(tmp_path):
    """Engines' marks are on the devices' rows; pauses, requests and findings are with their processes."""
    journal = JournalBuilder(tmp_path / "run", fields={"root": True})
    journal.write("mark", 5, devices=[DEVICE], processes=[77])
    journal.write("mark", 6, devices=["gpu-1"], processes=[78])
    journal.write("confirmed", 9, devices=[DEVICE], processes=[77])
    journal.write("paused", 10).write("resumed", 11)
    journal.write("ask", 12, id=5, device=DEVICE, holder="x", answer="sent")
    journal.write("lost", 13, device=DEVICE)
    journal.write("finding", 14, code="late-stop", detail="17 s")
    journal.write("overlap", 15, id=1, stage="update", stage_site="a.py:1", window="rollout", window_site="a.py:2")
    journal.end(60).save()
    _timeline, tracks = draw(tmp_path / "run")
    ((start, end, name, *_),) = named(tracks, "devices", DEVICE).slices
    assert (start - WALL, end - WALL, name) == (5 * SECOND, 9 * SECOND, "engine's mark")
    ((start, end, name, *_),) = named(tracks, "devices", "gpu-1").slices
    assert (end - WALL, name) == (60 * SECOND, "engine's mark, never confirmed")
    process = "actor (rank 0, pid 100)"
    assert [each[:2] for each in named(tracks, process, "pauses").slices] == [(WALL + 10 * SECOND, WALL + 11 * SECOND)]
    assert [name for _at, name, _data in named(tracks, process, "notes").instants] == [
        f"asks for {DEVICE}", f"lock file lost: {DEVICE}", "late-stop", "update began inside rollout"
    ]  # fmt: skip


def test_several_runs(tmp_path):
    """Two runs below one directory are told apart, though their processes have the same numbers."""
    for name in ("one", "two"):
        journal = JournalBuilder(tmp_path / "all" / name, run=name, fields={"root": True})
        journal.stage(1, 10, 20)
        journal.end().save()
    _timeline, tracks = draw(tmp_path / "all")
    assert {path[0] for path in paths(tracks) if "devices" in path[0]} == {
        f"devices of host, run {name}" for name in ("one", "two")
    }


def test_many_ranks(tmp_path):
    """A run of 16 ranks on two hosts: every collection is on its device."""
    make_run(tmp_path / "run", ranks=16, steps=2)
    timeline, tracks = draw(tmp_path / "run")
    devices = [track for track in tracks.values() if track.path[0].startswith("devices") and track.slices]
    assert len(devices) == 16
    assert sum(len(track.slices) for track in devices) == 16 * 2 * 3
    assert timeline.records == timeline.written


def test_damaged_trace(run):
    """What a truncated trace still has is drawn."""
    whole = run / "step_000002/train/update/b.pt.trace.json.gz"
    events = ",".join(json.dumps(event(f"op {number}", 20e6 + number, 1)) for number in range(1000))
    whole.write_text('{"schemaVersion": 1, "traceEvents": [' + events[:-20])
    timeline, _tracks = draw(run)
    assert timeline.files["step_000002/train/update/b.pt.trace.json.gz"] >= 900


def test_nothing(tmp_path):
    """An empty directory gives an error and no file; one that is not there likewise."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="nothing to draw"):
        draw(tmp_path / "empty")
    with pytest.raises(FileNotFoundError):
        draw(tmp_path / "none")
    assert os.listdir(tmp_path) == ["empty"]


def test_bounds_of_memory(tmp_path, monkeypatch):
    """More names, categories and tracks than are held in memory are written as they are, or together."""
    monkeypatch.setattr(traces, "_MOST_NAMES", 5)
    monkeypatch.setattr(traces, "_MOST_CATEGORIES", 5)
    monkeypatch.setattr(traces, "_MOST_TRACKS", 5)
    events = [event(f"name {number}", number, 10, thread=number, category=f"c{number}") for number in range(50)]
    write_trace(tmp_path / "some", "a.json.gz", events)
    _timeline, tracks = draw(tmp_path / "some")
    assert sorted(name for _start, _end, name in slices(tracks)) == sorted(f"name {number}" for number in range(50))
    first = {track.path[1].partition(" (")[0] for track in tracks.values() if track.slices}
    assert first == {*(f"process 7 thread {number}" for number in range(5)), "further tracks"}
