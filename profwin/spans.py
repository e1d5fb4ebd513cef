"""Spans: named ranges inside whatever records."""

from __future__ import annotations

from profwin.configuration import current
from profwin.interval import Interval
from profwin.passage import begin_span, call_site, leave
from profwin.switch import SWITCH, compiling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.session import Session

__all__ = ["Span", "span"]


class Span:
    """What :func:`span` returns."""

    __slots__ = ("_entered", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._entered: tuple[Session, Interval] | None = None

    def __enter__(self) -> None:
        if not SWITCH.on or compiling():
            return
        session = current()
        if session is None:
            return
        session.owner.close_due()
        collection = session.owner.own()
        if collection is not None:
            interval = Interval(
                "span", self._name, collection.through, collection.keys, call_site(), role=collection.role, scoped=True
            )
            self._entered = begin_span(session, interval, collection)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        entered, self._entered = self._entered, None
        if entered is not None:
            leave(entered, error)


def span(name: str) -> Span:
    """Name a range inside whatever this process records, in a ``with``; nothing happens where nothing records.

    It opens no recording, takes no lock and must begin and end in one thread.

    Args:
        name: as it shall stand in the trace and the journal.
    """
    return Span(name)
