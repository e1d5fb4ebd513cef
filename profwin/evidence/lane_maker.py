"""Making lanes of a run: what its processes did and waited for, device by device, on one time axis."""

from __future__ import annotations

from re import findall

from profwin.evidence.alignment import Alignment
from profwin.evidence.lanes import Cost, Lane, News, Work
from profwin.evidence.run import process_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.evidence.incidents import Sync
    from profwin.evidence.run import Collection, Interval, Process, Run

__all__ = ["make_lanes", "rank_label"]


def rank_label(process: Process, role: str | None = None) -> str:
    """Return who a process is, in words: role and rank; without a rank the pid."""
    who = role or process.role or "process"
    return f"{who} rank {process.rank}" if process.rank is not None else f"{who} pid {process.pid}"


def make_lanes(run: Run) -> list[Lane]:
    """Return the lanes of a run, sorted by attempt, host, rank and key; numbers within a name sort as numbers."""
    return _Maker(run).make()


class _Maker:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._lanes: dict[tuple[int, str, str], Lane] = {}
        self._lanes_of: dict[Process, dict[str, Lane]] = {}
        self._mover = Alignment([run]).mover

    def make(self) -> list[Lane]:
        for collection in self._run.collections:
            self._collection(collection)
        for interval in self._run.intervals:
            self._interval(interval)
        for sync in self._run.syncs:
            self._sync(sync)
        for wait in self._run.waits:
            moved = self._mover(wait.process)
            step = wait.interval.step if wait.interval else wait.collection.step if wait.collection else None
            role = wait.interval.role if wait.interval else None
            for lane in self._lanes_for(wait.process, wait.devices):
                lane.costs.append(
                    Cost(moved(wait.start), moved(wait.end), "wait", step, rank_label(wait.process, role))
                )
        self._news()
        for pause in self._run.pauses:
            moved = self._mover(pause.process)
            for lane in self._lanes_of.get(pause.process, {}).values():
                lane.paused.append((moved(pause.start), moved(pause.end or pause.process.last)))
        for lane in self._lanes.values():
            lane.finish()
        return sorted(self._lanes.values(), key=_order)

    def _lanes_for(self, process: Process, devices: tuple[str, ...]) -> list[Lane]:
        found = []
        for key in devices or (process_key(process),):
            place = process.attempt, process.boot, key
            lane = self._lanes.get(place)
            if lane is None:
                lane = self._lanes[place] = Lane(key, process.host, process.attempt)
            self._lanes_of.setdefault(process, {})[key] = lane
            found.append(lane)
        return found

    def _interval(self, interval: Interval) -> None:
        if interval.what == "span" or interval.step is None:
            return
        process = interval.process
        moved = self._mover(process)
        role = interval.role or process.role or "process"
        work = Work(
            start=moved(interval.enter),
            end=moved(interval.exit if interval.exit is not None else _last_known(interval)),
            kind="rollout" if interval.what == "window" else "training",
            name=interval.name,
            step=interval.step,
            occurrence=interval.occurrence,
            worker=rank_label(process, interval.role),
            role=role,
            rank=process.rank,
            recorded=interval.collection is not None,
            ended=interval.exit is not None,
        )
        for lane in self._lanes_for(process, interval.devices):
            lane.works.append(work)

    def _sync(self, sync: Sync) -> None:
        process, moved = sync.process, self._mover(sync.process)
        work = Work(
            start=moved(sync.start),
            end=moved(sync.end if sync.end is not None else process.last),
            kind="sync",
            name=sync.label,
            step=sync.step,
            occurrence=1,
            worker=rank_label(process, sync.role),
            role=sync.role,
            rank=process.rank,
            recorded=False,
            ended=sync.end is not None,
        )
        for lane in self._lanes_for(process, sync.devices):
            lane.works.append(work)

    def _collection(self, collection: Collection) -> None:
        moved = self._mover(collection.process)
        who = rank_label(collection.process, collection.intervals[0].role if collection.intervals else None)
        costs = []

        def cost(start: int, end: int, kind: str) -> None:
            if end > start:
                costs.append(Cost(moved(start), moved(end), kind, collection.step, who))

        first = min((each.enter for each in collection.intervals if each.enter > collection.open), default=None)
        if first is not None:
            cost(collection.open, first, "start")
        if collection.close is not None:
            took = round(collection.stop_seconds * 1e9)
            cost(max(collection.close - took, collection.open), collection.close, "stop")
        for export in collection.exports:
            # An export begins no earlier than its profiler has stopped.
            began = export.at - round(export.seconds * 1e9)
            cost(began if collection.close is None else max(began, collection.close), export.at, "export")
        for lane in self._lanes_for(collection.process, collection.devices):
            lane.costs += costs

    def _news(self) -> None:
        versions: dict[tuple[Process, str], int] = {}
        told = {sync.process.attempt for sync in self._run.syncs}
        for change in sorted(self._run.steps, key=lambda change: change.at):
            before = versions.get((change.process, change.side))
            fresh = change.version is not None and before is not None and change.version > before
            fresh = fresh and change.process.attempt not in told
            if change.version is not None:
                versions[change.process, change.side] = change.version
            moved = self._mover(change.process)
            news = News(moved(change.at), change.side, change.step, change.selected, fresh)
            for lane in self._lanes_of.get(change.process, {}).values():
                lane.news.append(news)


def _last_known(interval: Interval) -> int:
    """Return when an interval without an end is last known to have run."""
    closes = [each.close for each in interval.collections if each.close is not None]
    return max(interval.enter, closes[-1] if closes else interval.process.last)


def _order(lane: Lane) -> tuple[Any, ...]:
    ranks = [work.rank for work in lane.works if work.rank is not None]
    return lane.attempt, _natural(lane.host), not ranks, min(ranks, default=0), _natural(lane.key)


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Return a sort key under which ``gpu-10`` comes after ``gpu-9``."""
    parts = findall(r"[0-9]{1,18}|[^0-9]+", text)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
