"""The timeline: one file with what the journals of runs say, and below it what the profilers recorded."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass, field
from functools import partial

from profwin.evidence.alignment import EPOCH, Alignment
from profwin.evidence.chrome import JsonWriter
from profwin.evidence.formats.names import name_of
from profwin.evidence.model import Clock
from profwin.evidence.perfetto import ProtobufWriter
from profwin.evidence.rows import APART, device_rows, draw, process_name, process_rows
from profwin.evidence.run import load
from profwin.evidence.runs import find_runs, prefix_of
from profwin.evidence.target import Target
from profwin.evidence.traces import Drawing, Group
from profwin.evidence.walk import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from profwin.evidence.model import Slice
    from profwin.evidence.rows import Wanted
    from profwin.evidence.run import Collection, Process, Run
    from profwin.evidence.tracks import Writer
    from profwin.evidence.walk import Found

__all__ = ["FORMATS", "Timeline", "draw_timeline"]

FORMATS: dict[str, type[ProtobufWriter | JsonWriter]] = {"protobuf": ProtobufWriter, "json": JsonWriter}


@dataclass
class Timeline:
    """What became of it.

    Attributes:
        records: how many records of journals were to be drawn.
        read: how many events of traces were read.
        written: how many of both were written.
        files: of each trace that was drawn: path, events.
        other_steps: how many traces are of other steps than that which was asked for.
        left_out: path and reason of each trace that should be on it and is not, or not to its end.
        notes: sentences on clocks, and on what stands apart since its clock cannot be aligned.
        clocks: of the hosts whose clock was measured: how exactly it is known, in seconds.
        size: of the file, in bytes.
    """

    records: int = 0
    read: int = 0
    written: int = 0
    files: dict[str, int] = field(default_factory=dict)
    other_steps: int = 0
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    clocks: dict[str, float] = field(default_factory=dict)
    size: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**vars(self)}


def draw_timeline(
    directory: str,
    output: str,
    *,
    step: int | None = None,
    traces: bool = True,
    kind: str = "protobuf",
    force: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Timeline:
    """Draw all runs and recordings below a directory on one time axis, and write the file.

    Memory depends on the journals and on the number of different names and tracks, not on the number of events.

    Args:
        directory: what to read.
        output: the file; compressed if its name ends in ``.gz``.
        step: only what belongs to this step.
        traces: whether to draw what profilers recorded, and not the journals alone.
        kind: one of `FORMATS`.
        force: whether to replace the file if it is there.
        progress: called now and then with what is being read and how many events of it have been.

    Raises:
        FileExistsError: the file is there and ``force`` is false, or it is no file.
        NotADirectoryError, FileNotFoundError: there is no such directory.
        OSError: the file could not be written. Then nothing of it is there.
        ValueError: there is nothing to draw.
    """
    with os.scandir(directory):
        pass
    inputs = [found for found in walk(directory) if found.format or found.findings] if traces else []
    runs = [load(path, prefix=prefix_of(directory, path), look=False) for path in find_runs(directory)]
    with Target(output, force=force) as target:
        painter = _Painter(runs, target, FORMATS[kind], step, progress)
        painter.draw_journals()
        painter.draw_traces(directory, inputs)
        timeline = painter.finish()
        if not timeline.written:
            raise ValueError(_nothing(timeline, step))
        target.finish()
        timeline.size = target.size
    return timeline


def _nothing(timeline: Timeline, step: int | None) -> str:
    where = "" if step is None else f" of step {step}"
    first = next((f"; left out: {path}: {why}" for path, why in timeline.left_out.items()), "")
    return f"there is nothing{where} to draw{first}"


class _Painter:
    """Put runs and recordings on one timeline."""

    def __init__(
        self, runs: Sequence[Run], target: Target, kind: type[ProtobufWriter | JsonWriter],
        step: int | None, progress: Callable[[str, int], None] | None,
    ) -> None:  # fmt: skip
        self._runs, self._step, self._progress = runs, step, progress
        self._alignment = Alignment(runs)
        self._make: Callable[[int], Writer] = partial(kind, target.write)
        self._writer: Writer | None = None
        self._directory = target.directory
        self._wanted = _wanted(runs, self._alignment, step)
        self._groups: dict[Process, Group] = {}
        self._timeline = Timeline()

    def draw_journals(self) -> None:
        """Draw the devices' locks, and each process's rows."""
        if not self._runs:
            return
        writer = self._writer = self._make(self._alignment.origin)
        alignment, count = self._alignment, 0
        several = len(self._runs) > 1
        for run in self._runs:
            hosts = {process.clock.boot: process for process in run.processes}
            rows = device_rows(run, alignment, self._wanted)
            for boot, process in hosts.items():
                of_host = [row for (where, _key), row in sorted(rows.items()) if where == boot]
                if of_host:
                    name = "devices" + (f" of {alignment.host(process) or boot}" if len(hosts) > 1 or several else "")
                    name += f", run {run.name}" if several else ""
                    name = APART + name if alignment.is_apart(process) else name
                    count += sum(len(row.events) for row in of_host)
                    draw(writer, writer.group(name, rank=-1), of_host)
            several_hosts = several or len(hosts) > 1
            of_processes = process_rows(run, alignment, self._wanted)
            for process in sorted(run.processes, key=_order):
                group = writer.group(process_name(process, alignment, several=several_hosts), process=True)
                self._groups[process] = Group(group, {})
                count += sum(len(row.events) for row in of_processes[process])
                draw(writer, group, of_processes[process])
        self._timeline.records = count

    def draw_traces(self, root: str, inputs: Sequence[Found]) -> None:
        """Draw recordings: those that a journal names below its process, the others in groups of their own."""
        named = {
            posixpath.normpath(run.path(export.path)): collection
            for run in self._runs
            for collection in run.collections
            for export in collection.exports
            if export.path is not None
        }

        def order(each: Found) -> tuple[bool, Any, int, str]:
            collection = named.get(each.path)
            if collection is None:
                return (True, (), 0, each.path)
            return (False, _order(collection.process), collection.open, each.path)

        later = []
        for number, each in enumerate(sorted(inputs, key=order), 1):
            collection = named.get(each.path)
            reason = each.reason
            if not reason and self._step is not None:
                step = name_of(each.path).step if collection is None else collection.step
                if step is not None and step != self._step:
                    self._timeline.other_steps += 1
                    continue
                reason = "nothing says of which step it is" if step is None else ""
            if reason:
                self._timeline.left_out[each.path] = reason
            elif not self._draw_trace(root, each, collection, number):
                later.append((each, collection, number))
        for each, collection, number in later:
            self._draw_trace(root, each, collection, number, last=True)

    def finish(self) -> Timeline:
        """End the file and return what became of it."""
        if self._writer is not None:
            self._writer.close()
            self._timeline.written = self._writer.events
        self._timeline.notes = self._alignment.notes
        self._timeline.clocks = self._alignment.by_host()
        return self._timeline

    def _draw_trace(
        self, root: str, each: Found, collection: Collection | None, number: int, *, last: bool = False
    ) -> bool:
        """Draw a recording; return false if it is to be drawn after all others, since its clock is not known."""
        assert each.format is not None
        failures: list[str] = []
        progress = self._progress
        if progress is not None:
            progress(each.path, 0)  # of many small files none is long enough to be heard of otherwise
        drawing = Drawing(self._directory, number, None if progress is None else lambda read: progress(each.path, read))
        try:
            drawing.take(_guarded(each.format.slices(root, each.path), failures))
            known = drawing.end >= EPOCH
            if drawing.read and not known and not last:
                return False
            if drawing.read:
                process = None if collection is None else collection.process
                clock = Clock("wall" if known else "unknown")
                shift, apart = self._alignment.place(clock, process, drawing.begin, drawing.end, each.path)
                if self._writer is None:
                    self._writer = self._make(drawing.begin + shift)
                drawing.draw(self._writer, self._group(self._writer, each.path, process, apart=apart), shift)
        finally:
            drawing.close()
        self._timeline.read += drawing.read
        self._timeline.files[each.path] = drawing.read
        if failures:
            self._timeline.left_out[each.path] = failures[0]
        return True

    def _group(self, writer: Writer, path: str, process: Process | None, *, apart: bool) -> Group:
        own = None if process is None else self._groups[process]
        if own is None or (apart and process is not None and not self._alignment.is_apart(process)):
            return Group(writer.group(APART * apart + path, process=True), {})
        return own


def _guarded(slices: Iterator[Slice], failures: list[str]) -> Iterator[Slice]:
    """Pass on what can be read; what the reader then fails with is kept apart from failures to write."""
    try:
        yield from slices
    except OSError as error:
        failures.append(error.strerror or str(error))


def _order(process: Process) -> tuple[int, bool, int, str, int]:
    rank = process.rank
    return process.attempt, rank is None, rank or 0, process.role or "", process.begin


def _wanted(runs: Sequence[Run], alignment: Alignment, step: int | None) -> Wanted:
    """Return what says whether something is drawn: what has no step is, where it lies in the time of the step."""
    if step is None:
        return lambda _step, _start, _end: True
    times = []
    for run in runs:
        for each in run.collections:
            if each.step == step:
                moved = alignment.mover(each.process)
                times += [moved(each.open), moved(each.open if each.close is None else each.close)]
        for interval in run.intervals:
            if interval.step == step:
                moved = alignment.mover(interval.process)
                times += [moved(interval.enter), moved(interval.enter if interval.exit is None else interval.exit)]
    first, last = (min(times), max(times)) if times else (1, 0)
    return lambda its, start, end: its == step if its is not None else start <= last and end >= first
