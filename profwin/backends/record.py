"""The ``record`` backend: no profiler. The journal, which is always on, is its whole output.

It takes the device lock like a profiler would, so the order of windows and stages is enforced and can be tested
anywhere.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.backends import Request
    from profwin.settings import Settings

__all__ = ["BACKEND"]


class _Nothing:
    """A recording, its spans and its context manager in one: all do nothing."""

    __slots__ = ()

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def span(self, name: str) -> _Nothing:  # noqa: ARG002  # part of the protocol
        return self

    def step(self) -> None:
        return None

    def export(self) -> list[str]:
        return []


_NOTHING = _Nothing()


class RecordBackend:
    """Record nothing but the journal's own records."""

    name = "record"
    exclusive = True  # so that the order of real profilers is enforced, and can be seen, without one
    ranges = False  # the journal has every window, stage and span anyway
    thread_bound = False  # nothing is bound to a thread
    revocable = True  # ending it loses nothing

    def __init__(self, settings: Settings) -> None:
        """Take no settings."""

    def foreign(self) -> None:
        """Nothing can be in the way."""
        return

    def open(self, request: Request) -> _Nothing:  # noqa: ARG002  # part of the protocol
        """Return a context manager that does nothing."""
        return _NOTHING


BACKEND = RecordBackend
