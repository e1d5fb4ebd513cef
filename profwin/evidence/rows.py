"""Rows: what journals say, as rows of a timeline: one for each device's lock, and several for each process."""

from __future__ import annotations

from dataclasses import dataclass, field

from profwin.evidence.alignment import within
from profwin.evidence.tracks import Track

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from profwin.evidence.alignment import Alignment
    from profwin.evidence.run import Collection, Interval, Process, Run, Skip
    from profwin.evidence.tracks import Value, Writer

    Wanted: TypeAlias = Callable[[int | None, int, int], bool]

__all__ = ["APART", "Row", "device_rows", "draw", "process_name", "process_rows"]

SECOND = 1_000_000_000
APART = "clock not aligned: "
"""Before the names of what stands apart."""


@dataclass
class Row:
    """A row and what is on it, in any order; ``end`` is None for what has no length."""

    name: str
    events: list[tuple[int, int | None, str, str, dict[str, Value]]] = field(default_factory=list)

    def add(self, start: int, end: int | None, text: str, category: str, **data: Value | None) -> None:
        """Add an event; data that is None is left out."""
        known = {key: value for key, value in data.items() if value is not None}
        self.events.append((start, end, text, category, known))


def draw(writer: Writer, group: int, rows: Sequence[Row]) -> int:
    """Draw rows in a group, those that are not empty; return how many events."""
    count = 0
    for rank, row in enumerate(rows):
        if not row.events:
            continue
        track = Track(writer, row.name, group, rank)
        # The longer first, so that it holds the shorter; instants last, so that their slice has begun.
        row.events.sort(key=lambda each: (each[0], each[1] is None, -(each[1] or 0)))
        for start, end, name, category, data in row.events:
            if end is None:
                track.instant(start, name, category, data)
            else:
                track.add(start, end, name, category, data)
        track.finish()
        count += len(row.events)
    return count


def process_name(process: Process, alignment: Alignment, *, several: bool) -> str:
    """Name a process; with the run and the host where there are several."""
    name = process.label + (f", attempt {process.attempt}" if process.attempt else "")
    if several:
        name += f", {alignment.host(process) or 'unknown host'}, run {process.run}"
    return APART + name if alignment.is_apart(process) else name


def device_rows(run: Run, alignment: Alignment, wanted: Wanted) -> dict[tuple[str, str], Row]:
    """Return who held the lock of each device, by boot and key; where a process stands for its device, by that."""
    rows: dict[tuple[str, str], Row] = {}
    for collection in run.collections:
        process = collection.process
        start, end, ended = _span(collection, alignment)
        if not wanted(collection.step, start, end):
            continue
        for key in collection.keys:
            rows.setdefault((process.clock.boot, key), Row(key)).add(
                start, end, f"{collection.name} (step {collection.step}){ended}", collection.purpose,
                holder=process.label, **_about(collection),
            )  # fmt: skip
    for mark in run.marks:
        moved = alignment.mover(mark.process)
        start, end = moved(mark.at), moved(mark.process.last if mark.confirmed is None else mark.confirmed)
        if wanted(None, start, end):
            name = "engine's mark" if mark.confirmed is not None else "engine's mark, never confirmed"
            engine = " ".join(map(str, mark.processes))
            for key in mark.devices:
                rows.setdefault((mark.process.clock.boot, key), Row(key)).add(
                    start, end, name, "mark", holder=mark.process.label, engine=engine
                )
    return rows


def process_rows(run: Run, alignment: Alignment, wanted: Wanted) -> dict[Process, list[Row]]:
    """Return the rows of each process of a run."""
    names = (
        "windows", "stages", "spans", "weight syncs", "unrecorded", "waiting", "recording", "exports", "pauses",
        "notes",
    )  # fmt: skip
    rows = {process: {name: Row(name) for name in names} for process in run.processes}
    places = {"window": "windows", "stage": "stages"}
    for interval in run.intervals:
        moved = alignment.mover(interval.process)
        start = moved(interval.enter)
        end = moved(interval.process.last if interval.exit is None else interval.exit)
        if not wanted(interval.step, start, end):
            continue
        row = rows[interval.process][places.get(interval.what, "spans")]
        name = interval.name if interval.exit is not None else f"{interval.name} (never ended)"
        row.add(start, end, name, interval.what, **_about_interval(interval))
        if interval.skip is not None:
            _add_skip(rows[interval.process]["unrecorded"], interval.skip, start, end)
    for skip in run.skips:
        at = alignment.mover(skip.process)(skip.at)
        if skip.interval is None and wanted(None, at, at):
            _add_skip(rows[skip.process]["unrecorded"], skip, at, None)
    for wait in run.waits:
        moved = alignment.mover(wait.process)
        start, end = moved(wait.start), moved(wait.end)
        whose = wait.interval or wait.collection
        if wanted(whose.step if whose else None, start, end):
            rows[wait.process]["waiting"].add(
                start, end, f"waits for {', '.join(wait.devices) or 'a device'}", "wait",
                outcome=wait.outcome, holder=wait.holder,
            )  # fmt: skip
    for sync in run.syncs:
        moved = alignment.mover(sync.process)
        start, end = moved(sync.start), moved(sync.process.last if sync.end is None else sync.end)
        if wanted(sync.step, start, end):
            rows[sync.process]["weight syncs"].add(
                start, end, sync.label + ("" if sync.end is not None else " (never ended)"), "sync",
                weights=sync.version, windows=sync.name, side=sync.side, step=sync.step, status=sync.status,
                error=sync.error, devices=" ".join(sync.devices),
            )  # fmt: skip
    for collection in run.collections:
        _add_collection(rows[collection.process], collection, alignment, wanted)
    _add_notes(run, rows, alignment, wanted)
    return {process: list(each.values()) for process, each in rows.items()}


def _add_skip(row: Row, skip: Skip, start: int, end: int | None) -> None:
    name = skip.reason + (f": {skip.interval.name}" if skip.interval else "")
    row.add(start, end, name, "skip", device=skip.device, holder=skip.holder, waited=skip.waited, detail=skip.detail)


def _add_collection(rows: dict[str, Row], collection: Collection, alignment: Alignment, wanted: Wanted) -> None:
    start, end, ended = _span(collection, alignment)
    if not wanted(collection.step, start, end):
        return
    rows["recording"].add(start, end, collection.name + ended, collection.purpose, **_about(collection))
    for export in collection.exports:
        at = alignment.mover(collection.process)(export.at)
        rows["exports"].add(
            at - int(export.seconds * SECOND), at, "export" if export.error is None else "failed export", "export",
            path=export.path, bytes=export.size, backend=export.backend, error=export.error, step=collection.step,
        )  # fmt: skip


def _add_notes(run: Run, rows: dict[Process, dict[str, Row]], alignment: Alignment, wanted: Wanted) -> None:
    def note(process: Process, at: int, text: str, step: int | None = None, **data: Value | None) -> None:
        at = alignment.mover(process)(at)
        if wanted(step, at, at):
            rows[process]["notes"].add(at, None, text, "note", **data)

    for pause in run.pauses:
        moved = alignment.mover(pause.process)
        start, end = moved(pause.start), moved(pause.process.last if pause.end is None else pause.end)
        if wanted(None, start, end):
            rows[pause.process]["pauses"].add(start, end, "paused", "pause")
    for change in run.steps:
        generated = " ".join(map(str, change.generated_with)) or None
        note(
            change.process, change.at, f"{change.side} step {change.step}", change.step, selected=change.selected,
            version=change.version, generated_with=generated,
        )  # fmt: skip
    for ask in run.asks:
        step = ask.interval.step if ask.interval else None
        note(ask.process, ask.at, f"asks for {ask.device}", step, holder=ask.holder, answer=ask.answer)
    for asked in run.asked:
        note(
            asked.process,
            asked.at,
            f"asked to let go by {asked.asker}",
            asked.step,
            purpose=asked.purpose,
            name=asked.name,
        )
    for each in run.overlaps:
        text = f"{each.stage} began inside {each.window}"
        note(each.process, each.at, text, site=each.stage_site, window=each.window_site)
    for lost in run.lost:
        note(lost.process, lost.at, f"lock file lost: {lost.device}")
    for clock in run.clocks:
        text = f"measured the clock of {clock.host or 'another host'}: {within(clock.uncertainty)}"
        note(clock.process, clock.at + clock.process.offset, text, offset=clock.offset, uncertainty=clock.uncertainty)
    for said in run.notes:
        note(said.process, said.at, said.code, detail=said.detail)


def _span(collection: Collection, alignment: Alignment) -> tuple[int, int, str]:
    moved = alignment.mover(collection.process)
    if collection.close is None:
        return moved(collection.open), moved(collection.process.last), " (never closed)"
    return moved(collection.open), moved(collection.close), ""


def _about(collection: Collection) -> dict[str, Value | None]:
    return {
        "step": collection.step, "occurrence": collection.occurrence, "segment": collection.segment,
        "ended_by": collection.reason, "error": collection.error, "weights": collection.version,
        "backends": " ".join(collection.backends), "devices": " ".join(collection.devices),
        "waited_seconds": collection.waited, "stop_seconds": collection.stop_seconds,
    }  # fmt: skip


def _about_interval(interval: Interval) -> dict[str, Value | None]:
    return {
        "step": interval.step, "occurrence": interval.occurrence, "status": interval.status, "error": interval.error,
        "recorded": bool(interval.collections), "devices": " ".join(interval.devices), "site": interval.site,
        "thread": interval.thread, "role": interval.role,
    }  # fmt: skip
