"""The owner: every collection of this process, and its end.

A process has one Kineto session, so at most one collection here is recorded in this process; beside it, engines in
other processes may record on devices of their own. State changes under one mutex. Starting, stopping and exporting
happen outside of it; other threads look again every millisecond, which is simple, and safe from Ctrl-C at any point.
"""

from __future__ import annotations

import threading
import time

from profwin.closing import Closing
from profwin.conflict import goes_on
from profwin.interval import intersect
from profwin.pauses import Pauses
from profwin.waits import TURN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.collection import Collection
    from profwin.interval import Interval
    from profwin.registry.request import Ask
    from profwin.session import Session

__all__ = ["Owner"]

_PATIENCE = 60.0
_MOMENT = 1.0
"""Seconds that an engine gets at the end, whose wait budget may be used up, so that the evidence has its answer."""


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
        self._closing = Closing(self)

    def leave(self, interval: Interval, *, failed: bool, raising: bool = False) -> list[Interval]:
        """End an interval: its collection is closed with its last member, unless it goes on to the end of the step.

        Where it does not end, devices that nothing inside needs any more are free from now on.

        Args:
            interval: what ends.
            failed: whether its body did.
            raising: whether a profiler's failure is raised under ``strict``.

        Returns:
            Intervals that are to be recorded on, in a further segment: a window on several devices lost one of them.
        """
        collection, interval.left = interval.collection, True
        if collection is None:
            return []
        with self.mutex:
            over = collection.terms.limited and collection.terms.over()
            if interval in collection.members:
                collection.members.remove(interval)
            ended = collection.state != "open"
            # Who is the last to leave while somebody else closes it leaves when it is closed.
            if ended and (collection.members or not collection.detached):
                return []
            stays = collection.purpose == "training" and self.session.settings.collect == "step"
            if collection.terms.asked and not collection.members:
                reason = "asked"
            elif ended:
                reason = "end"
            elif over:
                reason = "cut"
            elif collection.members or stays:
                rollout = collection.purpose == "rollout"
                reason = "split" if rollout and interval.what == "window" and collection.spare() else ""
            else:
                reason = "failure" if failed else "end"
            members = list(collection.members)
            if not reason and collection.purpose == "rollout":
                collection.shrink()
        if reason:
            self.close(collection, reason, raising=raising)
            if reason == "asked" and collection.engine is None:
                time.sleep(TURN)  # else the next stage may be quicker than the process that asked
        return members if reason == "split" else []

    def close(
        self, collection: Collection, reason: str, *, raising: bool = False, patience: float | None = None
    ) -> None:
        """Stop a collection, release its devices, and then write its traces.

        Idempotent; a second caller waits for the first. One that is bound to another thread is left to that thread's
        next window or stage, unless the process ends: stopped from the wrong thread, a profiler loses what it has.

        Args:
            collection: any collection of this process.
            reason: as the journal has it.
            raising: whether a failure is raised under ``strict``; else it is only recorded.
            patience: seconds to wait for an engine whose stop may be called from any thread; default: the wait budget,
                but 0 in the thread whose event loop the engine needs. After that its devices stay unknown until it has
                stopped.
        """
        here = threading.get_ident()
        if collection.thread_bound and collection.thread != here and collection.state == "open" and not self.ended:
            collection.due = reason
        elif collection.detached:
            self._closing.beside(collection, reason, raising=raising, patience=patience)
        else:
            failure = self._closing.here(collection, reason)
            collection.failure = failure or collection.failure
            if failure is not None:
                self.session.complain(failure, raising=raising)

    def close_due(self) -> None:
        """Close what has recorded for as long as it may, and what other threads asked this one to close."""
        if not self.collections:
            return
        here = threading.get_ident()
        for collection in list(self.collections):
            if collection.due is not None and collection.thread == here:
                self.close(collection, collection.due)
            elif not collection.terms.limited or not collection.terms.over():
                continue
            elif collection.detached:
                # Whoever needs the devices of an engine waits for its stop himself, and an event loop without blocking.
                self.close(collection, "cut", patience=0.0)
            elif collection.engine is None or collection.thread == here:
                self.close(collection, "cut")

    def asked(self, collection: Collection, ask: Ask) -> None:
        """Let go of a collection because another process asked for its device: at once, or after the running stage."""
        self.session.journal.write(
            "asked", collection=collection.identifier, asker=ask.pid, purpose=ask.purpose, name=ask.name, step=ask.step
        )
        with self.mutex:
            collection.terms.asked = True
            # Claimed at once, or a stage of another thread could join and be cut off.
            inside = collection.engine is None and bool(collection.members)
            mine = not inside and self._closing.claim(collection)
        if mine:
            self._closing.on_request(collection)

    def close_all(self, reason: str) -> None:
        """Close whatever is open, in whichever thread it was opened; a late engine gets a moment more than training."""
        for collection in list(self.collections):
            left = self.session.budget.left(collection.keys, collection.step)
            self.close(collection, reason, patience=max(left, _MOMENT))

    def end(self, reason: str) -> None:
        """Close whatever is open, let nothing start any more, and wait for other threads that start, stop or export.

        An interpreter that ends while a torch profiler records crashes, and one that ends during an export leaves half
        a file; daemon threads do both (measured, torch 2.13).
        """
        deadline = time.monotonic() + _PATIENCE
        with self.mutex:
            self.ended = True
        self._wait_for_others(deadline)
        self.close_all(reason)
        self._wait_for_others(deadline)  # an engine that was late has stopped meanwhile, and its traces are being moved

    def _wait_for_others(self, deadline: float) -> None:
        here = threading.get_ident()
        while time.monotonic() < deadline:
            at_work = [*self.session.entrance.starting.values(), *self._closing.at_work]
            if all(thread in (here, 0) for thread in at_work):  # an engine that is late is waited for by `close_all`
                break
            time.sleep(TURN)

    def end_step(self, step: int | None, reason: str) -> None:
        """Close training collections that wait for the end of their step, but those that go on into the given one."""
        for collection in list(self.collections):
            on = step is not None and goes_on(collection, step, self.session.position.continues)
            if collection.purpose == "training" and not on and not collection.members:
                self.close(collection, reason)

    def end_windows(self, step: int, keys: tuple[str, ...], *, ours: bool) -> None:
        """Close windows of other steps on a window's devices, which nobody closed; it is unselected, or would do so.

        Args:
            step: of the window that begins.
            keys: its devices, or what stands for them.
            ours: whether it would be recorded in this process.
        """
        for collection in list(self.collections):
            shared = (ours and collection.own) or intersect(keys, collection.keys, collection.elsewhere)
            if collection.purpose == "rollout" and collection.step != step and shared:
                # Nobody may wait for it: an event loop could be what its engine needs.
                self.close(collection, "stale", patience=0.0)

    def own(self) -> Collection | None:
        """Return the collection that is recorded in this process, if one is open."""
        for collection in self.collections:
            if collection.own and collection.state == "open":
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
