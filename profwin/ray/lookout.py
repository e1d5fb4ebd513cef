"""The lookout: which nsys reports lie on a node, and which are to come; the class of an actor there."""

from __future__ import annotations

import json
import os
import re
import stat
import time

from profwin.registry.host import known_boot_id
from profwin.registry.process import ProcessIdentity, gone, identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ENDINGS", "Lookout", "names_process", "ranges"]

ENDINGS = (".nsys-rep", ".qdstrm")
"""Of a report, and of what nsys makes it of."""
_NUMBERS = re.compile(r"\d+")


class Lookout:
    """Look into the folder where Ray has nsys put its reports.

    Args:
        folder: that one.
        directory: of the run, whose journals say what is to come; empty where it is not known.
        since: wall time in nanoseconds: older reports are another's, where no journal says since when there may be any.
    """

    def __init__(self, folder: str, directory: str, since: int) -> None:
        self._folder, self._journals = folder, os.path.join(directory, "journal") if directory else ""
        self._since = since

    def look(self) -> dict[str, Any]:
        """Return what is there now.

        Returns:
            ``files``: size and time of the last change of each report by its name, without those that are older than
            the run's first process under nsys on this host; ``due``: how many capture ranges each process has made, by
            its pid; ``alive``: which of these are still there; ``folder``: device and inode, as several nodes may have
            the same one; ``now``: the wall time.
        """
        due: dict[int, int] = {}
        alive: set[int] = set()
        since, boot = None, known_boot_id()
        for path in self._paths():
            found = ranges(path, boot)
            if found is not None:
                pid, start, count, begun = found
                due[pid] = due.get(pid, 0) + count
                if not gone(ProcessIdentity(pid, start, boot, identity().namespace)):
                    alive.add(pid)
                since = begun if since is None else min(since, begun)
        files: dict[str, tuple[int, int]] = {}
        folder = None
        try:
            status = os.stat(self._folder)
            folder = status.st_dev, status.st_ino
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    if not entry.name.endswith(ENDINGS) or not stat.S_ISREG(status.st_mode):
                        continue
                    if status.st_mtime_ns >= (self._since if since is None else since):
                        files[entry.name] = (status.st_size, status.st_mtime_ns)
        except OSError:
            pass  # there is none, or a report was replaced this moment: the next look sees it
        return {"files": files, "due": due, "alive": sorted(alive), "folder": folder, "now": time.time_ns()}

    def _paths(self) -> list[str]:
        try:
            return [os.path.join(self._journals, name) for name in os.listdir(self._journals or "/nothing")]
        except OSError:
            return []


def ranges(path: str, boot: str) -> tuple[int, int, int, int] | None:
    """Return of a journal the process's pid and start, how many capture ranges of nsys it has, and its first wall time.

    Args:
        path: of the journal.
        boot: of this host; None is returned of a process of another one, and of one that made no range under nsys.
    """
    made: set[object] = set()
    try:
        with open(path, "rb") as file:
            header = json.loads(file.readline())
            if header["boot"] != boot:
                return None
            for line in file:
                if b'"code":"nsys-not-there"' in line:
                    return None
                if b'"kind":"open"' in line:
                    record = json.loads(line)
                    if "nsys" in record["backends"]:
                        made.add(record["collection"])
                elif b'"kind":"close"' in line and b'"error":' in line:
                    made.discard(json.loads(line)["collection"])
            return (int(header["pid"]), int(header["start"]), len(made), int(header["wall"])) if made else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # half a line of a process that writes, or no journal


def names_process(name: str, pid: int) -> bool:
    """Say whether a report's name has a process's number in it."""
    return str(pid) in _NUMBERS.findall(name)
