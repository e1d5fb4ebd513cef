"""Sorting events in fixed memory: what does not fit is sorted piece by piece in an unnamed file, and merged."""

from __future__ import annotations

import struct
import tempfile
from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KINDS", "Sorter"]

KINDS = ("slice", "instant", "flow-start", "flow-step", "flow-end", "counter")
"""At the same time, slices come before what may belong to them."""

_RECORD = struct.Struct(">IQQBQHQ")
_SIZE = _RECORD.size
_ZERO = 1 << 63
_TOP = (1 << 64) - 1
PIECE = 1 << 17
"""Records that are held in memory."""
FAN = 16
"""Runs that are merged at a time; more are merged to longer ones first, so that memory does not grow with them."""
_BLOCK = 1 << 12


class Sorter:
    """Take events in any order; give them by track, then start, the longer first: so a slice follows what holds it.

    Args:
        directory: of the unnamed file. Nothing of it is left, however the process ends.
        piece: for tests, `PIECE`.
    """

    def __init__(self, directory: str, piece: int = PIECE) -> None:
        self._directory = directory
        self._piece = piece
        self._records: list[bytes] = []
        self._levels: list[list[_Run]] = []

    def put(self, track: int, start: int, end: int, kind: int, name: int, category: int, flow: int) -> None:
        """Add one event: times within 63 bits and a sign, the others unsigned."""
        self._records.append(_RECORD.pack(track, start + _ZERO, _TOP - (end + _ZERO), kind, name, category, flow))
        if len(self._records) >= self._piece:
            self._spill()

    def __iter__(self) -> Iterator[tuple[int, int, int, int, int, int, int]]:
        """Yield what was added, sorted, in the order of the arguments of `put`; once."""
        if self._levels:
            self._spill()
            blocks = self._merge([run for level in self._levels for run in level])
        else:
            self._records.sort()
            blocks = iter([self._records])
        unpack = _RECORD.unpack
        for block in blocks:
            for record in block:
                track, start, end, kind, name, category, flow = unpack(record)
                yield track, start - _ZERO, _TOP - end - _ZERO, kind, name, category, flow
        self.close()

    def close(self) -> None:
        """Forget everything."""
        for level in self._levels:
            for run in level:
                run.file.close()
        self._levels, self._records = [], []

    def _spill(self) -> None:
        self._records.sort()
        self._store(0, iter([self._records]))
        self._records = []

    def _store(self, level: int, blocks: Iterator[list[bytes]]) -> None:
        run = _Run(self._directory)
        for block in blocks:
            run.file.write(b"".join(block))
        run.rewind()
        if len(self._levels) == level:
            self._levels.append([])
        self._levels[level].append(run)
        if len(self._levels[level]) == FAN:
            full, self._levels[level] = self._levels[level], []
            self._store(level + 1, self._merge(full))

    @staticmethod
    def _merge(runs: list[_Run]) -> Iterator[list[bytes]]:
        """Yield sorted blocks. What is not above the lowest end of the blocks in memory can be given away."""
        live = [run for run in runs if run.fill()]
        while live:
            fence = min(run.block[-1] for run in live)
            taken: list[bytes] = []
            for run in live:
                taken += run.take(fence)
            taken.sort()  # of a few sorted pieces: the sort finds them, and merges
            yield taken
            live = [run for run in live if run.block or run.fill()]


class _Run:
    """A sorted file, read block by block."""

    def __init__(self, directory: str) -> None:
        self.file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115  # closed when it is read
        self.block: list[bytes] = []

    def rewind(self) -> None:
        self.file.flush()
        self.file.seek(0)

    def fill(self) -> bool:
        """Read the next block; return whether there is one."""
        data = self.file.read(_BLOCK * _SIZE)
        self.block = [data[at : at + _SIZE] for at in range(0, len(data), _SIZE)]
        if not data:
            self.file.close()
        return bool(data)

    def take(self, fence: bytes) -> list[bytes]:
        """Give away what is not above the fence."""
        at = bisect_right(self.block, fence)
        taken, self.block = self.block[:at], self.block[at:]
        return taken
