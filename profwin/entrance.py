"""The entrance: what becomes of a window or stage that begins: it joins, waits, makes others close, or goes without."""

from __future__ import annotations

import threading
import time

from profwin.acquisition import acquiring
from profwin.budget import WaitBudget
from profwin.collection import Collection
from profwin.conflict import joins, meet
from profwin.errors import ProfwinError, RegistryError, WindowOverlapError
from profwin.owner import TURN
from profwin.registry.lock import Busy, Held
from profwin.skip import skip, turn_away

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import TypeAlias

    from profwin.interval import Interval
    from profwin.session import Session

    Wait: TypeAlias = Callable[[float], None]
    Entering: TypeAlias = Generator[Wait, None, None]

__all__ = ["Entrance"]

_NOTED = 1e-3
"""Seconds from which a wait counts as one."""
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
        self._budget = WaitBudget()

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
        here, began, turns = threading.get_ident(), time.monotonic(), _TURNS
        held: Held | None = None
        self.session.owner.close_due()
        try:
            while True:
                with self.session.owner.mutex:
                    verdict = self._decide(interval, here, blocking=blocking)
                    if verdict is None and (held is not None or not interval.keys):
                        self.starting[interval] = here
                if verdict is None and interval not in self.starting:
                    # The devices come first, without a claim on this process: what runs here on others need not wait.
                    held = yield from self._acquire(interval, last=turns == 0)
                    if held is None:
                        if interval.refused:
                            return
                        turns -= 1
                        yield _sleep
                elif verdict is None:
                    self._start(interval, held, time.monotonic() - began)
                    return
                elif verdict is interval.collection:
                    return
                else:
                    if held is not None:
                        held.release()
                        held = None
                    if verdict == "wait":
                        yield _sleep
                    elif isinstance(verdict, Collection):
                        self._make_way(verdict, interval)
                    else:
                        turn_away(self.session, interval, verdict)
                        return
        finally:
            self.starting.pop(interval, None)
            if held is not None and interval.collection is None:
                held.release()

    def forget(self, step: int) -> None:
        """Drop what is kept of steps before the given one."""
        for part in [part for part in list(self._segments) if part[1] < step]:
            self._segments.pop(part, None)
        self._budget.forget(step)

    def _decide(
        self, interval: Interval, here: int, *, blocking: bool
    ) -> Collection | str | Busy | RegistryError | None:
        """Say what becomes of an interval: what it joined, what must go or is in the way; None to open its own."""
        if self.session.owner.ended:
            return "ended"
        if self.session.owner.pauses.depth:
            return "paused"
        for other, thread in self.starting.items():
            if meet(interval, other.keys, ours=other.engine is None):
                # Waiting here for what this very thread is in the middle of would last for ever.
                return "self" if thread == here and blocking else "wait"
        continues = self.session.position.continues
        for collection in self.session.owner.collections:
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
        if further and collection.engine is None:
            try:
                problem = collection.extend(further)
            except RegistryError as error:
                return error
            if problem is not None:
                return problem
        collection.members.append(interval)
        collection.through = max(collection.through, interval.step)
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

    def _acquire(self, interval: Interval, *, last: bool) -> Generator[Wait, None, Held | None]:
        """Take an interval's devices, or turn it away; neither if another thread of this process was just quicker."""
        began = time.monotonic()
        outcome = yield from acquiring(self.session, interval, self._budget)
        waited = time.monotonic() - began
        if isinstance(outcome, Held):
            if waited > _NOTED:
                for key in interval.keys:
                    self._budget.spend(key, interval.step, waited)
            return outcome
        if isinstance(outcome, Busy):
            if outcome.reason == "self" and not last:
                return None
            self._budget.spend(outcome.device, interval.step, waited)
        interval.refused = True
        turn_away(self.session, interval, outcome, waited)
        return None

    def _start(self, interval: Interval, held: Held | None, waited: float) -> None:
        session = self.session
        problem = session.obstacle(interval)
        if problem is not None:
            skip(session, interval, *problem)
            return
        session.hook_exit()
        whole_step = session.settings.collect == "step" and interval.what != "window"
        name, occurrence = ("step", 1) if whole_step else (interval.name, interval.occurrence)
        part = (interval.purpose, interval.step, name, occurrence)
        self._segments[part] = segment = self._segments.get(part, 0) + 1
        collection = Collection(session, interval, name=name, occurrence=occurrence, segment=segment)
        try:
            collection.start(held, waited if waited > _NOTED else 0.0)
            with self.session.owner.mutex:
                collection.state = "open"
                collection.members.append(interval)
                interval.collection = collection
                session.owner.collections.append(collection)
        except ProfwinError as error:
            skip(session, interval, "engine" if interval.engine is not None else "backend", str(error), error)
            return
        finally:
            if collection.state != "open":
                collection.stop("failure")
        session.position.recording_changed()


def _sleep(seconds: float) -> None:
    time.sleep(min(seconds, TURN))
