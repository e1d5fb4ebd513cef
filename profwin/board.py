"""The step board: which step this run is at, for every process of the run on this host.

A small file that all of them map. Each side, rollout and training, has one section under a sequence number, so a reader
never blocks and never sees half of a change; a decorated call reads one word of it (about 30 ns).
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import time
from io import FileIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    class Side(NamedTuple):
        """One side's state; step and weight version are -1 where unknown, the declarer 0 where nobody declared."""

        step: int
        selected: bool
        version: int
        declarer: int
        declarer_start: int

else:
    from collections import namedtuple

    Side = namedtuple("Side", "step selected version declarer declarer_start")  # noqa: PYI024  # typing costs 9 ms at import

__all__ = ["Board", "Side"]

_SIZE = 4096
_MAGIC = 0x70726F6677696E31
_SECTIONS = {"rollout": 8, "training": 16}
_READS = 1000
_TRIES, _PAUSE = 200, 1e-4


class Board:
    """Map the board file, making it where it is missing.

    Args:
        path: the file, on a local file system; None for a board that only this process and its forks see.
        attempt: a board of an earlier attempt is wiped; that of a later one is used as it is.
        fresh: wipe whatever is there: this process begins the run.

    Raises:
        OSError: the file cannot be made, is not a regular file of ours, or is of another kind.
    """

    def __init__(self, path: str | None, *, attempt: int = 0, fresh: bool = False) -> None:
        self.path = path
        if path is None:
            self._memory = mmap.mmap(-1, _SIZE)
            self._wipe(attempt, fresh=True)
        else:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            try:
                _exclude(descriptor)
                state = os.fstat(descriptor)
                if state.st_uid != os.geteuid() or state.st_nlink != 1:
                    raise PermissionError(f"{path} is not this user's own file")
                # Allocated, not only lengthened: on a full file system a write to the mapping would end the process.
                os.posix_fallocate(descriptor, 0, _SIZE)
                self._memory = mmap.mmap(descriptor, _SIZE)
                self._wipe(attempt, fresh=fresh)
            finally:
                # The mapping keeps a duplicate of the descriptor, and with it the lock, unless it is given back here.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                os.close(descriptor)

    def _wipe(self, attempt: int, *, fresh: bool) -> None:
        self._words = words = (ctypes.c_int64 * (_SIZE // 8)).from_buffer(self._memory)
        if fresh or words[0] != _MAGIC or words[1] < attempt:
            words[0], words[1] = _MAGIC, attempt
            for base in _SECTIONS.values():
                words[base : base + 6] = [0, -1, 0, -1, 0, 0]

    def selected_word(self) -> ctypes.c_int64:
        """Return the live word that says whether the training step is selected; it keeps the mapping alive."""
        return ctypes.c_int64.from_buffer(self._memory, (_SECTIONS["training"] + 2) * 8)

    def write(
        self, side: str, step: int, selected: bool, *, version: int = -1, declarer: tuple[int, int] = (0, 0)
    ) -> None:
        """Publish a side's step.

        Args:
            side: ``"rollout"`` or ``"training"``.
            step: the loop's step.
            selected: whether it is to be recorded.
            version: weight version; -1 where it is not known: then the one that was published for the same step stays.
            declarer: pid and start time of a process that says which step it trains; (0, 0) for a window's guess.
        """
        base, words = _SECTIONS[side], self._words
        before = words[base]
        known = words[base + 3] if version < 0 and words[base + 1] == step else version
        # The processes of a host often say the same, all at once; they need not wait for each other.
        same = words[base : base + 6] == [before, step, int(selected), known, *declarer]
        if same and before % 2 == 0 and words[base] == before:
            return
        file = self._lock()
        try:
            sequence = words[base] | 1
            words[base] = sequence
            if version >= 0 or words[base + 1] != step:
                words[base + 3] = version
            words[base + 1] = step
            words[base + 2] = int(selected)
            words[base + 4], words[base + 5] = declarer
            words[base] = sequence + 1
        finally:
            if file is not None:
                file.close()

    def read(self, side: str) -> Side:
        """Return a side's state, whole. A writer that died in the middle of a change is not waited for."""
        base, words = _SECTIONS[side], self._words
        for _ in range(_READS):
            before = words[base]
            step, selected, version, declarer, start = words[base + 1 : base + 6]
            if before % 2 == 0 and words[base] == before:
                return Side(step, bool(selected), version, declarer, start)
        file = self._lock()
        try:
            step, selected, version, declarer, start = words[base + 1 : base + 6]
            words[base] += words[base] % 2
        finally:
            if file is not None:
                file.close()
        return Side(step, bool(selected), version, declarer, start)

    def version(self, side: str) -> int:
        """Return a side's weight version, -1 if unknown; one word, so it is whole without more ado."""
        found: int = self._words[_SECTIONS[side] + 3]
        return found

    def remove(self) -> None:
        """Delete the file; processes that have it mapped go on with it."""
        if self.path is not None:
            try:
                os.unlink(self.path)
            except OSError:
                pass

    def _lock(self) -> FileIO | None:
        # A fresh descriptor, since one shared with a forked child would not exclude it. A removed file has no rival
        # writers but those that have it mapped, and the sequence number still tells their readers.
        # A file object, since one that Ctrl-C drops on its way to the caller is closed, and so unlocked.
        if self.path is None:
            return None
        try:
            file = FileIO(self.path, "r+", opener=_without_following)
        except OSError:
            return None
        _exclude(file.fileno())
        return file


def _without_following(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _exclude(descriptor: int) -> None:
    """Lock a descriptor of the board, or go on without: a holder that was stopped in there must not stop the others."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(_PAUSE)
