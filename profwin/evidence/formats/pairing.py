"""Events that are written as a beginning and an end, paired in bounded memory."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.formats.event import Event

__all__ = ["Pairing"]

TRACKS = 4096
DEPTH = 512


class Pairing:
    """Beginnings that wait for their end, by track.

    Attributes:
        stray: ends without a beginning.
        left_out: beginnings that were not kept, since there were too many.
    """

    def __init__(self) -> None:
        self._open: dict[object, list[tuple[int, Event]]] = {}
        self.stray = 0
        self.left_out = 0

    def begin(self, track: object, start: int, event: Event) -> None:
        """Note a beginning."""
        if track not in self._open and len(self._open) >= TRACKS:
            self.left_out += 1
            return
        waiting = self._open.setdefault(track, [])
        if len(waiting) >= DEPTH:
            self.left_out += 1
            return
        waiting.append((start, event))

    def end(self, track: object) -> tuple[int, Event] | None:
        """Return the beginning that an end belongs to, if there is one."""
        waiting = self._open.get(track)
        if waiting:
            return waiting.pop()
        self.stray += 1
        return None

    def unfinished(self) -> int:
        """Return how many beginnings still wait."""
        return sum(map(len, self._open.values()))
