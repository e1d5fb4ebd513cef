"""One device's lock file as this process has it open: the only place that locks, writes and closes it."""

from __future__ import annotations

import os
import stat
from collections import deque
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from select import POLLHUP, poll
from threading import RLock

from profwin.errors import RegistryError
from profwin.registry.creation import ACCESS, FLAGS, WATCH_FLAGS, close_all, explained, full, make_fifo, open_slowly
from profwin.registry.holder import (
    MARK_LIMIT,
    NOT_HELD,
    NOT_HELD_OFFSET,
    RECORD_SIZE,
    Holder,
    Mark,
    decode,
    decode_mark,
    encode_mark,
)

__all__ = ["MARK_OFFSET", "LockFile", "forget", "hangs_up", "held_here"]

MARK_OFFSET = 1024
"""Where the mark is; a file that is no longer has none."""

_FLAGS_ALONE = (FLAGS,)
_MODE = stat.S_IFREG | ACCESS
_TRIES = 20

# Every lock file that has something open in this process, so that a forked child can let go of all of them.
_OPEN: set[LockFile] = set()

# One for all files: it is held for microseconds. Reentrant, for a signal handler that interrupts its own thread.
_mutex = RLock()

_open, fstat, pwrite = os.open, os.fstat, os.pwrite


class LockFile:
    """The lock, the record, the mark and the wake-up of one device, for one acquisition.

    Each acquisition has its own, and so its own open file description: two threads exclude each other like two
    processes. Safe to use from several threads, and from a signal handler that interrupts itself.

    ``lock`` and ``fifo`` are the paths of both files, as bytes and in tuples, which is what opening them fast
    takes. The descriptors are in ``numbers``: the lock first, then those of the FIFO. They are put there and
    closed in single calls of C functions (``extend`` and ``map``), between which the interpreter runs no
    signal handler: a KeyboardInterrupt can therefore not lose one.

    Attributes:
        key: the device.
        path: of the lock file; the FIFO is beside it.
        mark: the mark that was there when the lock was won, unless it was dead.
        dead: a mark that was there and is proven dead: it was taken off.
        held: whether the record says that this process holds the device.
        watching: whether the FIFO is open for waiting.
    """

    __slots__ = ("_fifo", "_lock", "dead", "held", "key", "mark", "numbers", "path", "watching")

    def __init__(self, key: str, path: str, lock: tuple[bytes], fifo: tuple[bytes]) -> None:
        self.key, self.path, self._lock, self._fifo = key, path, lock, fifo
        self.mark: Mark | None = None
        self.dead: Mark | None = None
        self.held = self.watching = False
        self.numbers: deque[int] = deque()

    def lock(self) -> bool:
        """Try to lock once; False where somebody else has it.

        Raises:
            RegistryError: the file cannot be opened, locked or trusted.
        """
        numbers = self.numbers
        self.mark = None
        for _ in range(_TRIES):
            fresh = not numbers
            try:
                if fresh:
                    _OPEN.add(self)
                    try:
                        numbers.extend(map(_open, self._lock, _FLAGS_ALONE))
                    except (FileNotFoundError, PermissionError):
                        open_slowly(numbers, self.path)
                flock(numbers[0], LOCK_EX | LOCK_NB)
                status = fstat(numbers[0])
                if not status.st_nlink or not (fresh or self._current(status)):
                    self.close()
                    continue
            except BlockingIOError:
                return False
            except OSError as problem:
                raise explained(self.path, problem) from problem
            if status.st_mode != _MODE or status.st_nlink != 1:
                self._inspect(status)
            if status.st_size > MARK_OFFSET:
                self.mark = self._living_mark()
            return True
        raise RegistryError(self.path, "is replaced again and again by somebody else")

    def _current(self, status: os.stat_result) -> bool:
        """Say whether the locked file is still the one at the path, which is the one that counts.

        A file that was deleted or replaced has no link left, which costs nothing to see. One that was moved
        away has: that matters where the descriptor is old, and is then looked up. (A move after this cannot be
        prevented, so one in the microsecond before it is not looked for either.)
        """
        try:
            return os.path.samestat(status, os.lstat(self.path))
        except FileNotFoundError:
            return False

    def hold(self, record: bytes) -> None:
        """Write the record of the holder and keep the FIFO's write end. Call after the lock was won.

        Raises:
            RegistryError: the record cannot be written (the file system is full).
        """
        try:
            self.held = True
            if pwrite(self.numbers[0], record, 0) != len(record):
                raise full(self.path)
        except OSError as problem:
            raise explained(self.path, problem) from problem
        try:
            self.numbers.extend(map(_open, self._fifo, _FLAGS_ALONE))
        except OSError:
            # Without a FIFO the waiters still look from time to time.
            make_fifo(self.numbers, self._fifo[0], FLAGS)

    def rewrite(self, record: bytes) -> bool:
        """Write another record of the same holder; False where the device is not held any more. Never raises."""
        with _mutex:
            try:
                return self.held and pwrite(self.numbers[0], record, 0) == len(record)
            except (OSError, IndexError):
                return False

    def watch(self) -> None:
        """Open the FIFO for waiting. Try to lock once more afterwards: a release before this is not seen."""
        self.watching = True
        try:
            self.numbers.extend(map(_open, self._fifo, (WATCH_FLAGS,)))
        except OSError:
            make_fifo(self.numbers, self._fifo[0], WATCH_FLAGS)

    def close(self) -> None:
        """Write that nobody holds the device, unlock it and close everything. May be called again."""
        numbers = self.numbers
        with _mutex:
            try:
                # Each line looks anew for the lock: a signal handler may have closed it since the last.
                if self.held:
                    pwrite(numbers[0], NOT_HELD, NOT_HELD_OFFSET)
                # Closing is not enough: a child that has not reached its exec yet would keep the lock.
                flock(numbers[0], LOCK_UN)
            except (OSError, IndexError):
                pass  # nothing is open, or closing unlocks too
            finally:
                close_all(numbers)
                self.held = self.watching = False
                _OPEN.discard(self)

    def abandon(self) -> None:
        """Close without unlocking, in a forked child: the lock is the parent's."""
        self.held = self.watching = False
        while self.numbers:
            os.close(self.numbers.popleft())
        _OPEN.discard(self)

    def holder(self) -> Holder | None:
        """Read who holds the device; None where the record does not say."""
        try:
            return decode(os.pread(self.numbers[0], RECORD_SIZE, 0))
        except (OSError, IndexError):
            return None

    def lost(self) -> bool:
        """Say whether the file that is locked was deleted or replaced: it then has no name left.

        One that was moved elsewhere together with its directory is not found out.
        """
        with _mutex:
            return bool(self.numbers) and fstat(self.numbers[0]).st_nlink == 0

    def write_mark(self, mark: Mark) -> None:
        """Write the mark, before an engine is asked to start.

        Raises:
            RegistryError: it cannot be written, or nothing is held.
            ValueError: it names too many processes.
        """
        data = encode_mark(mark)
        with _mutex:
            if not self.held:
                raise RegistryError(self.path, "is not held, so it cannot be marked")
            try:
                if pwrite(self.numbers[0], data, MARK_OFFSET) != len(data):
                    raise full(self.path)
                os.ftruncate(self.numbers[0], MARK_OFFSET + len(data))
            except OSError as problem:
                raise explained(self.path, problem) from problem
            self.mark = mark

    def clear_mark(self) -> None:
        """Remove the mark; the lock must be held.

        Raises:
            RegistryError: it cannot be removed.
        """
        with _mutex:
            if not self.numbers:
                return
            try:
                os.ftruncate(self.numbers[0], MARK_OFFSET)
            except OSError as problem:
                raise explained(self.path, problem) from problem
            self.mark = None

    def _living_mark(self) -> Mark | None:
        mark = decode_mark(os.pread(self.numbers[0], MARK_LIMIT, MARK_OFFSET))
        if mark is not None and mark.dead():
            self.clear_mark()
            self.dead = mark
            return None
        return mark

    def _inspect(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise RegistryError(self.path, "is not a regular file")
        if status.st_nlink != 1:
            raise RegistryError(self.path, f"has {status.st_nlink} links: somebody planted it")
        try:
            # Its maker died, or is just now between making it and this.
            os.fchmod(self.numbers[0], ACCESS)
        except PermissionError:
            pass


def hangs_up(number: int, seconds: float) -> bool:
    """Sleep until the holder closes its end of the FIFO that is open at ``number``, or so long; True if it did."""
    poller = poll()
    poller.register(number, 0)
    return any(event & POLLHUP for _, event in poller.poll(seconds * 1000))


def held_here(path: str) -> bool:
    """Say whether this process holds the lock file at ``path``."""
    return any(file.held and file.path == path for file in list(_OPEN))


def forget() -> None:
    """Let go of everything in a forked child, without unlocking. May be called again."""
    global _mutex
    _mutex = RLock()  # another thread of the parent may have held the old one
    for file in list(_OPEN):
        file.abandon()


os.register_at_fork(after_in_child=forget)
