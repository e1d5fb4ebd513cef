"""Launches: which processes were started together, and which of them are still there."""

from __future__ import annotations

import os
import re
import time

from profwin.registry.host import host_name
from profwin.registry.process import ProcessIdentity, gone, identity
from profwin.run import process_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from profwin.registry.holder import Holder
    from profwin.run import Run

__all__ = ["Origin", "attempt_of_launch", "fellow_rank", "first_of_launch", "launched", "without_ended_run"]

_ATTEMPT = re.compile(r"_a(\d+)(?:\.\d+)?\.jsonl$")
_TRIES, _PAUSE = 50, 1e-3
_VARIABLES = ("PROFWIN_RUN", "PROFWIN_ATTEMPT", "PROFWIN_PARENT")


class Origin:
    """The process that a run began in, as ``PROFWIN_PARENT`` hands it on, unchanged, to all who inherit the run.

    Attributes:
        text: the variable's value.
        restarts: how often torchrun had restarted that process; a process that it restarted more often is of a later
            attempt.
    """

    def __init__(self, text: str, restarts: int, process: ProcessIdentity | None) -> None:
        self.text, self.restarts, self._process = text, restarts, process

    @classmethod
    def here(cls, restarts: int) -> Origin:
        """Return this process."""
        own = identity()
        return cls(process_text(own.pid, own.start, own.namespace, restarts, own.boot), restarts, own)

    @classmethod
    def parse(cls, text: str) -> Origin:
        """Return what a variable's value says; nothing is known of a process that it does not describe."""
        parts = text.split("-", 4)
        if len(parts) < 5 or not all(part.isascii() and part.isdigit() for part in parts[:4]):
            return cls(text, 0, None)
        pid, start, namespace, restarts = (int(part) for part in parts[:4])
        return cls(text, restarts, ProcessIdentity(pid, start, parts[4], namespace))

    def gone(self) -> bool:
        """Say whether the process is proven gone; False where nobody can tell from here, as on another host."""
        return self._process is not None and self._process.boot == identity().boot and gone(self._process)


def launched(environment: Mapping[str, str]) -> tuple[str, Origin] | None:
    """Return the run that ``profwin run`` began for all that its command starts, and the command's process.

    None where there is none, or its command is gone: what is left of its variables then means nothing.
    """
    name, _, text = environment.get("PROFWIN_LAUNCH", "").partition("/")
    origin = Origin.parse(text)
    return None if not name or origin.gone() else (name, origin)


def first_of_launch(run: Run) -> bool:
    """Say whether a process is the first of its launch that has a session: it makes the run's directory."""
    try:
        os.makedirs(os.path.dirname(run.directory), exist_ok=True)
        os.mkdir(run.directory)
    except OSError:
        return False
    return True


def without_ended_run(environment: dict[str, str]) -> str | None:
    """Take away what is left of a run whose first process is gone, as in a shell that a notebook had started.

    Args:
        environment: the variables; those of the run are removed.

    Returns:
        The run's name, None where nothing had to be removed.
    """
    parent = environment.get("PROFWIN_PARENT")
    if not parent or not Origin.parse(parent).gone():
        return None
    name = environment.get("PROFWIN_RUN", "")
    for variable in _VARIABLES:
        environment.pop(variable, None)
    return name


def attempt_of_launch(run: Run, least: int) -> tuple[int, int | None]:
    """Find which attempt of its run a process belongs to that inherits none.

    Ranks have no way to talk to each other when they are configured, but they see each other's journals: a rank joins
    the newest attempt if a process with the same launcher is at work in it and this rank is not yet there; else it is
    the first of the next. Ranks of other hosts and containers count as of the same launch, as long as their attempt
    lacks this rank.

    Args:
        run: with its directory, rank and process known.
        least: the least number, that of torchrun's restarts.

    Returns:
        The attempt, and the pid of a process that began an earlier one and is still at work, None if none is known.
    """
    newest = -1
    files: list[str] = []
    for file, number in _journals(run.directory):
        if number > newest:
            newest, files = number, []
        if number == newest:
            files.append(file)
    headers = [header for file in files if (header := _header(file)) is not None]
    absent = run.rank is not None and all(header.get("rank") != run.rank for header in headers)
    if newest >= least and absent and any(_together(run, header) for header in headers):
        return newest, None
    rivals = [header for header in headers if header.get("root") and _at_work(run, header)]
    return max(newest + 1, least), next((int(header["pid"]) for header in rivals), None)


def fellow_rank(run: Run, holder: Holder) -> bool:
    """Say whether a device's holder is another rank of this process's group: the same launcher started both."""
    from profwin.registry.holder import shortened  # it takes msgspec, which who starts others does without

    here = (run.boot, identity().namespace, shortened(run.name))
    return (holder.boot, holder.namespace, holder.run) == here and _parent(holder.pid) == os.getppid()


def _journals(directory: str) -> Iterator[tuple[str, int]]:
    folder = os.path.join(directory, "journal")
    try:
        files = os.listdir(folder)
    except OSError:
        return
    for file in files:
        if match := _ATTEMPT.search(file):
            yield os.path.join(folder, file), int(match[1])


def _header(path: str) -> dict[str, Any] | None:
    from profwin.journal import read

    try:
        for _ in range(_TRIES):
            header = next(read(path), None)
            if header is not None:
                return header
            time.sleep(_PAUSE)  # it was made this moment, unless its process died right then
    except (OSError, ValueError):
        pass
    return None


def _elsewhere(run: Run, header: Mapping[str, Any]) -> bool:
    return (header.get("boot"), header.get("host")) != (run.boot, host_name())


def _at_work(run: Run, header: Mapping[str, Any]) -> bool:
    pid, start = header.get("pid"), header.get("start")
    if _elsewhere(run, header) or not isinstance(pid, int) or not isinstance(start, int) or pid == run.pid:
        return False
    return not gone(ProcessIdentity(pid, start, run.boot, identity().namespace))


def _together(run: Run, header: Mapping[str, Any]) -> bool:
    return _elsewhere(run, header) or (_at_work(run, header) and _parent(header["pid"]) == os.getppid())


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0
