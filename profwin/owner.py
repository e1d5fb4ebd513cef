"""The owner: what collects in this process, and who joins, waits, closes or goes without.

A process has one Kineto session, so at most one collection here uses this process's own profilers; beside it, engines
may record on devices of their own. All changes of state happen under one mutex; waiting for devices, starting, stopping
and exporting happen outside it, and other threads that need the outcome wait for it.
"""

from __future__ import annotations

import threading
import time

from profwin.acquisition import acquiring
from profwin.budget import WaitBudget
from profwin.collection import Collection
from profwin.conflict import goes_on, joins, meet
from profwin.errors import ProfwinError, RegistryError, WindowOverlapError
from profwin.pauses import Pauses
from profwin.registry.lock import Busy, Held
from profwin.skip import skip, turn_away
from profwin.work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import TypeAlias

    from profwin.interval import Interval
    from profwin.session import Session

    Wait: TypeAlias = Callable[[float], None]
    Entering: TypeAlias = Generator[Wait, None, None]

__all__ = ["Owner"]

_NOTED = 1e-3
"""Seconds from which a wait counts as one."""
_TURN = 0.05
"""Seconds after which a waiter looks again, at the latest."""


class Owner:
    """All collections of one process.

    Args:
        session: whose settings apply.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.collections: list[Collection] = []
        self.pauses = Pauses(self)
        self._changed = threading.Condition(threading.RLock())
        self._opening: list[tuple[Interval, int]] = []
        self._segments: dict[tuple[str, int, str, int], int] = {}
        self._budget = WaitBudget()
        self._work = Work()

    def entering(self, interval: Interval, *, blocking: bool) -> Entering:
        """Find out what records an interval, opening a collection if need be; ``interval.collection`` then says it.

        A generator, so that threads and event loops can wait in their own way: each value it yields is a function that
        waits for a change for up to so many seconds; the caller calls it, or sleeps, and goes on.

        Args:
            interval: a window, stage or span that is about to begin.
            blocking: whether the caller waits by blocking its thread.

        Raises:
            ProfwinError: under ``strict`` only.
        """
        here = threading.get_ident()
        while True:
            with self._changed:
                verdict = self._decide(interval, here, blocking=blocking)
                if verdict is None:
                    self._opening.append((interval, here))
            if verdict is None:
                try:
                    yield from self._open(interval)
                finally:
                    with self._changed:
                        self._opening.remove((interval, here))
                        self._changed.notify_all()
                return
            if isinstance(verdict, Collection):
                if verdict is interval.collection:
                    return
                self._make_way(verdict, interval)
            elif verdict == "wait":
                yield self._wait
            else:
                turn_away(self.session, interval, verdict)
                return

    def leave(self, interval: Interval, *, failed: bool, raising: bool = False) -> None:
        """End an interval: its collection is closed with its last member, unless it goes on to the end of the step.

        Args:
            interval: what ends.
            failed: whether its body did.
            raising: whether a profiler's failure is raised under ``strict``.
        """
        collection, interval.left = interval.collection, True
        if collection is None:
            return
        with self._changed:
            if interval in collection.members:
                collection.members.remove(interval)
            stays = collection.purpose == "training" and self.session.settings.collect == "step"
            last = not collection.members and collection.state == "open" and not stays
        if last:
            self.close(collection, "failure" if failed else "end", raising=raising)

    def close(self, collection: Collection, reason: str, *, raising: bool = False) -> None:
        """Stop a collection, release its devices, and then write its traces.

        Idempotent; a second caller waits for the first.

        Args:
            collection: any collection of this process.
            reason: as the journal has it.
            raising: whether a failure is raised under ``strict``; else it is only recorded.
        """
        here = threading.get_ident()
        with self._changed:
            while collection.state == "closing" and collection.thread != here:
                self._changed.wait(_TURN)
            if collection.state != "open":
                return
            collection.state, collection.thread = "closing", here
        failure: ProfwinError | None = None
        self._work.begin(starts=False)
        try:
            try:
                failure = collection.stop(reason)
            finally:
                with self._changed:
                    collection.state = "closed"
                    self.collections.remove(collection)
                    self._changed.notify_all()
                self.session.position.recording_changed()
            failure = collection.export() or failure
        finally:
            self._work.done()
        if failure is not None:
            self.session.complain(failure, raising=raising)

    def close_all(self, reason: str) -> None:
        """Close whatever is open, in whichever thread it was opened, and let nothing be opened any more."""
        self._work.end()
        for collection in list(self.collections):
            self.close(collection, reason)
        self._work.end()

    def end_step(self, step: int | None, reason: str) -> None:
        """Close training collections that wait for the end of their step, but those that go on into the given one."""
        for collection in list(self.collections):
            on = step is not None and goes_on(collection, step, self.session.position.continues)
            if collection.purpose == "training" and not on and not collection.members:
                self.close(collection, reason)

    def end_windows(self, step: int) -> None:
        """Close windows of other steps than the given one, which begins here: nobody closed them."""
        for collection in list(self.collections):
            if collection.purpose == "rollout" and collection.step != step:
                self.close(collection, "stale")

    def forget(self, step: int) -> None:
        """Drop what is kept of steps before the given one."""
        for part in [part for part in list(self._segments) if part[1] < step]:
            self._segments.pop(part, None)
        self._budget.forget(step)

    def own(self) -> Collection | None:
        """Return the collection that uses this process's profilers, if one is open."""
        for collection in self.collections:
            if collection.engine is None and collection.state == "open":
                return collection
        return None

    def abandon(self) -> list[object]:
        """Forget the parent's collections in a forked child, whose owner is a new one.

        Returns:
            The profilers that the child inherited running.
        """
        left: list[object] = []
        for collection in self.collections:
            left.extend(collection.abandon())
        return left

    def _decide(
        self, interval: Interval, here: int, *, blocking: bool
    ) -> Collection | str | Busy | RegistryError | None:
        """Say what becomes of an interval: what it joined, what must go or is in the way; None to open its own."""
        if self.pauses.depth:
            return "paused"
        for other, thread in self._opening:
            if meet(interval, other.keys, ours=other.engine is None):
                # Waiting here for what this very thread is in the middle of would last for ever.
                return "self" if thread == here and blocking else "wait"
        continues = self.session.position.continues
        for collection in self.collections:
            ours = collection.engine is None
            if not meet(interval, collection.keys, ours=ours):
                continue
            if collection.state == "closing":
                return "self" if collection.thread == here else "wait"
            if collection.thread_bound and collection.thread != here:
                return "thread"
            if joins(interval, collection, continues):
                return self._join(interval, collection)
            return collection
        return None

    def _join(self, interval: Interval, collection: Collection) -> Collection | Busy | RegistryError:
        further = tuple(key for key in interval.keys if key not in collection.keys)
        if further and collection.held is not None and collection.engine is None:
            # Some devices are held already, so the rest get one try: waiting for them could wait for ever.
            try:
                busy = collection.held.extend(further)
            except RegistryError as error:
                return error
            if busy is not None:
                return busy
            collection.keys += further
        collection.members.append(interval)
        collection.through = max(collection.through, interval.step)
        interval.collection = collection
        return collection

    def _make_way(self, collection: Collection, interval: Interval) -> None:
        """Close a collection that must end before the interval begins."""
        if interval.what == "window":
            self.close(collection, "window" if collection.purpose == "training" else "stale")
            return
        if collection.purpose == "training":
            self.close(collection, "step")
            return
        error = None
        if collection.members:
            self.session.journal.write(
                "overlap", id=interval.identifier, stage=interval.name, stage_site=interval.site,
                window=collection.name, window_site=collection.site,
            )  # fmt: skip
            error = WindowOverlapError(interval.name, interval.site, collection.name, collection.site)
            self.session.warn(f"overlap {interval.site} {collection.site}", f"{error}; the window was closed there")
        self.close(collection, "handover")
        if error is not None and self.session.settings.strict:
            raise error

    def _open(self, interval: Interval) -> Entering:
        session = self.session
        problem = session.obstacle(interval)
        if problem is not None:
            skip(self.session, interval, *problem)
            return
        held: Held | None = None
        began = time.monotonic()
        if interval.keys:
            outcome = yield from acquiring(
                session, interval, self._budget.left(interval.keys, interval.step, session.wait_budget())
            )
            if not isinstance(outcome, Held):
                waited = time.monotonic() - began
                if isinstance(outcome, Busy):
                    self._budget.spend(outcome.device, interval.step, waited)
                turn_away(session, interval, outcome, waited)
                return
            held = outcome
        waited = time.monotonic() - began
        try:
            if not self._work.begin(starts=True):
                turn_away(session, interval, "ended")
                return
            try:
                self._start(interval, held, waited if waited > _NOTED else 0.0)
            finally:
                self._work.done()
        finally:
            if held is not None and interval.collection is None:
                held.release()

    def _start(self, interval: Interval, held: Held | None, waited: float) -> None:
        session = self.session
        session.hook_exit()
        whole_step = session.settings.collect == "step" and interval.what != "window"
        name, occurrence = ("step", 1) if whole_step else (interval.name, interval.occurrence)
        part = (interval.purpose, interval.step, name, occurrence)
        self._segments[part] = segment = self._segments.get(part, 0) + 1
        collection = Collection(session, interval, name=name, occurrence=occurrence, segment=segment)
        try:
            collection.start(held, waited)
            with self._changed:
                collection.state = "open"
                collection.members.append(interval)
                interval.collection = collection
                self.collections.append(collection)
        except ProfwinError as error:
            skip(self.session, interval, "engine" if interval.engine is not None else "backend", str(error), error)
            return
        finally:
            if collection.state != "open":
                collection.stop("failure")
        session.position.recording_changed()

    def _wait(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait(min(seconds, _TURN))
