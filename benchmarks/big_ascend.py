"""Ascend timelines of any size: the events of a real one, or of some made here, again and again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.big_trace import MADE
from benchmarks.measure import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FILE", "REAL", "Timeline", "base", "write_timeline"]

REAL = "ascend/test/data/pytorch/text/level0/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json"
"""Below the folder of real traces."""
FILE = "rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json"
_HOST, _DEVICE, _QOS = 4711, 3_089_232_288, 3_089_232_576
_BEGIN = 1_736_405_443_000_000


class Timeline(NamedTuple):
    """What one repetition is made of.

    Attributes:
        source: where it comes from, in words.
        names: events that name processes; there once, at the end, as in many real ones.
        events: the others.
        length: of one repetition, in nanoseconds.
    """

    source: str
    names: list[dict[str, Any]]
    events: list[dict[str, Any]]
    length: int


def base() -> Timeline:
    """Take the events of the real timeline, or where it is absent those of one that is made here."""
    folder = Path(os.environ.get("PROFWIN_REAL_TRACES") or ROOT.parent / "shared" / "traces")
    try:
        found, source = json.loads((folder / REAL).read_bytes()), "rank0_ascend_pt"
    except OSError:
        found, source = list(_made()), MADE
    events = [event for event in found if event["ph"] != "M"]
    times = [_nanoseconds(event["ts"]) for event in events]
    return Timeline(
        source, [event for event in found if event["ph"] == "M"], events, max(times) - min(times) + 1_000_000
    )


def write_timeline(path: Path, timeline: Timeline, copies: int) -> tuple[int, int]:
    """Write the events of a timeline several times, each time later and with arrows of its own.

    Returns:
        The number of events, and of bytes.
    """
    parts = []
    for event in timeline.events:
        time, name, number = str(event["ts"]), event["name"], str(event["id"]) if event["ph"] in "stf" else ""
        # Marks stand for the time and for an arrow's number, which may also be the end of its name.
        marked = event | {"ts": "\0"}
        if number:
            marked |= {"id": "\1"} | ({"name": name.removesuffix(number) + "\1"} if name.endswith(number) else {})
        parts.append((json.dumps(marked), _nanoseconds(time), int(number) if number.isdecimal() else -1))
    size = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for copy in range(copies):
            texts = (_moved(text, time + copy * timeline.length, number, copy) for text, time, number in parts)
            size += file.write(("[" if not copy else ", ") + ", ".join(texts))
        size += file.write(", " + ", ".join(map(json.dumps, timeline.names)) + "]")
    return copies * len(parts) + len(timeline.names), size


def _moved(text: str, time: int, number: int, copy: int) -> str:
    text = text.replace("\\u0000", f"{time // 1000}.{time % 1000:03d}")
    return text.replace("\\u0001", str(number + 1_000_000_007 * copy)) if number >= 0 else text


def _nanoseconds(time: str) -> int:
    whole, _, fraction = time.partition(".")
    return int(whole) * 1000 + int((fraction + "000")[:3])


def _made() -> Iterator[dict[str, Any]]:
    """Make 2,000 operators: a call, its task, an arrow between them, and a value of a counter."""
    for number in range(2000):
        begin, run = (f"{_BEGIN + 80 * number + late}.125" for late in (0, 30))
        call, task = {"pid": _HOST, "tid": 1}, {"pid": _DEVICE, "tid": 2}
        arrow = {"name": f"HostToDevice{number}", "id": str(number), "cat": "HostToDevice"}
        yield {"ph": "X", "name": f"aclnn{number % 60}", "ts": begin, "dur": 20.25, "cat": "cpu_op", **call}
        yield {"ph": "X", "name": f"MatMul{number % 60}", "ts": run, "dur": 40.5, **task}
        yield {"ph": "s", "ts": begin, **arrow, **call}
        yield {"ph": "f", "bp": "e", "ts": run, **arrow, **task}
        yield {"ph": "C", "name": "QoS", "ts": run, "pid": _QOS, "tid": 0, "args": {"value": number % 7}}
    for pid, name in ((_HOST, "Python"), (_DEVICE, "Ascend Hardware"), (_QOS, "QoS")):
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
