"""An independent witness of who records on a device: a file, made when recording begins, removed at its end.

It shares no code with profwin and knows nothing of locks. A file of a dead process is taken over in silence;
a file of a living one means that two record at once.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Witness", "dead"]

_EXITING = 4  # PF_EXITING: a process being killed has it before it gives up its files and with them its locks
_START = 19
_FLAGS = 6


class Witness:
    """Watch the devices in a directory; make one in each process, after the fork.

    Args:
        directory: where the files lie; a local file system.
        hold: gives the seconds to stay inside, so that an overlap has time to be seen.
    """

    def __init__(self, directory: Path, hold: Any) -> None:
        self._directory = str(directory)
        self._hold = hold
        self._identity = f"{os.getpid()} {_fields(os.getpid())[_START]}".encode()
        # The content is complete before the name exists: a link succeeds whole or finds the name taken.
        self._own = f"{self._directory}/process-{os.getpid()}"
        with open(self._own, "wb") as file:
            file.write(self._identity)
        self._log = os.open(f"{self._directory}/overlaps", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def enter(self, device: str) -> None:
        """Say that recording begins on a device here; log an overlap if a living process has said so too."""
        path = f"{self._directory}/device-{device}"
        for _ in range(100):
            try:
                os.link(self._own, path)
            except FileExistsError:  # what the loop is for
                other = _content(path)
                if other and not dead(other):
                    self._report(device, other, "was inside when this process entered")
                _remove(path)
            else:
                break
        time.sleep(self._hold())

    def leave(self, device: str) -> None:
        """Say that recording ended; log an overlap if somebody else has taken the file meanwhile."""
        path = f"{self._directory}/device-{device}"
        other = _content(path)
        if other != self._identity:
            self._report(device, other, "had entered before this process left")
        _remove(path)

    def _report(self, device: str, other: bytes, what: str) -> None:
        os.write(self._log, f"{device}: {other.decode() or 'nobody'} {what} ({self._identity.decode()})\n".encode())


def seen(directory: Path) -> list[str]:
    """Give the overlaps that all witnesses logged, one a line."""
    path = directory / "overlaps"
    return path.read_text(encoding="ascii").splitlines() if path.exists() else []


def occupant(directory: Path, device: str) -> int | None:
    """Give the pid that says it records on a device now."""
    content = _content(f"{directory}/device-{device}")
    return int(content.split()[0]) if content else None


def dead(identity: bytes) -> bool:
    """Say whether the process is gone, is being killed, or its pid was given to another."""
    pid, start = identity.decode().split()
    fields = _fields(int(pid))
    return not fields or fields[0] in "ZX" or bool(int(fields[_FLAGS]) & _EXITING) or fields[_START] != start


def _fields(pid: int) -> list[str]:
    """Give /proc/PID/stat from its third field (the state) on; empty if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
