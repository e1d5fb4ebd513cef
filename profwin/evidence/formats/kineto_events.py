"""What the events of a Kineto trace come to, gathered while they stream by, in bounded memory."""

from __future__ import annotations

import re
from itertools import compress

from profwin.evidence import codes_files as codes
from profwin.evidence.formats.busy import Busy
from profwin.evidence.formats.categories import CALL, NAMES, SPAN, WORK, Categories
from profwin.evidence.formats.event import LONGEST, all_nanoseconds, nanoseconds, plain
from profwin.evidence.formats.launches import BEGIN, END, LAUNCH, OTHER, Launches, kind_of_call
from profwin.evidence.formats.pairing import Pairing
from profwin.evidence.model import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    import msgspec

    from profwin.evidence.formats.damage import Damage
    from profwin.evidence.formats.event import Event
    from profwin.evidence.model import Recording

__all__ = ["CUT", "Gathering"]

DEVICES = 256
CUT = codes.TRUNCATED, codes.BAD_COMPRESSION, codes.INFLATES_TOO_FAR
"""Of a file whose end is missing, nothing is said that its end might tell."""

_SPAN = re.compile(r"PyTorch Profiler \(\d+\)")

_DIGITS = b"0123456789"
_LONG = re.compile(rb"\n[^\n]{%d}" % (LONGEST + 1))

_ONLY = [bytes(kind == each for kind in range(256)) for each in range(4)]
"""Tables that make 1 of one kind, and 0 of the others."""
_HALVES = frozenset({"B", "E"})


def _device_of(event: Event) -> str:
    """Return the key of the device that an event ran on: what the file calls it."""
    device = event.args.device if event.args is not None else None
    return str(device)[:LONGEST] if isinstance(device, int | str) else plain(bytes(event.pid))[:LONGEST]


def _by_device(events: list[Event], intervals: list[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
    """Return the intervals of events by the device that they ran on."""
    devices = [event.args.device if event.args is not None else None for event in events]
    if set(map(type, devices)) == {int} and devices.count(devices[0]) == len(devices):  # as a rule
        return {_device_of(events[0]): intervals}
    found: dict[str, list[tuple[int, int]]] = {}
    for event, times in zip(events, intervals, strict=True):
        found.setdefault(_device_of(event), []).append(times)
    return found


def _suspicious(numbers: list[msgspec.Raw], sign: bytes = b"\n") -> bool:
    """Say whether one of some numbers may be missing, too long, or begin with a sign."""
    joined = b"\n".join([b"", *numbers, b""])
    # As a rule each is digits, a point and digits: that shows at once, and looking for the rest takes far longer.
    usual = joined.translate(None, _DIGITS) == b"\n" + b".\n" * len(numbers)
    return bool(_LONG.search(joined)) or (not usual and (b"\n\n" in joined or b"\n" + sign in joined))


class Gathering:
    """Takes the events of one file.

    Args:
        damage: takes what is wrong with single events.

    Attributes:
        sample: time of one event, ns as the file counts; None without any.
    """

    def __init__(self, damage: Damage) -> None:
        self._damage = damage
        self._tally = Tally()
        self._categories = Categories()
        self._calls: dict[str, int] = {}
        self._launches = Launches()
        self._busy: dict[str, Busy] = {}
        self._pairing = Pairing()
        self._spans: list[tuple[int, int]] = []
        self.sample: int | None = None

    def take(self, batch: list[Event]) -> None:
        """Take a batch."""
        tally = self._tally
        tally.events += len(batch)
        kinds = self._categories.take([event.cat for event in batch])
        if self.sample is None:
            self._sample(batch)
        phases = "".join([event.ph for event in batch])
        if "B" in phases or "E" in phases:
            for event in [event for event in batch if event.ph in _HALVES]:
                self._half(event)
        complete = [event for event in batch if event.ph == "X"]
        tally.slices += len(complete)
        # Looked at all together: one by one would take half of the whole time of reading.
        bad = set[int]()
        if _suspicious([event.ts for event in complete]) or _suspicious([event.dur for event in complete], b"-"):
            bad = {id(event) for event in complete if self._bad(event)}
        # One kind after the other: a call of a function for each event would take longer than decoding it.
        for kind, look in ((WORK, self._work), (CALL, self._call), (SPAN, self._span)):
            if kind in kinds:
                of_kind = [event for event in compress(batch, kinds.translate(_ONLY[kind])) if event.ph == "X"]
                look([event for event in of_kind if id(event) not in bad] if bad else of_kind)

    def finish(self, recording: Recording, base: int, expected: bool | None) -> None:
        """Put everything into the recording, with times from `base` on, and judge what only the whole file shows."""
        tally, damage, launches = self._tally, self._damage, self._launches
        tally.categories = dict(self._categories.counts.most_common())
        tally.launches_without_kernel, tally.missing_at_head = launches.missing()
        recording.tally = tally
        recording.device_busy = {
            key: [(base + start, base + end) for start, end in busy.merged()]
            for key, busy in sorted(self._busy.items())
        }
        recording.device_expected = True if tally.device_slices or CALL in self._categories.kinds.values() else expected
        if self._spans:
            recording.window = base + min(self._spans)[0], base + max(end for _, end in self._spans)
        if waiting := self._pairing.unfinished():
            damage.add(codes.UNFINISHED_SLICE, f"{waiting} beginnings without an end")
        if self._pairing.stray:
            damage.add(codes.UNFINISHED_SLICE, f"{self._pairing.stray} ends without a beginning")
        if self._pairing.left_out or not launches.judged:
            damage.add(
                codes.NOT_JUDGED, "beginnings and ends" if self._pairing.left_out else "launches and their kernels"
            )
        if not damage.has(codes.EMPTY_FILE):
            self._judge(recording)

    def _judge(self, recording: Recording) -> None:
        tally, damage = self._tally, self._damage
        if tally.slices <= self._categories.counts["Trace"]:
            damage.add(codes.NO_EVENTS, f"{tally.events} events, none of them with a length")
            return
        cut = damage.has(*CUT)
        if not self._spans and not cut:
            damage.add(codes.NO_SPAN, 'the span "PyTorch Profiler (n)" is missing')
        if not tally.device_slices and cut:
            return
        if not tally.device_slices:
            if recording.device_expected:
                damage.add(codes.NO_DEVICE_EVENTS, f"{tally.slices} events of the host, {tally.launches} launches")
            else:
                damage.add(codes.HOST_ONLY, f"{tally.slices} events of the host")
            return
        if cut or not self._launches.judged:
            return  # the device work may stand in the part that is lost
        if tally.missing_at_head:
            damage.add(codes.MISSING_AT_HEAD, f"the first {tally.missing_at_head} launches have no device work")
        if later := tally.launches_without_kernel - tally.missing_at_head:
            damage.add(codes.LAUNCHES_WITHOUT_KERNELS, f"{later} of {tally.launches} launches")

    def _work(self, events: list[Event]) -> None:
        self._tally.device_slices += len(events)
        self._launches.worked([event.args.correlation for event in events if event.args is not None])
        numbers = all_nanoseconds([event.ts for event in events] + [event.dur for event in events])
        if numbers is None:
            timed = [(event, times) for event in events if (times := self._times(event)) is not None]
            events, intervals = [event for event, _ in timed], [times for _, times in timed]
        else:
            intervals = [
                (start, start + length) for start, length in zip(numbers, numbers[len(events) :], strict=False)
            ]
        for device, of_device in _by_device(events, intervals).items():
            busy = self._busy.get(device)
            if busy is None:
                if len(self._busy) >= DEVICES:
                    if not self._damage.has(codes.NOT_JUDGED):
                        self._damage.add(codes.NOT_JUDGED, f"busy time of more than {DEVICES} devices")
                    continue
                busy = self._busy[device] = Busy()
            busy.extend(of_device)

    def _call(self, events: list[Event]) -> None:
        calls, launched = self._calls, []
        for event in events:
            call = calls.get(event.name)
            if call == OTHER:
                continue
            if call is None:
                call = kind_of_call(event.name)
                if len(calls) < NAMES:
                    calls[event.name] = call
            number = event.args.correlation if event.args is not None else None
            if call == LAUNCH:
                launched.append(number)
            elif call in (BEGIN, END):
                self._launches.capture(call, plain(bytes(event.tid)), number)
        self._tally.launches += len(launched)
        self._launches.launched(launched)

    def _span(self, events: list[Event]) -> None:
        for event in events:
            if _SPAN.fullmatch(event.name) and len(self._spans) < NAMES:
                times = self._times(event)
                if times is not None:
                    self._spans.append(times)

    def _times(self, event: Event) -> tuple[int, int] | None:
        try:
            first = nanoseconds(bytes(event.ts))
            return first, first + nanoseconds(bytes(event.dur))
        except ValueError:
            self._damage.add(codes.BAD_DURATION, f"{event.name[:80]!r} has a time that is no number", self._number())
        except OverflowError:
            self._damage.add(codes.HUGE_NUMBER, f"{event.name[:80]!r} has a time that is none", self._number())
        return None

    def _sample(self, batch: list[Event]) -> None:
        for event in batch:
            if event.ph == "X":
                try:
                    self.sample = nanoseconds(bytes(event.ts))
                except (ValueError, OverflowError):
                    continue
                return

    def _half(self, event: Event) -> None:
        track = bytes(event.pid), bytes(event.tid)
        if event.ph == "B":
            self._pairing.begin(track, 0, event)
        elif self._pairing.end(track) is not None:
            self._tally.slices += 1

    def _bad(self, event: Event) -> bool:
        """Say whether an event has no time that can be one, and note it."""
        start, length = bytes(event.ts), bytes(event.dur)
        if len(start) > LONGEST or len(length) > LONGEST:
            self._damage.add(codes.HUGE_NUMBER, f"{event.name[:80]!r} has a time that is none", self._number())
            return True
        if start and length and length[:1] != b"-":
            return False
        what = "has no time" if not start else "has a negative length" if length else "has no length"
        self._damage.add(codes.BAD_DURATION, f"{event.name[:80]!r} {what}", self._number())
        return True

    def _number(self) -> str:
        return f"among the first {self._tally.events} events"
