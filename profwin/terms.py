"""The terms of a collection: what may end it before its window, stage or step is over."""

from __future__ import annotations

from functools import partial

from profwin import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.collection import Collection
    from profwin.interval import Interval
    from profwin.listener import Offer, Timer

__all__ = ["Terms"]


class Terms:
    """How long a collection may record, and whether other processes may ask for its devices.

    Args:
        collection: whose terms these are.

    Attributes:
        asked: whether another process asked for the devices.
        limited: whether anything inside has a limit.
    """

    __slots__ = ("_collection", "_offer", "_timer", "asked", "limited")

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self.asked = self.limited = False
        self._offer: Offer | None = None
        self._timer: Timer | None = None

    def over(self) -> bool:
        """Say whether the collection records and has done so for as long as it may."""
        if not self.limited or self._collection.state != "open":
            return False
        now = clock.now()
        return any(member.deadline is not None and now >= member.deadline for member in self._collection.members)

    def limit(self, interval: Interval) -> None:
        """Let it record for no longer than an interval says that is now inside, counted from now, while that is inside.

        It ends at the next safe point: when something of this process enters or leaves a window, stage or span. An
        engine that may be stopped at any time is stopped on time.
        """
        if interval.max_seconds is None:
            return
        interval.deadline = clock.now() + interval.max_seconds
        self.limited = True
        self._time()

    def _time(self) -> None:
        collection = self._collection
        if collection.engine is None or not collection.engine.revocable:
            return
        if self._timer is not None:
            self._timer.cancel()
        deadlines = [member.deadline for member in collection.members if member.deadline is not None]
        if deadlines:
            self._timer = collection.session.listener().at(min(deadlines), self._cut)

    def _cut(self) -> None:
        if self.over():
            self._collection.session.owner.close(self._collection, "cut", patience=0.0)
        else:
            self._time()  # what was to be cut has left meanwhile

    def offer(self) -> None:
        """Let other processes of the run ask for the devices, where this collection can end at another's request.

        Engines that may be stopped at any time can, and what records a whole step can between its stages. A window that
        this process records itself cannot: its user's own ranges may be open, and torch 2.13 crashes the interpreter
        where such a range ends under a later profiler.
        """
        collection = self._collection
        session = collection.session
        if collection.held is None:
            return
        if collection.engine is not None:
            may = collection.engine.revocable
        else:
            whole_step = collection.purpose == "training" and session.settings.collect == "step"
            may = whole_step and not collection.thread_bound and all(each.revocable for each in session.backends())
        if may:
            asked = partial(session.owner.asked, collection)
            self._offer = session.listener().offer(collection.held, run=session.run.name, on_ask=asked)

    def withdraw(self) -> None:
        """Take both back, since the collection ends."""
        if self._offer is not None:
            self._offer.withdraw()
        if self._timer is not None:
            self._timer.cancel()
