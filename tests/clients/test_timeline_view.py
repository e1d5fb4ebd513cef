"""Timelines open in Perfetto's own engine, and it drops nothing. See ``README.md`` here."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from test_views import PYTHON
from test_views import read as ask

sys.path.append(str(Path(__file__).parents[1] / "unit"))
from perfetto_decoder import read

from profwin.evidence.perfetto import ProtobufWriter
from profwin.evidence.timeline import draw_timeline

WALL = 1_790_000_000_000_000_000
REAL = Path(os.environ.get("PROFWIN_REAL_TRACES", Path(__file__).parents[3] / "shared/traces"))
pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="VIEWERS_PYTHON names no environment: see tests/clients/README.md"),
    pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed"),
]
PROBLEMS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
SLICES = "select ts, dur, name from slice order by ts, dur, name"


def _overlapping(path: Path) -> list[dict[str, object]]:
    """Write a trace whose slices overlap in every way, and return its events."""
    chance = random.Random(2)
    events = [
        {
            "ph": "X", "cat": "kernel", "name": f"k{number % 40}", "pid": 0, "tid": chance.randrange(3),
            "ts": chance.randrange(200_000) / 1000, "dur": chance.randrange(20_000) / 1000,
        }
        for number in range(2000)
    ]  # fmt: skip
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": WALL, "traceEvents": events}))
    return events


def _nanoseconds(events: list[dict[str, object]]) -> list[list[object]]:
    times = [(round(1000 * event["ts"]), round(1000 * event["dur"]), event["name"]) for event in events]
    return sorted([start, length, name] for start, length, name in times)


@pytest.mark.parametrize("name", ["out.pftrace", "out.pftrace.gz", "out.json", "out.json.gz"])
def test_no_slice_is_dropped(tmp_path, name):
    """Slices that overlap are all there, with their times, in each format."""
    (tmp_path / "in").mkdir()
    events = _overlapping(tmp_path / "in/a.json")
    kind = "json" if ".json" in name else "protobuf"
    draw_timeline(str(tmp_path / "in"), str(tmp_path / name), kind=kind)
    answer = ask("read_perfetto.py", str(tmp_path / name), SLICES, PROBLEMS)
    assert answer["error"] == ""
    rows, problems = answer["rows"]
    assert problems == []
    first = min(rows)[0]
    earliest = min(_nanoseconds(events))[0]
    assert [[start - first + earliest, *more] for start, *more in rows] == _nanoseconds(events)


def test_the_trace_itself_loses_slices(tmp_path):
    """The test above can fail: of the very same events Perfetto drops many where it reads them as they are."""
    events = _overlapping(tmp_path / "a.json")
    answer = ask("read_perfetto.py", str(tmp_path / "a.json"), "select count(*) as n from slice", PROBLEMS)
    ((count,),), problems = answer["rows"]
    assert count < len(events)
    assert "slice_drop_overlapping_complete_event" in dict(problems)


def test_arrows_groups_and_data(tmp_path):
    """An arrow joins its slices, lanes lie in their groups, processes have their names, data its values."""
    with (tmp_path / "a.pftrace").open("wb") as file:
        writer = ProtobufWriter(file.write, WALL)
        devices = writer.group("devices", rank=-1)
        card = writer.lane("card", devices)
        actor = writer.group("actor (rank 0)", process=True)
        lane = writer.lane("thread", actor)
        writer.begin(lane, WALL, WALL + 100, "launch", "cuda_runtime", {"step": 2, "site": "a.py:1", "recorded": True})
        writer.flow(lane, WALL + 50, "flow-start", 1 << 41 | 7, "ac2g", "ac2g")
        writer.end(lane, WALL + 100)
        writer.begin(card, WALL + 200, WALL + 300, "kernel")
        writer.flow(card, WALL + 200, "flow-end", 1 << 41 | 7, "ac2g", "ac2g")
        writer.end(card, WALL + 300)
        writer.instant(lane, WALL + 400, "done")
        writer.close()
    answer = ask(
        "read_perfetto.py", str(tmp_path / "a.pftrace"), PROBLEMS,
        "select a.name as a, b.name as b from flow f"
        " join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in",
        "select s.name as a, t.name as b, p.name as c from slice s"
        " join process_track t on t.id = s.track_id join process p using (upid)",
        "select s.name as a, t.name as b, g.name as c from slice s"
        " join track t on t.id = s.track_id join track g on g.id = t.parent_id",
        "select key, display_value from args join slice using (arg_set_id) where key like 'debug.%' order by key",
    )  # fmt: skip
    problems, flows, process_slices, grouped, data = answer["rows"]
    assert answer["error"] == ""
    assert problems == []
    assert flows == [["launch", "kernel"]]
    assert process_slices == [["launch", "thread", "actor (rank 0)"], ["done", "thread", "actor (rank 0)"]]
    assert ["kernel", "card", "devices"] in grouped
    assert data == [["debug.recorded", "true"], ["debug.site", "a.py:1"], ["debug.step", "2"]]


@pytest.mark.parametrize(
    "path",
    [
        "hta/tests/data/mtia_trace_single_rank",
        "hta/tests/data/nccl_parser_config",
        "hta/tests/data/ns_resolution_trace",
        "ascend/test/data/pytorch/text/level0",
        "nsys-ai/tests/fixtures",
    ],
)
def test_real_traces(tmp_path, path):
    """All that was read of a real trace is in the engine: of the first one it drops 3,551 slices otherwise."""
    if not (REAL / path).exists():
        pytest.skip("the real traces are not here")
    timeline = draw_timeline(str(REAL / path), str(tmp_path / "a.pftrace.gz"))
    tracks = read(tmp_path / "a.pftrace.gz").values()
    values = sum(len(track.values) for track in tracks)
    ends = [(phase, number) for track in tracks for _at, phase, number, _name in track.flows]
    answer = ask(
        "read_perfetto.py", str(tmp_path / "a.pftrace.gz"), PROBLEMS, "select count(*) from slice",
        "select count(*) from counter", "select count(*) from flow",
    )  # fmt: skip
    assert answer["rows"][:3] == [[], [[timeline.written - values - len(ends)]], [[values]]]
    assert timeline.written == timeline.read
    # An end without the other one is no arrow: files that were cut have such.
    begun, ended = (Counter(number for each, number in ends if each == phase) for phase in "sf")
    assert answer["rows"][3] == [[(begun & ended).total()]]
