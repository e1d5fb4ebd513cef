"""Which launches have their device work, by correlation numbers, in bounded memory."""

from __future__ import annotations

import re
from bisect import bisect_right

from profwin.evidence.unions import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["BEGIN", "END", "LAUNCH", "OTHER", "Launches", "kind_of_call"]

_PAGE = 1 << 16
_PAGES = 256
"""Pages of numbers that are kept: 16.7 million calls, two bits each."""
_CAPTURES = 1 << 14
_FOREVER = 1 << 70

_LAUNCHED, _WORKED, _BOTH = 1, 2, 3
_QUARTERS = [bytes(packed >> 2 * place & _BOTH for packed in range(256)) for place in range(4)]
"""Tables that give each of the four marks that a byte holds."""

OTHER, LAUNCH, BEGIN, END = range(4)

# A memset is left out: one of no bytes has no device work, and real files are full of those.
_LAUNCH = re.compile(
    r"(?:cuda|cu|hip|musa|mu)"
    r"(?:\w*Launch(?:Cooperative)?Kernel\w*|(?:Ext)?(?:Module)?LaunchKernel\w*|GraphLaunch\w*|Memcpy\w*)"
)
_HOST_SIDE = re.compile(r"HostFunc|MultiDevice")
_BEGIN = re.compile(r"(?:cuda|cu|hip|musa|mu)StreamBeginCapture\w*")
_END = re.compile(r"(?:cuda|cu|hip|musa|mu)StreamEndCapture\w*")


def kind_of_call(name: str) -> int:
    """Say whether a host call launches device work, or begins or ends the capture of a graph."""
    if _LAUNCH.fullmatch(name) and not _HOST_SIDE.search(name):
        return LAUNCH
    if _BEGIN.fullmatch(name):
        return BEGIN
    return END if _END.fullmatch(name) else OTHER


class Launches:
    """Launches and device work seen so far. Numbers grow with time, so that their order is that of the calls.

    Attributes:
        judged: whether all could be kept.
    """

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}
        self._begins: list[tuple[str, int]] = []
        self._ends: list[tuple[str, int]] = []
        self.judged = True

    def launched(self, numbers: list[Any]) -> None:
        """Note launches, whatever their numbers are."""
        self._mark(numbers, _LAUNCHED)

    def worked(self, numbers: list[Any]) -> None:
        """Note device work."""
        self._mark(numbers, _WORKED)

    def capture(self, kind: int, thread: str, number: object) -> None:
        """Note where a thread's capture begins or ends: launches in between are put into a graph, and not run."""
        if not isinstance(number, int) or len(self._begins) + len(self._ends) >= _CAPTURES:
            self.judged = False
            return
        (self._begins if kind == BEGIN else self._ends).append((thread, number))

    def missing(self) -> tuple[int, int]:
        """Return how many launches lack their device work, and how many of them come before the first that has it.

        A file that was cut out of a longer one begins with device work without launch and ends with launches without
        device work: then those at its end are no loss.
        """
        first, last = self._first_and_last()
        limit = None
        if first is not None and last is not None and self._begins_with_work(first):
            limit = last
        left_out = self._captured()
        head = total = 0
        for page in sorted(self._pages):
            marks = self._marks(page)
            position = marks.find(_LAUNCHED)
            while position >= 0:
                number = page * _PAGE + position
                if limit is not None and number > limit:
                    break
                after = _inside(left_out, number)
                if after is None:
                    total += 1
                    head += first is not None and number < first
                    position = marks.find(_LAUNCHED, position + 1)
                else:
                    position = marks.find(_LAUNCHED, max(position, min(after - page * _PAGE, _PAGE)) + 1)
        return total, head

    def _mark(self, numbers: list[Any], mark: int) -> None:
        current, marks = -1, None
        places = [mark << 2 * place for place in range(4)]
        for number in numbers:
            if not isinstance(number, int) or number <= 0:
                continue
            page = number >> 16
            if page != current:  # numbers that follow each other are near each other
                current, marks = page, self._page(page)
            if marks is not None:
                marks[(number & 0xFFFF) >> 2] |= places[number & 3]

    def _page(self, page: int) -> bytearray | None:
        marks = self._pages.get(page)
        if marks is None:
            if len(self._pages) >= _PAGES:
                self.judged = False
                return None
            marks = self._pages[page] = bytearray(_PAGE // 4)
        return marks

    def _marks(self, page: int) -> bytearray:
        """Return the marks of a page, a byte each."""
        packed, marks = self._pages[page], bytearray(_PAGE)
        for place, table in enumerate(_QUARTERS):
            marks[place::4] = packed.translate(table)
        return marks

    def _first_and_last(self) -> tuple[int | None, int | None]:
        """Return the first and the last number of a launch that has its device work."""
        first = last = None
        for page in sorted(self._pages):
            marks = self._marks(page)
            if (position := marks.find(_BOTH)) >= 0:
                first = page * _PAGE + position if first is None else first
                last = page * _PAGE + marks.rfind(_BOTH)
        return first, last

    def _begins_with_work(self, first: int) -> bool:
        """Say whether device work without launch comes before the first launch that has its own."""
        for page in sorted(self._pages):
            if page * _PAGE > first:
                return False
            position = self._marks(page).find(_WORKED)
            if position >= 0:
                return page * _PAGE + position < first
        return False

    def _captured(self) -> list[tuple[int, int]]:
        """Return the ranges of numbers that were captured; one that is open on a side goes on to there."""
        marks: dict[str, list[tuple[int, bool]]] = {}
        for thread, number in self._begins:
            marks.setdefault(thread, []).append((number, False))
        for thread, number in self._ends:
            marks.setdefault(thread, []).append((number, True))
        ranges = []
        for own in marks.values():
            own.sort()
            begin = 0 if own[0][1] else None
            for number, ends in own:
                if not ends:
                    begin = number if begin is None else begin
                elif begin is not None:
                    ranges.append((begin, number))
                    begin = None
            if begin is not None:
                ranges.append((begin, _FOREVER))
        return joined(ranges)


def _inside(ranges: list[tuple[int, int]], number: int) -> int | None:
    """Return the end of the range that a number lies in; ranges are sorted and do not touch."""
    index = bisect_right(ranges, (number, _FOREVER)) - 1
    return ranges[index][1] if index >= 0 and ranges[index][1] >= number else None
