"""The entrance: what becomes of a window or stage that begins: it joins, waits, makes others close, or goes without."""

from __future__ import annotations

import threading
from functools import partial

from profwin import clock
from profwin.acquisition import acquiring
from profwin.collection import Collection
from profwin.conflict import joins, meet
from profwin.errors import DeviceBusyError, ProfwinError, RegistryError, WindowOverlapError
from profwin.interval import intersect
from profwin.registry.lock import Busy, Held
from profwin.skip import failed, skip, turn_away
from profwin.waits import Job, Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import TypeAlias

    from profwin.interval import Interval
    from profwin.session import Session
    from profwin.waits import LockWait

    Entering: TypeAlias = Generator[Turn | LockWait | Job, None, None]

__all__ = ["Entrance"]

_NOTED = 1e-3
"""Seconds from which a wait counts as one."""
_TURN = Turn()
_PATIENCE = 1.0
"""Seconds that a start or stop in another thread may take, whatever the wait budget is."""
_TURNS = 250
"""How often an interval looks again for a device that another thread of this process seems to be about to use."""


class Entrance:
    """The way in, for every window and stage of this process.

    Args:
        session: whose settings apply, and whose owner gets what is opened.

    Attributes:
        starting: the intervals whose profilers are being started, and in which threads.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.starting: dict[Interval, int] = {}
        self._segments: dict[tuple[str, int, str, int], int] = {}

    def entering(self, interval: Interval, *, blocking: bool) -> Entering:
        """Find out what records an interval, opening a collection if need be; ``interval.collection`` then says it.

        A generator, so that threads and event loops can wait in their own way: each value it yields is something to
        wait for (:mod:`profwin.waits`); the caller does so in its way, and goes on. It yields work only where the
        caller does not block.

        Args:
            interval: a window or stage that is about to begin.
            blocking: whether the caller waits by blocking its thread.

        Raises:
            ProfwinError: under ``strict`` only.
        """
        here, began, turns = threading.get_ident(), clock.now(), _TURNS
        held: Held | None = None
        unlocked = interval.engine is None and not self.session.exclusive
        self.session.owner.close_due()
        try:
            while True:
                with self.session.owner.mutex:
                    verdict = self._decide(interval, here, blocking=blocking)
                    if verdict is None and (held is not None or unlocked or not interval.keys):
                        self.starting[interval] = here
                if verdict is None and interval in self.starting:
                    locks, held, waited = held, None, clock.now() - began
                    if interval.engine is None or blocking or not interval.engine.detached:
                        self._start(interval, locks, waited)
                    else:
                        start = partial(self._start, interval, locks, waited)
                        yield from self._work(start, partial(self._undo, interval), beside=True)
                    return
                if verdict is None:
                    # The devices come first, without a claim on this process: what runs here on others need not wait.
                    if (held := (yield from self._acquire(interval, last=turns == 0))) is None:
                        if interval.refused:
                            return
                        turns -= 1
                        yield _TURN
                    continue
                if verdict is interval.collection:
                    return
                if held is not None:
                    held.release()
                    held = None
                if (yield from self._deal_with(verdict, interval, clock.now() - began, blocking=blocking)):
                    return
        finally:
            self.starting.pop(interval, None)
            if held is not None:
                held.release()

    def forget(self, step: int) -> None:
        """Drop what is kept of steps before the given one."""
        for part in [part for part in list(self._segments) if part[1] < step]:
            self._segments.pop(part, None)
        self.session.budget.forget(step)

    def _decide(
        self, interval: Interval, here: int, *, blocking: bool
    ) -> Collection | str | Busy | RegistryError | None:
        """Say what becomes of an interval: what it joined, what must go or is in the way; None to open its own."""
        if self.session.owner.ended:
            return "ended"
        if self.session.owner.pauses.depth:
            return "paused"
        for other, thread in self.starting.items():
            if meet(interval, other.keys, other.elsewhere, ours=other.own):
                # Waiting here for what this very thread is in the middle of would last for ever.
                needed = thread == here or (other.engine is not None and other.engine.needs(here))
                return "self" if needed and blocking else "wait"
        if not self.session.owner.collections:
            return None  # as it nearly always is
        continues, own, keys = self.session.position.continues, interval.own, interval.keys or interval.elsewhere
        for collection in self.session.owner.collections:
            # What `meet` says, without its call: there may be an open window for each of many engines.
            if not (own and collection.own) and not intersect(keys, collection.keys, collection.elsewhere):
                continue
            needed = blocking and collection.engine is not None and collection.engine.needs(here)
            if collection.state == "closing":
                if needed or (collection.thread == here and not collection.detached):
                    return "self"
                return collection if collection.detached else "wait"
            if collection.thread_bound and collection.thread != here:
                return "thread"
            if joins(interval, collection, continues):
                return self._join(interval, collection)
            return "thread" if needed else collection
        return None

    def _join(self, interval: Interval, collection: Collection) -> Collection | Busy | RegistryError:
        further = tuple(key for key in interval.keys if key not in collection.keys)
        if further and collection.engine is None and not self.session.exclusive:
            collection.keys += further
        elif further and collection.own:
            try:
                problem = collection.extend(further)
            except RegistryError as error:
                return error
            if problem is not None:
                return problem
            collection.terms.offer()  # the earlier offer is without these devices
        collection.members.append(interval)
        collection.through = max(collection.through, interval.step)
        collection.terms.limit(interval)
        interval.collection = collection
        return collection

    def _make_way(self, collection: Collection, interval: Interval) -> None:
        """Close a collection that must end before the interval begins."""
        if interval.what == "window":
            self.session.owner.close(collection, "window" if collection.purpose == "training" else "stale")
            return
        if collection.purpose == "training":
            self.session.owner.close(collection, "step")
            return
        error = None
        if collection.members:
            self.session.journal.write(
                "overlap", id=interval.identifier, stage=interval.name, stage_site=interval.site,
                window=collection.name, window_site=collection.site,
            )  # fmt: skip
            error = WindowOverlapError(interval.name, interval.site, collection.name, collection.site)
            self.session.warn(f"overlap {interval.site} {collection.site}", f"{error}; the window was closed there")
        self.session.owner.close(collection, "handover")
        if error is not None and self.session.settings.strict:
            raise error

    def _acquire(self, interval: Interval, *, last: bool) -> Generator[LockWait, None, Held | None]:
        """Take an interval's devices, or turn it away; neither if another thread of this process was just quicker."""
        began = clock.now()
        outcome = yield from acquiring(self.session, interval)
        waited = clock.now() - began
        if isinstance(outcome, Held):
            if waited > _NOTED:
                self.session.budget.spend(interval.keys, interval.step, waited)
            return outcome
        if isinstance(outcome, Busy):
            if outcome.reason == "self" and not last:
                return None
            self.session.budget.spend((outcome.device,), interval.step, waited)
            if interval.without(outcome):
                return None
        interval.refused = True
        turn_away(self.session, interval, outcome, waited)
        return None

    def _deal_with(
        self, verdict: Collection | str | Busy | RegistryError, interval: Interval, waited: float, *, blocking: bool
    ) -> Generator[Turn | Job, None, bool]:
        """Wait for what is in the way, or make it go; say whether the interval was turned away instead."""
        if verdict == "wait":
            if self._in_vain(interval, None, waited):
                return True
            yield _TURN
        elif not isinstance(verdict, Collection):
            turn_away(self.session, interval, verdict)
            return True
        elif verdict.state == "closing":
            if self._in_vain(interval, verdict, waited):
                return True
            yield _TURN
        else:
            make_way = partial(self._make_way, verdict, interval)
            yield from self._work(make_way, _nothing, beside=verdict.detached and not blocking)
        return False

    @staticmethod
    def _work(work: Callable[[], None], undo: Callable[[], None], *, beside: bool) -> Generator[Job, None, None]:
        """Do some work: here, or beside the caller, who may then go away before it is done: then it is undone."""
        if not beside:
            work()
            return
        job = Job(work, undo)
        try:
            yield job
        finally:
            if not job.done:
                job.abandon()
        job.result()

    def _undo(self, interval: Interval) -> None:
        self.starting.pop(interval, None)
        self.session.owner.leave(interval, failed=True)

    def _in_vain(self, interval: Interval, closing: Collection | None, waited: float) -> bool:
        """Turn an interval away that has waited long enough for another thread of this process, or for an engine."""
        left = self.session.budget.left(interval.keys, interval.step)
        if waited < (left if closing is not None else max(left, _PATIENCE)):
            return False
        self.session.budget.spend(interval.keys, interval.step, waited)
        if closing is None:
            reason, holder = "self", "another thread of this process, which is starting or stopping a recording"
        else:
            reason = "unknown"
            holder = f"{closing.describe()} of this process, whose engine has not confirmed its stop"
        keys = () if closing is None else closing.keys
        device = next((key for key in interval.keys if key in keys), interval.keys[0] if interval.keys else None)
        error = DeviceBusyError(device or "the process", holder, waited)
        skip(self.session, interval, reason, None, error, device=device, holder=holder, waited=waited)
        return True

    def _start(self, interval: Interval, held: Held | None, waited: float) -> None:
        """Open a collection for an interval; what it does not keep of the locks is released."""
        try:
            if (problem := self.session.obstacle(interval)) is not None:
                skip(self.session, interval, *problem)
                return
            self.session.hook_exit()
            self._open(interval, held, waited)
        finally:
            if held is not None and interval.collection is None:
                held.release()

    def _open(self, interval: Interval, held: Held | None, waited: float) -> None:
        session = self.session
        whole_step = session.settings.collect == "step" and interval.what != "window"
        name, occurrence = ("step", 1) if whole_step else (interval.name, interval.occurrence)
        part = (interval.purpose, interval.step, name, occurrence)
        self._segments[part] = segment = self._segments.get(part, 0) + 1
        collection = Collection(session, interval, name=name, occurrence=occurrence, segment=segment)
        try:
            collection.start(held, waited if waited > _NOTED else 0.0)
            with session.owner.mutex:
                if not session.owner.ended:  # by an event loop, which did not wait for this engine's start
                    collection.state = "open"
                    collection.members.append(interval)
                    interval.collection = collection
                    session.owner.collections.append(collection)
        except ProfwinError as error:
            skip(session, interval, failed(interval, error), str(error), error)
            return
        finally:
            if collection.state == "new":
                collection.stop("failure")
        if interval.collection is None:
            skip(session, interval, "ended")
            return
        collection.terms.limit(interval)
        if interval.engine is not None or session.settings.collect == "step":
            collection.terms.offer()
            session.position.recording_changed()


def _nothing() -> None:
    pass
