"""What the events of a Kineto trace come to, gathered while they stream by, in bounded memory."""

from __future__ import annotations

import re
from collections import Counter

from profwin.evidence import codes_files as codes
from profwin.evidence.formats.busy import Busy
from profwin.evidence.formats.event import LONGEST, nanoseconds, plain
from profwin.evidence.formats.launches import BEGIN, END, LAUNCH, OTHER, Launches, kind_of_call
from profwin.evidence.formats.pairing import Pairing
from profwin.evidence.model import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    import msgspec

    from profwin.evidence.formats.damage import Damage
    from profwin.evidence.formats.event import Event
    from profwin.evidence.model import Recording

__all__ = ["CUT", "Gathering", "is_device"]

DEVICES = 256
CUT = codes.TRUNCATED, codes.BAD_COMPRESSION, codes.INFLATES_TOO_FAR
"""Of a file whose end is missing, nothing is said that its end might tell."""
NAMES = 4096
"""Categories and names of calls that are remembered."""

_DEVICE = re.compile(
    r"kernel|gpu_mem(?:cpy|set)|Kernel|Memcpy|Memset|(?:mtia|xpu|hpu|npu|musa|privateuse\w*?)_(?P<what>\w+)"
)
_HOST_PARTS = re.compile(r"runtime|driver|insight|counter|workload|sync|annotation")
_RUNTIME = re.compile(r"Runtime|\w+_(?:runtime|driver)")
_SPAN = re.compile(r"PyTorch Profiler \(\d+\)")

_NEITHER, _WORK, _CALL, _SPANS = range(4)
_HALVES = frozenset({"B", "E"})


def is_device(category: str) -> bool:
    """Say whether events of a category are the device's work."""
    match = _DEVICE.fullmatch(category)
    return match is not None and not (match["what"] and _HOST_PARTS.search(match["what"]))


def _kind(category: str) -> int:
    if is_device(category):
        return _WORK
    if category == "Trace":
        return _SPANS
    return _CALL if _RUNTIME.fullmatch(category) else _NEITHER


def _device_of(event: Event) -> str:
    """Return the key of the device that an event ran on: what the file calls it."""
    device = event.args.device if event.args is not None else None
    return str(device)[:LONGEST] if isinstance(device, int | str) else plain(bytes(event.pid))[:LONGEST]


def _suspicious(numbers: list[msgspec.Raw], sign: bytes = b"\n") -> bool:
    """Say whether one of some numbers may be missing, too long, or begin with a sign."""
    joined = b"\n" + b"\n".join(numbers) + b"\n"
    return bool(numbers) and (
        b"\n\n" in joined or b"\n" + sign in joined or max(map(len, joined.split(b"\n"))) > LONGEST
    )


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
        self._categories: Counter[str] = Counter()
        self._relevant: dict[str, int] = {}
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
        counted = Counter([event.cat for event in batch])
        for category, count in counted.items():
            kept = category if category in self._categories or len(self._categories) < NAMES else "(other)"
            if kept not in self._categories and (kind := _kind(kept)) != _NEITHER:
                self._relevant[kept] = kind
            self._categories[kept] += count
        if self.sample is None:
            self._sample(batch)
        for event in [event for event in batch if event.ph in _HALVES]:
            self._half(event)
        complete = [event for event in batch if event.ph == "X"]
        tally.slices += len(complete)
        # Looked at all together: one by one would take half of the whole time of reading.
        if _suspicious([event.ts for event in complete]) or _suspicious([event.dur for event in complete], b"-"):
            complete = [event for event in complete if not self._bad(event)]
        for event in [event for event in complete if event.cat in self._relevant]:
            kind = self._relevant[event.cat]
            if kind == _WORK:
                self._work(event)
            elif kind == _CALL:
                if self._calls.get(event.name) != OTHER:
                    self._call(event)
            else:
                self._span(event)

    def finish(self, recording: Recording, base: int, expected: bool | None) -> None:
        """Put everything into the recording, with times from `base` on, and judge what only the whole file shows."""
        tally, damage, launches = self._tally, self._damage, self._launches
        tally.categories = dict(self._categories.most_common())
        tally.launches_without_kernel, tally.missing_at_head = launches.missing()
        recording.tally = tally
        recording.device_busy = {
            key: [(base + start, base + end) for start, end in busy.merged()]
            for key, busy in sorted(self._busy.items())
        }
        recording.device_expected = True if tally.device_slices or _CALL in self._relevant.values() else expected
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
        if tally.slices <= self._categories["Trace"]:
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

    def _work(self, event: Event) -> None:
        self._tally.device_slices += 1
        if event.args is not None:
            self._launches.worked(event.args.correlation)
        times = self._times(event)
        if times is None:
            return
        device = _device_of(event)
        busy = self._busy.get(device)
        if busy is None:
            if len(self._busy) >= DEVICES:
                if not self._damage.has(codes.NOT_JUDGED):
                    self._damage.add(codes.NOT_JUDGED, f"busy time of more than {DEVICES} devices")
                return
            busy = self._busy[device] = Busy()
        busy.add(*times)

    def _call(self, event: Event) -> None:
        call = self._calls.get(event.name)
        if call is None:
            call = kind_of_call(event.name)
            if len(self._calls) < NAMES:
                self._calls[event.name] = call
        number = event.args.correlation if event.args is not None else None
        if call == LAUNCH:
            self._tally.launches += 1
            self._launches.launched(number)
        elif call in (BEGIN, END):
            self._launches.capture(call, plain(bytes(event.tid)), number)

    def _span(self, event: Event) -> None:
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
