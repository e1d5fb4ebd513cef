"""Chrome's trace format, JSON, for programs that read nothing newer. One event a line."""

from __future__ import annotations

import json
import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from profwin.evidence.tracks import Data

__all__ = ["JsonWriter"]

_BUFFER = 1 << 11
_MOST_NAMES = 1 << 15
_LONGEST_KEPT = 1 << 9
_PHASES = {"flow-start": "s", "flow-step": "t", "flow-end": "f"}


class JsonWriter:
    """Write a trace.

    Times are microseconds since the origin, written as decimals with every nanosecond: since 1970 they would lose them
    in readers that take them for floating-point numbers.

    Args:
        write: takes the bytes.
        origin: wall-clock nanoseconds at which the timeline begins.
    """

    def __init__(self, write: Callable[[bytes], object], origin: int) -> None:
        self._write = write
        self._origin = origin
        self._groups: list[tuple[int, str]] = []
        self._processes = self._threads = 0
        self._texts: dict[str, str] = {}
        self.events = 0
        head = f'{{"schemaVersion":1,"displayTimeUnit":"ns","baseTimeNanoseconds":{origin},"traceEvents":[\n'
        self._parts = [head + '{"ph":"M","pid":0,"name":"process_name","args":{"name":"profwin timeline"}}']

    def group(self, name: str, parent: int | None = None, rank: int = 0, *, process: bool = False) -> int:
        """Make a group of lanes; one inside another is told by the names of its lanes. Return its number."""
        if parent is None:
            self._processes += 1  # each group at the top is one, since there is nothing else
            self._groups.append((self._processes, ""))
            self._meta(self._processes, 0, "process_name", name)
            self._sort(self._processes, 0, "process_sort_index", self._processes if process else rank)
        else:
            number, prefix = self._groups[parent]
            self._groups.append((number, f"{prefix}{name}: "))
        return len(self._groups) - 1

    def lane(self, name: str, parent: int, rank: int = 0) -> str:
        """Make a lane, on which slices nest and never overlap otherwise. Return what the methods below take for it."""
        process, prefix = self._groups[parent]
        self._threads += 1
        self._meta(process, self._threads, "thread_name", prefix + name)
        self._sort(process, self._threads, "thread_sort_index", rank)
        return f'"pid":{process},"tid":{self._threads}'

    def begin(self, lane: str, start: int, end: int, name: str, category: str = "", data: Data = None) -> None:
        """Write a slice."""
        length = end - start
        more = f',"dur":{length // 1000}.{length % 1000:03d}'
        self._event("X", lane, start, name, category, more if not data else more + self._arguments(data))

    def end(self, lane: str, end: int) -> None:
        """Do nothing: the length is known from `begin`."""

    def instant(self, lane: str, at: int, name: str, category: str = "", data: Data = None) -> None:
        """Write an event without a length."""
        self._event("i", lane, at, name, category, ',"s":"t"' + (self._arguments(data) if data else ""))

    def flow(self, lane: str, at: int, phase: str, flow: int, name: str, category: str = "") -> None:
        """Write an end of an arrow."""
        self._event(_PHASES[phase], lane, at, name, category, f',"bp":"e","id":"{flow:#x}"')

    def counter(self, name: str, parent: int, rank: int = 0) -> tuple[str, str]:  # noqa: ARG002  # sorted by name
        """Make a counter, a row with a value at a time. Return what `value` takes for it."""
        process, prefix = self._groups[parent]
        return f'"pid":{process}', prefix + name

    def value(self, counter: tuple[str, str], at: int, value: float) -> None:
        """Write what a counter has from then on."""
        number = repr(value) if math.isfinite(value) else "null"
        self._event("C", counter[0], at, counter[1], "", f',"args":{{"value":{number}}}')

    def close(self) -> None:
        """Write the end."""
        self._parts.append("\n]}\n")
        self._flush()

    def _event(self, phase: str, lane: str, at: int, name: str, category: str, more: str) -> None:
        self.events += 1
        # Before the origin, where clocks were not what they said: floor division alone would give "-1.999" for -1 ns.
        sign, time = ("", at - self._origin) if at >= self._origin else ("-", self._origin - at)
        self._parts.append(
            f',\n{{"ph":"{phase}","name":{self._text(name)},"cat":{self._text(category)},{lane},'
            f'"ts":{sign}{time // 1000}.{time % 1000:03d}{more}}}'
        )
        if len(self._parts) >= _BUFFER:
            self._flush()

    def _text(self, text: str) -> str:
        found = self._texts.get(text)
        if found is None:
            found = json.dumps(text)
            if len(self._texts) < _MOST_NAMES and len(text) < _LONGEST_KEPT:
                self._texts[text] = found
        return found

    @staticmethod
    def _arguments(data: Data) -> str:
        return f',"args":{json.dumps(dict(data or {}), separators=(",", ":"))}'

    def _meta(self, process: int, thread: int, what: str, name: str) -> None:
        self._parts.append(
            f',\n{{"ph":"M","pid":{process},"tid":{thread},"name":"{what}","args":{{"name":{json.dumps(name)}}}}}'
        )

    def _sort(self, process: int, thread: int, what: str, index: int) -> None:
        self._parts.append(
            f',\n{{"ph":"M","pid":{process},"tid":{thread},"name":"{what}","args":{{"sort_index":{index}}}}}'
        )

    def _flush(self) -> None:
        self._write("".join(self._parts).encode())
        self._parts.clear()
