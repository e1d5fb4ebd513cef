"""Rows of a Kineto trace: which thread or stream an event belongs to, and what is drawn of those without a length."""

from __future__ import annotations

from profwin.evidence.formats.categories import is_device
from profwin.evidence.formats.event import nanoseconds, plain
from profwin.evidence.formats.pairing import Pairing
from profwin.evidence.model import Slice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.formats.event import Event

__all__ = ["DRAWN", "Rows"]

MOST = 1 << 16
"""Names of rows, and categories, that are remembered."""
DRAWN = frozenset("BEMiIRnNstfbe")
"""Phases of events besides ``X`` of which something is drawn, or that name a row."""
_FLOWS = {"s": "flow-start", "t": "flow-step", "f": "flow-end"}


class Rows:
    """The rows of one file."""

    def __init__(self) -> None:
        self._tracks: dict[tuple[bytes, bytes, bool], str] = {}
        self._devices: dict[str, tuple[bool, bool]] = {}
        self._names: dict[tuple[bytes, bytes], str] = {}
        self._pairing = Pairing()

    def track(self, event: Event) -> tuple[str, bool]:
        """Return the row of an event, and whether the event is the device's work."""
        found = self._devices.get(event.cat)
        if found is None:
            on_device = is_device(event.cat)
            found = on_device, on_device or event.cat == "gpu_user_annotation"
            if len(self._devices) < MOST:
                self._devices[event.cat] = found
        key = bytes(event.pid), bytes(event.tid), found[1]
        return self._tracks.get(key) or self._new(key), found[0]

    def draw(self, event: Event, base: int) -> Slice | None:
        """Return what an event of the phases `DRAWN` gives; None where that is nothing, or nothing yet.

        Raises:
            ValueError: its time is none.
        """
        phase = event.ph
        if phase == "M":
            self._name(event)
            return None
        at = base + nanoseconds(bytes(event.ts))
        if phase in _FLOWS:
            key = bytes(event.pid), bytes(event.tid), True
            if key not in self._tracks:  # no device work was there: it is the host's
                key = key[0], key[1], False
            track = self._tracks.get(key) or self._new(key)
            return Slice(
                event.name,
                at,
                at,
                track,
                key[2],
                event.cat,
                _FLOWS[phase],
                plain(bytes(event.id)) or "?",
            )
        track, on_device = self.track(event)
        if phase in "iIRnN":
            return Slice(event.name, at, at, track, on_device, event.cat, "instant")
        apart = phase in "be"  # several at a time, told apart by their numbers
        row: object = (bytes(event.pid), event.cat, bytes(event.id)) if apart else track
        if phase in "Bb":
            self._pairing.begin(row, at, event)
            return None
        begun = self._pairing.end(row)
        if begun is None or begun[0] > at:
            return None
        start, first = begun
        if apart:
            track = f"process {plain(bytes(first.pid))} {first.cat or 'asynchronous'}"
        return Slice(first.name, start, at, track, self.track(first)[1], first.cat)

    def _name(self, event: Event) -> None:
        name = event.args.name if event.args is not None else None
        if event.name == "thread_name" and isinstance(name, str) and len(self._names) < MOST:
            self._names[bytes(event.pid), bytes(event.tid)] = name[:200]

    def _new(self, key: tuple[bytes, bytes, bool]) -> str:
        process, thread = plain(key[0]), plain(key[1])
        if key[2]:
            track = f"device {process} {thread if thread.startswith('stream') else f'stream {thread}'}"
        else:
            named = self._names.get(key[:2], "")
            known = thread in named or not named
            track = f"process {process} {(named if known else f'{named} {thread}') or f'thread {thread}'}"
        if len(self._tracks) < MOST:
            self._tracks[key] = track
        return track
