"""Account: one journal's records put together into what its process did."""

from __future__ import annotations

import sys

from profwin.evidence import incidents, records, run
from profwin.evidence.file import size_in
from profwin.evidence.model import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Account"]

LONGEST_TEXT = 2000
MOST_UNEVEN = 1000


class Account:
    """Follow the records of one journal.

    Args:
        found: the run that what is found is added to.
        journal: the file, relative to the run's directory.
        head: the first record.
        report: as for `profwin.evidence.lines.read_records`; here for records that contradict each other.
        look: whether to look for the traces.
    """

    def __init__(
        self,
        found: run.Run,
        journal: str,
        head: records.Process,
        report: Callable[[str, int, str], None],
        *,
        look: bool,
    ) -> None:
        offset = head.wall - head.t
        self._run, self._report, self._look, self._offset = found, report, look, offset
        self.process = run.Process(
            journal, _text(head.run), head.attempt, head.pid, head.start, _text(head.host), _text(head.boot), head.uid,
            None if head.role is None else _text(head.role), head.rank, head.world, head.root, head.schema,
            head.settings, Clock("monotonic", head.host, head.boot), offset, head.wall, head.wall,
        )  # fmt: skip
        found.processes.append(self.process)
        self._collections: dict[int, run.Collection] = {}
        self._intervals: dict[int, run.Interval] = {}
        # Those come before the entry of their interval.
        self._skips: dict[int, list[run.Skip]] = {}
        self._asks: dict[int, list[incidents.Ask]] = {}
        self._waits: dict[int, list[run.Wait]] = {}
        self._marks: list[incidents.Mark] = []
        self._pauses: list[incidents.Pause] = []
        self._syncs: dict[int, incidents.Sync] = {}
        self._steps: dict[str, int | None] = {}  # of each side the step that it is in, if it is profiled
        self._acts: dict[type, Callable[[Any, int, int], None]] = {
            records.Step: self._step, records.Enter: self._enter, records.Exit: self._exit, records.Open: self._open,
            records.Close: self._close, records.Join: self._join, records.Skip: self._skip,
            records.Export: self._export, records.Overlap: self._overlap, records.Ask: self._ask,
            records.Asked: self._asked, records.Mark: self._mark, records.Confirmed: self._confirmed,
            records.Remote: self._remote, records.Lost: self._lost, records.Sync: self._sync,
            records.Synced: self._synced, records.Uneven: self._uneven, records.Clock: self._clock,
            records.Paused: self._paused, records.Resumed: self._resumed, records.Finding: self._note,
            records.End: self._end, records.Process: self._process,
        }  # fmt: skip

    def follow(self, record: records.Record, number: int) -> None:
        """Take one record; ``number`` is that of its line."""
        at = record.t + self._offset
        self.process.last = max(self.process.last, at)
        self._acts[type(record)](record, at, number)

    def _step(self, record: records.Step, at: int, _number: int) -> None:
        change = incidents.StepChange(
            self.process, at, _text(record.side), record.step, record.selected, record.version, record.generated_with
        )
        self._run.steps.append(change)
        self._steps[change.side] = change.step if change.selected else None

    def _enter(self, record: records.Enter, at: int, number: int) -> None:
        if record.id in self._intervals:
            self._report("contradiction", number, f"interval {record.id} is entered twice")
            return
        interval = run.Interval(
            self.process, record.id, _text(record.what), _text(record.name), record.step, record.occurrence,
            None if record.role is None else _text(record.role), at, record.thread,
            None if record.site is None else _text(record.site), _texts(record.devices),
            token=None if record.token is None else _text(record.token),
        )  # fmt: skip
        self._intervals[record.id] = interval
        self._run.intervals.append(interval)
        if record.collection is not None:
            self._record(interval, record.collection, number)
        for before in (
            *self._skips.pop(record.id, ()),
            *self._asks.pop(record.id, ()),
            *self._waits.pop(record.id, ()),
        ):
            before.interval = interval
            if isinstance(before, run.Skip) and interval.skip is None:
                interval.skip = before

    def _record(self, interval: run.Interval, identifier: int, number: int) -> None:
        collection = self._collections.get(identifier)
        if collection is None:
            self._report("contradiction", number, f"collection {identifier} records, but was never opened")
            return
        if interval.collection is None:
            interval.collection = collection
        interval.collections.append(collection)
        collection.intervals.append(interval)

    def _exit(self, record: records.Exit, at: int, number: int) -> None:
        interval = self._intervals.get(record.id)
        if interval is None or interval.exit is not None:
            self._report("contradiction", number, f"interval {record.id} ends, but is not running")
            return
        interval.exit, interval.status = at, _text(record.status)
        interval.error = None if record.error is None else _text(record.error)
        if at < interval.enter:
            self._report("contradiction", number, f"interval {record.id} ends before it begins")

    def _open(self, record: records.Open, at: int, number: int) -> None:
        if record.collection in self._collections:
            self._report("contradiction", number, f"collection {record.collection} is opened twice")
            return
        collection = run.Collection(
            self.process, record.collection, _text(record.purpose), _text(record.name), record.step, record.occurrence,
            record.segment, _texts(record.backends), _texts(record.devices), at, record.waited, record.version,
            unlocked=record.unlocked,
        )  # fmt: skip
        self._collections[record.collection] = collection
        self._run.collections.append(collection)
        if record.waited:
            start = at - round(record.waited * 1e9)
            self._run.waits.append(
                run.Wait(self.process, start, at, "recorded", collection.devices, None, collection=collection)
            )

    def _close(self, record: records.Close, at: int, number: int) -> None:
        collection = self._collections.get(record.collection)
        if collection is None or collection.close is not None:
            self._report("contradiction", number, f"collection {record.collection} is closed, but is not open")
            return
        collection.close, collection.reason, collection.stop_seconds = at, _text(record.reason), record.seconds
        collection.error = None if record.error is None else _text(record.error)
        if at < collection.open:
            self._report("contradiction", number, f"collection {record.collection} is closed before it is opened")

    def _join(self, record: records.Join, _at: int, number: int) -> None:
        interval = self._intervals.get(record.id)
        if interval is None:
            self._report("contradiction", number, f"interval {record.id} is joined, but was never entered")
        else:
            self._record(interval, record.collection, number)

    def _skip(self, record: records.Skip, at: int, _number: int) -> None:
        interval = self._intervals.get(record.id)
        skip = run.Skip(
            self.process, at, _text(record.reason), None if record.device is None else _text(record.device),
            None if record.holder is None else _text(record.holder), record.waited,
            None if record.detail is None else _text(record.detail), interval,
        )  # fmt: skip
        self._run.skips.append(skip)
        if interval is None:
            self._skips.setdefault(record.id, []).append(skip)
        elif interval.skip is None:
            interval.skip = skip
        if record.waited:
            start, devices = at - round(record.waited * 1e9), (skip.device,) if skip.device else ()
            wait = run.Wait(self.process, start, at, skip.reason, devices, skip.holder, interval)
            self._run.waits.append(wait)
            if interval is None:
                self._waits.setdefault(record.id, []).append(wait)

    def _export(self, record: records.Export, at: int, number: int) -> None:
        collection = self._collections.get(record.collection)
        if collection is None:
            self._report("contradiction", number, f"collection {record.collection} is exported, but was never opened")
            return
        export = run.Export(
            _text(record.backend), record.path, record.bytes, record.seconds,
            None if record.error is None else _text(record.error), at, group_timeout=record.group_timeout,
        )  # fmt: skip
        if record.path is not None and self._look:
            export.found = size_in(self._run.directory, record.path)
        collection.exports.append(export)

    def _overlap(self, record: records.Overlap, at: int, _number: int) -> None:
        self._run.overlaps.append(
            incidents.Overlap(self.process, at, record.stage, record.stage_site, record.window, record.window_site)
        )

    def _ask(self, record: records.Ask, at: int, _number: int) -> None:
        holder = None if record.holder is None else _text(record.holder)
        ask = incidents.Ask(self.process, at, _text(record.device), holder, _text(record.answer))
        self._asks.setdefault(record.id, []).append(ask)
        self._run.asks.append(ask)

    def _asked(self, record: records.Asked, at: int, _number: int) -> None:
        collection = self._collections.get(record.collection)
        self._run.asked.append(
            incidents.Asked(self.process, at, collection, record.asker, record.purpose, record.name, record.step)
        )

    def _mark(self, record: records.Mark, at: int, _number: int) -> None:
        mark = incidents.Mark(self.process, at, _texts(record.devices), record.processes)
        self._marks.append(mark)
        self._run.marks.append(mark)

    def _confirmed(self, record: records.Confirmed, at: int, _number: int) -> None:
        ours = [mark for mark in self._marks if set(mark.devices) == set(record.devices)]
        for mark in ours:
            mark.confirmed = at
            self._marks.remove(mark)
        if not ours:  # another process's, found when the device was taken
            self._run.proofs.append(incidents.Mark(self.process, at, _texts(record.devices), record.processes, at))

    def _remote(self, record: records.Remote, at: int, _number: int) -> None:
        collection = self._collections.get(-1 if record.collection is None else record.collection)
        boot, host, run_name = (
            None if each is None else _text(each) for each in (record.boot, record.host, record.run)
        )
        self._run.remotes.append(
            incidents.Remote(
                self.process, at, _text(record.token), collection, _text(record.engine), _text(record.status),
                record.pid, record.start, boot, host, run_name,
            )
        )  # fmt: skip

    def _lost(self, record: records.Lost, at: int, _number: int) -> None:
        collection = self._collections.get(-1 if record.collection is None else record.collection)
        self._run.lost.append(incidents.Lost(self.process, at, _text(record.device), collection))

    def _sync(self, record: records.Sync, at: int, number: int) -> None:
        if record.id in self._syncs:
            self._report("contradiction", number, f"weight sync {record.id} begins twice")
            return
        steps = (self._steps.get(record.side), *self._steps.values())
        sync = incidents.Sync(
            self.process, record.version, _text(record.name), _text(record.side), _texts(record.devices),
            next((step for step in steps if step is not None), None), at,
        )  # fmt: skip
        self._syncs[record.id] = sync
        self._run.syncs.append(sync)

    def _synced(self, record: records.Synced, at: int, number: int) -> None:
        sync = self._syncs.get(record.id)
        if sync is None or sync.end is not None:
            self._report("contradiction", number, f"weight sync {record.id} ends, but is not running")
            return
        sync.end, sync.status = at, _text(record.status)
        sync.error = None if record.error is None else _text(record.error)
        if at < sync.start:
            self._report("contradiction", number, f"weight sync {record.id} ends before it begins")

    def _uneven(self, record: records.Uneven, _at: int, _number: int) -> None:
        if len(self._run.uneven) < MOST_UNEVEN:
            self._run.uneven.add((_text(record.what), _text(record.name)))

    def _clock(self, record: records.Clock, _at: int, _number: int) -> None:
        boot, host = _text(record.boot), _text(record.host)
        self._run.clocks.append(
            incidents.Estimate(self.process, record.at, boot, host, record.offset, record.uncertainty)
        )

    def _paused(self, _record: records.Paused, at: int, _number: int) -> None:
        pause = incidents.Pause(self.process, at)
        self._pauses.append(pause)
        self._run.pauses.append(pause)

    def _resumed(self, _record: records.Resumed, at: int, number: int) -> None:
        if self._pauses:
            self._pauses.pop().end = at
        else:
            self._report("contradiction", number, "resumed, but was not paused")

    def _note(self, record: records.Finding, at: int, _number: int) -> None:
        self._run.notes.append(incidents.Note(self.process, at, _text(record.code), _text(record.detail)))

    def _end(self, record: records.End, _at: int, _number: int) -> None:
        self.process.end, self.process.dropped = _text(record.reason), record.dropped

    def _process(self, _record: records.Process, _at: int, number: int) -> None:
        self._report("contradiction", number, "a second process begins in one journal")


def _text(text: str) -> str:
    """Return a text as it is kept: bounded, and shared with its equals."""
    return sys.intern(text[:LONGEST_TEXT])


def _texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_text, texts))
