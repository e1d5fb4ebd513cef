"""The owner: every collection of this process, and its end.

A process has one Kineto session, so at most one collection here uses this process's own profilers; beside it, engines
may record on devices of their own. State changes under one mutex. Starting, stopping and exporting happen outside of
it; other threads look again every millisecond, which is simple, and safe from Ctrl-C at any point.
"""

from __future__ import annotations

import threading
import time

from profwin.conflict import goes_on
from profwin.pauses import Pauses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.collection import Collection
    from profwin.errors import ProfwinError
    from profwin.interval import Interval
    from profwin.session import Session

__all__ = ["TURN", "Owner"]

TURN = 1e-3
"""Seconds after which a thread that waits for another one of this process looks again."""
_PATIENCE = 60.0


class Owner:
    """All collections of one process. Opening one is the entrance's part, ending it the owner's.

    Args:
        session: whose settings apply.

    Attributes:
        collections: those that are open or closing.
        mutex: held while one is added, removed, joined or left.
        pauses: what ``paused()`` stopped.
        ended: whether nothing may start any more.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.collections: list[Collection] = []
        self.mutex = threading.RLock()
        self.pauses = Pauses(self)
        self.ended = False
        self._closing: list[int] = []

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
        with self.mutex:
            if interval in collection.members:
                collection.members.remove(interval)
            stays = collection.purpose == "training" and self.session.settings.collect == "step"
            last = not collection.members and collection.state == "open" and not stays
        if last:
            self.close(collection, "failure" if failed else "end", raising=raising)

    def close(self, collection: Collection, reason: str, *, raising: bool = False) -> None:
        """Stop a collection, release its devices, and then write its traces.

        Idempotent; a second caller waits for the first. One that is bound to another thread is left to that thread's
        next window or stage, unless the process ends: stopped from the wrong thread, a profiler loses what it has.

        Args:
            collection: any collection of this process.
            reason: as the journal has it.
            raising: whether a failure is raised under ``strict``; else it is only recorded.
        """
        here, mine = threading.get_ident(), False
        if collection.thread_bound and collection.thread != here and collection.state == "open" and not self.ended:
            collection.due = reason
            return
        failure: ProfwinError | None = None
        self._closing.append(here)
        try:
            try:
                with self.mutex:
                    if collection.state == "open":
                        collection.state, collection.thread, mine = "closing", here, True
                if mine:
                    failure = collection.stop(reason)
            finally:
                if mine:
                    try:
                        collection.stop(reason)  # Ctrl-C may have come before all was stopped
                    finally:
                        with self.mutex:
                            collection.state = "closed"
                            self.collections.remove(collection)
                        self.session.position.recording_changed()
            if mine:
                failure = collection.export() or failure
        finally:
            self._closing.remove(here)
        while not mine and collection.state == "closing" and collection.thread != here:
            time.sleep(TURN)
        if failure is not None:
            self.session.complain(failure, raising=raising)

    def close_due(self) -> None:
        """Close what other threads asked this one to close."""
        here = threading.get_ident()
        for collection in list(self.collections):
            if collection.due is not None and collection.thread == here:
                self.close(collection, collection.due)

    def close_all(self, reason: str) -> None:
        """Close whatever is open, in whichever thread it was opened."""
        for collection in list(self.collections):
            self.close(collection, reason)

    def end(self, reason: str) -> None:
        """Close whatever is open, let nothing start any more, and wait for other threads that start, stop or export.

        An interpreter that ends while a torch profiler records crashes, and one that ends during an export leaves half
        a file; daemon threads do both (measured, torch 2.13).
        """
        here, deadline = threading.get_ident(), time.monotonic() + _PATIENCE
        with self.mutex:
            self.ended = True
        while time.monotonic() < deadline:
            at_work = [*self.session.entrance.starting.values(), *self._closing]
            if all(thread == here for thread in at_work):
                break
            time.sleep(TURN)
        self.close_all(reason)

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
