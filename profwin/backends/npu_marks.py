"""Named ranges in torch_npu's recordings: mstx ranges, in a domain of their own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DOMAIN", "Marks"]

DOMAIN = "profwin"
"""The mstx domain of our ranges, so that they can be told from those of torch_npu and of the program."""


class Marks:
    """The ranges of one recording. They begin and end on the host, and add no work to a device.

    A range may end in another thread than it began in: ``range_start`` and ``range_end`` go by a number, and are safe
    under exceptions, which ``range_push`` and the decorator ``mstx_range`` are not.

    Args:
        mstx: ``torch_npu.npu.mstx``.
    """

    def __init__(self, mstx: Any) -> None:
        self._mstx = mstx
        # Only single operations on it, so that no lock is needed: a signal handler may come in the middle.
        self._open: dict[int, bool] = {}

    def begin(self, name: str) -> int:
        """Open a range; returns its number, 0 where mstx refused: it raises nothing, and returns 0 or None then."""
        number = self._mstx.range_start(message=name, domain=DOMAIN) or 0
        if number:
            self._open[number] = True
        return int(number)

    def end(self, number: int) -> None:
        """Close a range, once, if it was opened."""
        if self._open.pop(number, False):
            self._mstx.range_end(range_id=number, domain=DOMAIN)

    def end_all(self) -> None:
        """Close what is open, before the recording stops."""
        for number in list(self._open):
            self.end(number)


class Mark:
    """One range, as a context manager."""

    def __init__(self, marks: Marks, name: str) -> None:
        self._marks, self._name = marks, name
        self._number = 0

    def __enter__(self) -> Mark:
        self._number = self._marks.begin(self._name)
        return self

    def __exit__(self, *exception: object) -> None:
        self._marks.end(self._number)
