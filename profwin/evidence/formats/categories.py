"""The categories of a trace's events: how many events each has, and what kind of events they are."""

from __future__ import annotations

import re
from collections import Counter
from itertools import compress

__all__ = ["CALL", "NAMES", "NEITHER", "SPAN", "WORK", "Categories", "is_device"]

NAMES = 4096
"""Categories that are remembered."""
NEITHER, WORK, CALL, SPAN = range(4)

_DEVICE = re.compile(
    r"kernel|gpu_mem(?:cpy|set)|Kernel|Memcpy|Memset|(?:mtia|xpu|hpu|npu|musa|privateuse\w*?)_(?P<what>\w+)"
)
_HOST_PARTS = re.compile(r"runtime|driver|insight|counter|workload|sync|annotation")
_RUNTIME = re.compile(r"Runtime|\w+_(?:runtime|driver)")

_REST = 255
"""The number of all categories that come after as many others."""
_ONLY_REST = bytes(number == _REST for number in range(256))


def is_device(category: str) -> bool:
    """Say whether events of a category are the device's work."""
    match = _DEVICE.fullmatch(category)
    return match is not None and not (match["what"] and _HOST_PARTS.search(match["what"]))


def _kind(category: str) -> int:
    if is_device(category):
        return WORK
    if category == "Trace":
        return SPAN
    return CALL if _RUNTIME.fullmatch(category) else NEITHER


class _Numbers(dict[str, int]):
    """Gives categories numbers, which fit a byte, so that the events of a batch are counted and told apart in C."""

    def __missing__(self, category: str) -> int:
        number = len(self)
        if number < _REST:
            self[category] = number
        return min(number, _REST)


class Categories:
    """Counts events by category, in bounded memory.

    Attributes:
        counts: events of each category.
        kinds: the kind of each category of a kind.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.kinds: dict[str, int] = {}
        self._numbers = _Numbers()
        self._kinds = bytearray(256)

    def take(self, categories: list[str]) -> bytes:
        """Count a batch of events by their categories, and return the kind of each."""
        numbers = bytes(map(self._numbers.__getitem__, categories))
        for category, number in self._numbers.items():
            if count := numbers.count(number):
                self._kinds[number] = self._add(category, count)
        if _REST not in numbers:
            return numbers.translate(self._kinds)
        for category, count in Counter(compress(categories, numbers.translate(_ONLY_REST))).items():
            self._add(category, count)
        return bytes([self.kinds.get(category, NEITHER) for category in categories])

    def _add(self, category: str, count: int) -> int:
        kept = category if category in self.counts or len(self.counts) < NAMES else "(other)"
        if kept not in self.counts and (kind := _kind(kept)) != NEITHER:
            self.kinds[kept] = kind
        self.counts[kept] += count
        return self.kinds.get(kept, NEITHER)
