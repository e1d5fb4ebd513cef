"""Remotes: what processes recorded for a window of another process, held against what that one heard of it.

A driver's window over actors is recorded by windows in the actors' processes. The driver's journal has what each of
them answered (``remote``), and their journals what they did (``enter``), with the same token.
"""

from __future__ import annotations

from profwin.evidence import codes_ray as codes
from profwin.evidence.clocks import Clocks
from profwin.evidence.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from profwin.evidence.incidents import Remote
    from profwin.evidence.run import Collection, Interval, Process, Run

    Identity: TypeAlias = tuple[str | None, int | None, int | None]
    Moment: TypeAlias = tuple[Process, int]

__all__ = ["remotes"]


def remotes(run: Run) -> Iterator[Finding]:
    """Say which recordings for other processes are missing, not known there, or not within their windows.

    Args:
        run: the run.
    """
    windows: dict[str, list[Interval]] = {}
    for each in run.intervals:
        if each.token is not None:
            windows.setdefault(each.token, []).append(each)
    if windows or run.remotes:
        comparison = _Comparison(run, windows)
        yield from comparison.answers()
        yield from comparison.strangers()
        yield from comparison.absent()


class _Comparison:
    """What the journals of a run say of each other.

    Args:
        run: the run.
        windows: by their tokens.
    """

    def __init__(self, run: Run, windows: dict[str, list[Interval]]) -> None:
        self._run, self._windows = run, windows
        self._clocks = Clocks(run.clocks, dict.fromkeys(process.boot for process in run.processes))
        self._processes: dict[Identity, list[Process]] = {}
        self._pids: dict[str, list[Process]] = {}
        for process in run.processes:
            self._processes.setdefault((process.boot, process.pid, process.start), []).append(process)
            self._pids.setdefault(str(process.pid), []).append(process)
        self._told: dict[str, list[Remote]] = {}
        for each in run.remotes:
            self._told.setdefault(each.token, []).append(each)
        self._absent: dict[str, int] = {}  # sentences on journals that are not here, with how many windows each is of

    def answers(self) -> Iterator[Finding]:
        """Compare each recording that was confirmed with that of the process which did."""
        for each in self._run.remotes:
            if each.status != "recording":
                continue
            journals = self._processes.get((each.boot, each.pid, each.start))
            if journals is None:
                self._note_absent(f"{_who(each)}: {self._why(each)}")
                continue
            recorded = [window for window in self._windows.get(each.token, ()) if window.collections]
            for window in recorded:
                yield from self._outside(each, window)
            if recorded:
                continue
            if all(self._is_short(journal, (each.process, each.at)) for journal in journals):
                self._note_absent(f"{_who(each)}: its journal here ends before")
                continue
            detail = f"{_what(each)}: {_who(each)}"
            yield Finding(codes.REMOTE_MISSING, detail, self._run.path(journals[-1].journal), data=_data(each))

    def strangers(self) -> Iterator[Finding]:
        """Look for recordings of which no driver knows. One that was killed may have heard of none any more."""
        drivers = {_driver(each.token): each.process for each in self._run.remotes}
        for token, windows in self._windows.items():
            recorded = [window for window in windows if window.collections]
            if token in self._told or not recorded:
                continue
            name = _driver(token)
            known = [drivers[name]] if name in drivers else self._of_pid(name, recorded[0].process)
            if not known:
                self._note_absent(f"pid {_pid(name)}, for which processes here recorded: its journal is not here")
            elif not any(self._broke_off(process, recorded[-1]) for process in known):
                window = recorded[0]
                detail = f"window {window.name!r} of step {window.step} by {window.process.label}"
                detail += f", for {known[0].label}"
                data = {"step": window.step, "window": window.name}
                yield Finding(codes.REMOTE_UNKNOWN, detail, self._run.path(window.process.journal), data=data)

    def absent(self) -> Iterator[Finding]:
        """Say which journals are not here, once each."""
        for sentence, count in self._absent.items():
            detail = f"{sentence} ({count} window{'s' * (count > 1)})"
            yield Finding(codes.NOT_COLLECTED, detail, self._run.path("journal"))

    def _note_absent(self, sentence: str) -> None:
        self._absent[sentence] = self._absent.get(sentence, 0) + 1

    def _why(self, each: Remote) -> str:
        if each.run is not None and each.run != each.process.run:
            return f"its journal is in the folder of its own run, {each.run!r}"
        return "its journal is not here"

    def _of_pid(self, name: str, other: Process) -> list[Process]:
        return [process for process in self._pids.get(_pid(name), ()) if process is not other]

    def _is_short(self, journal: Process, moment: Moment) -> bool:
        """Say whether a journal may have been copied before that moment, or its process has ended before."""
        return journal.end is None and not self._later((journal, journal.last), moment)

    def _broke_off(self, driver: Process, window: Interval) -> bool:
        """Say whether a driver's journal ends before that of a window could have come into it."""
        last = window.enter if window.exit is None else window.exit
        return self._is_short(driver, (window.process, last))

    def _outside(self, told: Remote, window: Interval) -> Iterator[Finding]:
        """Compare a recording with the driver's; one that others of its process had a part in is not the driver's."""
        driver = told.collection
        if driver is None:
            return
        for each in window.collections:
            if any(other.what == "window" and other.token != window.token for other in each.intervals):
                continue
            for problem in self._problems(told, driver, each):
                detail = f"{_what(told)}, recorded by {window.process.label}: {problem}"
                yield Finding(codes.REMOTE_OUTSIDE, detail, self._run.path(window.process.journal), data=_data(told))

    def _problems(self, told: Remote, driver: Collection, each: Collection) -> Iterator[str]:
        if each.step != driver.step:
            yield f"it is of step {each.step}"
        if driver.version is not None and each.version != driver.version:
            yield f"it is of version {each.version} of the weights, and the window of {driver.version}"
        if self._later((driver.process, driver.open), (each.process, each.open)):
            yield "it was begun before the window"
        end = self._end(told, driver)
        if end is not None and each.close is not None and self._later((each.process, each.close), end):
            yield "it was ended after the window"

    def _end(self, told: Remote, driver: Collection) -> Moment | None:
        """Return when a recording was over by what the driver knows; None where it could not know that."""
        ends = {each.status: each for each in self._told[told.token]}
        if "stopped" in ends:
            return driver.process, ends["stopped"].at
        if "died" in ends or driver.error is not None:
            return None  # what Ray takes for dead may live on, and what is late or has failed may record on
        return None if driver.close is None else (driver.process, driver.close)

    def _later(self, one: Moment, other: Moment) -> bool:
        """Say whether one moment is certainly later than another one."""
        (first, one_at), (second, other_at) = one, other
        one_at, other_at = first.monotonic(one_at), second.monotonic(other_at)
        if first.boot == second.boot:
            return one_at > other_at
        if self._clocks.leads.get(first.boot) != self._clocks.leads.get(second.boot):
            return False
        one_at, one_uncertain = self._clocks.place(first.boot, one_at)
        other_at, other_uncertain = self._clocks.place(second.boot, other_at)
        return one_at - other_at > one_uncertain + other_uncertain


def _driver(token: str) -> str:
    return token.rpartition(".")[0]


def _pid(driver: str) -> str:
    return driver.rpartition("-")[2]


def _who(told: Remote) -> str:
    host = "" if told.host is None else f" on host {told.host!r}"
    return f"{told.engine or 'a process'}, pid {told.pid}{host}"


def _what(told: Remote) -> str:
    if told.collection is None:
        return f"a window of {told.process.label}"
    return f"window {told.collection.name!r} of step {told.collection.step} by {told.process.label}"


def _data(told: Remote) -> dict[str, object]:
    if told.collection is None:
        return {}
    return {"step": told.collection.step, "window": told.collection.name, "driver": told.process.journal}
