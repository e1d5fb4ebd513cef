"""Kineto traces of any size: the events of a real one, or of one made here, again and again, one after the other."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measure import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MADE", "REAL", "Trace", "base", "write_trace"]

REAL = "hta/tests/data/nccl_parser_config/nccl_data.json.gz"
"""Below the folder of real traces."""
MADE = "made here"
EVENTS = b'"traceEvents": ['
_EVENT = re.compile(rb"\n  \{(.*?)\n  \}", re.DOTALL)
_LAYOUT = re.compile(rb"\n\s*")
_NUMBERS = re.compile(rb'("ts": |"correlation": |"External id": |"id": )(\d+)')
_TS = re.compile(rb'"ts": (\d+)')
_ONCE = (b'"ph": "M"', b'"cat": "Trace"', b'"ph": "i"')


class Trace(NamedTuple):
    """What one repetition is made of.

    Attributes:
        source: where it comes from, in words.
        head: all before the events.
        once: events that are there once: names of processes and threads, the profiler's span.
        events: the others.
        tail: all after the events.
        length: of one repetition, in microseconds.
    """

    source: str
    head: bytes
    once: list[bytes]
    events: list[bytes]
    tail: bytes
    length: int


def base() -> Trace:
    """Take the events of the real trace, or where it is absent those of one that is made here."""
    folder = Path(os.environ.get("PROFWIN_REAL_TRACES") or ROOT.parent / "shared" / "traces")
    try:
        text, source = gzip.decompress((folder / REAL).read_bytes()), Path(REAL).name
    except OSError:
        text, source = _made(), MADE
    begin = text.index(EVENTS) + len(EVENTS)
    end = text.rindex(b"\n  ],")
    once, events = [], []
    for found in _EVENT.finditer(text, begin, end):
        event = b"{" + _LAYOUT.sub(b"", found[1]) + b"}"
        (once if any(mark in event for mark in _ONCE) else events).append(event)
    times = [int(found[1]) for event in events for found in [_TS.search(event)] if found]
    return Trace(source, text[:begin], once, events, text[end:], max(times) - min(times) + 1000)


def write_trace(path: Path, trace: Trace, copies: int) -> tuple[int, int]:
    """Write the events of a trace several times, one event a line, each time later and with numbers of its own.

    Args:
        path: the file; it is compressed.
        trace: what to repeat.
        copies: how often.

    Returns:
        The number of events, and of bytes before compression.
    """
    size = 0
    with gzip.open(path, "wb", compresslevel=6) as file:
        for part in _parts(trace, copies):
            size += file.write(part)
    return len(trace.once) + copies * len(trace.events), size


def _parts(trace: Trace, copies: int) -> Iterator[bytes]:
    lengthened = re.compile(rb'"dur": (\d+)')
    longer = (copies - 1) * trace.length
    yield trace.head + b"\n"
    yield b",\n".join(
        lengthened.sub(lambda found: b'"dur": %d' % (int(found[1]) + longer), each) for each in trace.once
    )
    pieces = _NUMBERS.split(b"".join(b",\n" + each for each in trace.events))
    # Text, key, number, text, key, number, ..., text. Correlations and the like go on where they ended.
    keys, numbers = pieces[1::3], [int(number) for number in pieces[2::3]]
    ranges: dict[bytes, tuple[int, int]] = {}
    for key, number in zip(keys, numbers, strict=True):
        low, high = ranges.get(key, (number, number))
        ranges[key] = min(low, number), max(high, number)
    further = {key: high - low + 1 for key, (low, high) in ranges.items()} | {b'"ts": ': trace.length}
    steps = [further[key] for key in keys]
    for copy in range(copies):
        pieces[2::3] = [b"%d" % (number + copy * step) for number, step in zip(numbers, steps, strict=True)]
        yield b"".join(pieces)
    yield trace.tail


_ONE_TIME = """
  {
    "name": "process_name", "ph": "M", "ts": 1000.000, "pid": 7, "tid": 0,
    "args": {
      "name": "python"
    }
  },
  {
    "ph": "X", "cat": "Trace", "ts": 1000.000, "dur": 900000, "pid": "Spans", "tid": "PyTorch Profiler",
    "name": "PyTorch Profiler (0)",
    "args": {
      "Op count": 0
    }
  }"""
_FOUR = """,
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::operator_KIND", "pid": 7, "tid": 7,
    "ts": BEGIN.125, "dur": 60.250,
    "args": {
      "External id": NUMBER,"Record function id": 0, "Ev Idx": NUMBER
    }
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7,
    "ts": LAUNCH.500, "dur": 8.125,
    "args": {
      "External id": NUMBER, "cbid": 211, "correlation": NUMBER
    }
  },
  {
    "ph": "s", "id": NUMBER, "pid": 7, "tid": 7, "ts": LAUNCH.500,
    "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "void kernel_KIND<float, 4>(int, float*)", "pid": 0, "tid": 7,
    "ts": RUN.750, "dur": 40.000,
    "args": {
      "External id": NUMBER,
      "device": 0, "context": 1, "stream": 7, "correlation": NUMBER,
      "grid": [64, 1, 1], "block": [256, 1, 1]
    }
  }"""
_HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "a device"
    }
  ],
  """
_TAIL = """
  ],
  "traceName": "made.json",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1711964646000000000
}"""


def _made() -> bytes:
    """Make a trace of 40,000 events in Kineto's layout: operators, launches, flows and kernels."""
    events = [_ONE_TIME]
    for number in range(10_000):
        begin = 2000 + 80 * number
        values = {"NUMBER": number, "KIND": number % 60, "BEGIN": begin, "LAUNCH": begin + 10, "RUN": begin + 30}
        event = _FOUR
        for name, value in values.items():
            event = event.replace(name, str(value))
        events.append(event)
    return (_HEAD + EVENTS.decode() + "".join(events) + _TAIL).encode()
