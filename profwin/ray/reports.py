"""Waiting for the reports that nsys writes on the nodes, before the cluster or the driver ends."""

from __future__ import annotations

import atexit
import os
import sys
import time
from dataclasses import dataclass, field
from importlib import import_module

from profwin.errors import SettingError, StateError
from profwin.ray.lookout import Lookout, names_process
from profwin.ray.presence import needs_ray
from profwin.step import checked_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from profwin.ray.nodes import Node
    from profwin.session import Session

__all__ = ["Reports", "Watch", "owe", "wait_for_reports"]

SECONDS = 60.0
SETTLED = 2.0
"""Seconds in which a report does not grow that is taken for finished."""
_PAUSE, _PATIENCE = 0.5, 5.0
_owed: list[tuple[int, int | None, bool]] = []
"""The calls of `nsight` since the last time that reports were waited for: when, and what `owe` was given."""


@dataclass
class Reports:
    """What :func:`wait_for_reports` has found.

    Attributes:
        files: the sizes of the reports that are finished, by node and path.
        missing: what is not there, empty, or still growing, in words; empty where all is well.
    """

    files: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


class Watch:
    """Follow one node's reports from look to look.

    Args:
        folder: where they are.
        limit: after how many capture ranges nsys is done in a process; None: never.
        named: whether a report's name has the process's number in it.

    Attributes:
        finished: the sizes of those that are, by name.
        missing: what is not there, in words.
        place: device and inode of the folder, as it was last seen; None where there is none.
    """

    def __init__(self, folder: str, limit: int | None, named: bool) -> None:
        self.folder, self._limit, self._named = folder, limit, named
        self.place: object = None
        self._since: dict[str, tuple[object, float]] = {}
        self.finished: dict[str, int] = {}
        self.missing: list[str] = ["it has not answered"]

    def take(self, seen: Mapping[str, Any], now: float) -> None:
        """Take what was seen, at a time of the monotonic clock."""
        files = seen["files"]
        self.place = seen["folder"]
        self._since = {
            name: (state, self._since[name][1] if self._since.get(name, (None,))[0] == state else now)
            for name, state in files.items()
        }
        self.finished, self.missing = {}, []
        for name, (size, mtime) in sorted(files.items()):
            if name.endswith(".qdstrm"):
                self.missing.append(f"{name} has not been made into a report")
            elif not size:
                self.missing.append(f"{name} is empty")
            elif max(now - self._since[name][1], (seen["now"] - mtime) / 1e9) < SETTLED:
                self.missing.append(f"{name} is still growing")
            else:
                self.finished[name] = size
        reports = [name for name in files if not name.endswith(".qdstrm")]
        due = {pid: count if self._limit is None else min(count, self._limit) for pid, count in seen["due"].items()}
        if self._named:
            for pid, count in due.items():
                mine = sum(names_process(name, pid) for name in reports)
                self._compare(f"of process {pid} ", mine, count, seen, [pid])
        else:
            self._compare("", len(reports), sum(due.values()), seen, list(due))

    def _compare(self, whose: str, there: int, count: int, seen: Mapping[str, Any], pids: list[int]) -> None:
        if there < count:
            living = ", ".join(str(pid) for pid in pids if pid in seen["alive"])
            why = f"; process {living} still runs, and nsys may write when it ends" if living else ""
            self.missing.append(f"{there} of {count} reports {whose}are there{why}")


def wait_for_reports(timeout: float = SECONDS, *, expected: int | None = None) -> Reports:
    """Wait until the reports of workers under nsys are written, on all nodes.

    Call it in the driver after the last window, while the actors that record still live: where a worker ends, Ray 2.60
    kills its process group 0.2 s later, nsys with it (measured; on by default since Ray's pull request 64407), and so
    does ``ray.shutdown()``: reports are lost or empty (ray issue 60904). So let nsys write them before: see
    :func:`profwin.ray.nsight`. Where that was used in this process the end of the session waits, unless this was called
    since.

    A report is taken for finished when it is not empty and has not grown for two seconds, and no ``.qdstrm`` is left.
    How many there are to be is known from the journals of the session's run: one for each capture range of each process
    on the node. What is missing at the end is one finding, ``report-missing``. nsys was not run here.

    Args:
        timeout: seconds.
        expected: how many reports there are to be on all nodes at least, beside what the journals say.

    Raises:
        SettingError: an argument is wrong.
        StateError: this process is not connected to Ray.
        ProfwinError: Ray is not installed.
    """
    needs_ray()
    ray = import_module("ray")
    seconds = checked_seconds(timeout, "timeout") or SECONDS
    if expected is not None and (type(expected) is not int or expected < 0):
        raise SettingError("expected", expected, "a whole number from 0, or None")
    if not ray.is_initialized():
        raise StateError("profwin.ray.wait_for_reports", "call it before ray.shutdown(), after ray.init(...)")
    from profwin.configuration import current

    return _waited(seconds, expected, current())


def owe(session: Session | None, windows: int | None, named: bool) -> None:
    """Take note that there will be reports, for which the end of the session waits.

    Args:
        session: of this process.
        windows: after how many capture ranges nsys is done in a worker; None: never.
        named: whether the reports' names have the process's number in them.
    """
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)  # Ray ends itself so, too: what was registered last is run first
    if session is not None and _end not in session.endings:
        session.endings.append(_end)
    _owed.append((time.time_ns(), windows, named))


def _at_exit() -> None:
    """Wait as the interpreter ends, before Ray does."""
    from profwin.configuration import current

    _end(current())


def _end(session: Session | None) -> None:
    """Wait at the end of the session, if somebody has to. Raises under Ctrl-C alone."""
    ray = sys.modules.get("ray")
    if not _owed or ray is None:
        return
    try:
        if ray.is_initialized():
            _waited(SECONDS, None, session)
        elif session is not None:
            detail = "Ray was shut down before nsys's reports were waited for: call profwin.shutdown() first"
            session.finding("report-missing", detail)
    except Exception as error:  # noqa: BLE001  # the session ends, whatever the cluster says
        if session is not None:
            session.warn("reports", f"nsys's reports could not be waited for: {error}")
    finally:
        _owed.clear()


def _waited(seconds: float, expected: int | None, session: Session | None) -> Reports:
    result = _wait(seconds, expected, session)
    _owed.clear()
    if result.missing and session is not None:
        session.finding("report-missing", "; ".join(result.missing)[:2000])
    return result


def _wait(seconds: float, expected: int | None, session: Session | None) -> Reports:
    from profwin.ray.nodes import answers, line, nodes, pinned

    deadline = time.monotonic() + seconds
    since = min((when for when, _, _ in _owed), default=0)
    limits = [limit for _, limit, _ in _owed if limit is not None]
    limit = max(limits) if limits and len(limits) == len(_owed) else None
    directory = "" if session is None else session.run.directory
    handles, watches = {}, {}
    asked: dict[Node, Any] = {}
    broken: dict[Node, str] = {}
    for node in nodes():
        folder = os.path.join(node.session, "logs", "nsight")
        handles[node] = pinned(Lookout, node, folder, directory, since)
        watches[node] = Watch(folder, limit, all(named for _, _, named in _owed))
    try:
        while True:
            for node, handle in handles.items():
                if node not in asked and node not in broken:
                    asked[node] = handle.look.remote()
            for node, answer in answers(asked, min(_PATIENCE, max(_PAUSE, deadline - time.monotonic()))).items():
                if isinstance(answer, TimeoutError):
                    continue  # what was seen there the last time still counts
                del asked[node]
                if isinstance(answer, Exception):
                    broken[node] = line(answer)
                else:
                    watches[node].take(answer, time.monotonic())
            result = _result(watches, broken, expected)
            if len(result.missing) == len(broken) or time.monotonic() >= deadline:
                return result
            if session is not None:
                session.warn("waiting for reports", f"waiting up to {seconds:.3g} s for nsys: {result.missing[0]}")
            time.sleep(min(_PAUSE, max(0.0, deadline - time.monotonic())))
    finally:
        for handle in handles.values():
            import_module("ray").kill(handle)


def _result(watches: Mapping[Node, Watch], broken: Mapping[Node, str], expected: int | None) -> Reports:
    result = Reports(missing=[f"node {node}: {why}" for node, why in broken.items()])
    # Nodes of one host have one folder, which each of them has looked into at another moment.
    shown: dict[object, Node] = {}
    for node, watch in watches.items():
        if node in broken:
            continue
        result.missing += [f"node {node}: {each}" for each in watch.missing]
        first = node if watch.place is None else shown.setdefault((node.host, node.address, watch.place), node)
        result.files |= {f"{first}: {watch.folder}/{name}": size for name, size in watch.finished.items()}
    if expected is not None and len(result.files) < expected:
        result.missing.append(f"{len(result.files)} of {expected} reports are there")
    return result
