"""Alignment: where on one time axis the clocks of processes and hosts stand, and which cannot be compared.

Within one boot of a host all journals share the monotonic clock, so distances there are exact whatever was done to the
wall clock. Other hosts are placed by the estimates of their monotonic clocks that journals hold
(:mod:`profwin.evidence.clocks`); where there are none, by their wall clocks, as well as these are kept. Those that
contradict the run are set apart: what happened on them at the same time is not known.
"""

from __future__ import annotations

from profwin.evidence.clocks import DRIFT, Clocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from profwin.evidence.model import Clock
    from profwin.evidence.run import Process, Run

__all__ = ["EPOCH", "Alignment", "within"]

SECOND = 1_000_000_000
EPOCH = 10**18
"""Nanoseconds from 1970 to 2001. Where a recording's times are as large they are times of day."""
STRANGERS = 60 * SECOND
"""Processes of one launch that have no time in common, and lie further apart than this, have different clocks."""
SET = 1_000_000
"""A wall clock that moved by more than this between two processes is worth a word."""

MOST_NAMED = 8
"""Hosts in one note."""


def within(uncertainty: int) -> str:
    """Return an uncertainty in words, rounded up."""
    if uncertainty >= SECOND:
        return f"±{-(-uncertainty // 1_000_000) / 1000:.3f} s"
    return f"±{-(-uncertainty // 1000) / 1000:.10g} ms"


class Alignment:
    """Say where times are on one axis, for the processes of some runs and for other recordings.

    The axis is the wall clock of the host where the first run began.

    Attributes:
        notes: sentences on what could not be aligned, on clocks that were set or are wrong, and on how exactly others
            are known. Names are as in the files.
        origin: of the time axis, in wall-clock nanoseconds: the first time in the journals; 0 without journals.
        uncertainties: of the boots that are placed by estimates, how exact that is, at worst, for what was recorded
            or ran there.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.notes: list[str] = []
        self._offsets: dict[str, int] = {}
        self._moved: dict[str, int] = {}
        self._hosts: dict[str, str] = {}
        self._names: dict[str, str] = {}
        processes = [process for run in runs for process in run.processes]
        processes.sort(key=lambda each: (not each.root, each.begin - each.offset))
        for process in processes:
            boot = process.clock.boot
            offset = self._offsets.setdefault(boot, process.offset)
            self._hosts.setdefault(process.host, boot)
            self._names.setdefault(boot, process.host or "?")
            if abs(process.offset - offset) > SET:
                self._say(
                    f"the wall clock of host {process.host or '?'} was set during the run, by up to",
                    abs(process.offset - offset),
                )
        self._clocks = Clocks((each for run in runs for each in run.clocks), self._offsets)
        for run in runs:
            for attempt in run.attempts:
                self._compare([process for process in run.processes if process.attempt == attempt])
        self.uncertainties = self._measure(runs)
        self._explain(processes)
        self.origin = min((self.mover(each)(each.begin) for each in processes), default=0)
        self._next = max((self.mover(each)(each.last) for each in processes), default=EPOCH)
        self._set_apart(processes)

    def mover(self, process: Process) -> Callable[[int], int]:
        """Return what puts the wall-clock times of a process on the axis; it keeps their order."""
        return self._mover(process.clock.boot, process.offset)

    def host(self, process: Process) -> str:
        """Return a host's name, and how exactly its clock is known, if that was measured; empty if it has no name."""
        uncertainty = self.uncertainties.get(process.clock.boot)
        return process.host + (f" (clock {within(uncertainty)})" if uncertainty is not None and process.host else "")

    def by_host(self) -> dict[str, float]:
        """Return `uncertainties` by the hosts' names, in seconds."""
        return {self._names[boot]: uncertainty / SECOND for boot, uncertainty in self.uncertainties.items()}

    def is_apart(self, process: Process) -> bool:
        """Say whether the host's clock cannot be aligned with the others'."""
        return self._clocks.leads[process.clock.boot] in self._moved

    def place(self, clock: Clock, process: Process | None, begin: int, end: int, path: str) -> tuple[int, bool]:
        """Place a recording.

        Args:
            clock: of its times.
            process: which exported it, where a journal says so.
            begin: of its first event, on its clock.
            end: of its last.
            path: to name it by.

        Returns:
            What to add to its times, and whether it stands apart.
        """
        if clock.kind == "wall":
            boot = process.clock.boot if process is not None else self._hosts.get(clock.host)
            if boot is None:
                self._next = max(self._next, end)
                return 0, False
            offset = self._offsets[boot]
            if process is not None and abs(process.offset - offset) > SET:
                # Less is the time between two looks at the clocks, and has nothing to do with the recording's.
                offset = process.offset
            middle = (begin + end) // 2  # in one recording the clocks drift by less than can be seen
            shift = self._mover(boot, offset)(middle) - middle
            self._next = max(self._next, end + shift)
            return shift, self._clocks.leads[boot] in self._moved
        self.notes.append(f"{path}: its times are on a clock that is not known; it stands after everything else")
        return self._after(begin, end), True

    def _mover(self, boot: str, offset: int) -> Callable[[int], int]:
        """Return what puts a host's wall-clock times on the axis; they are monotonic times to which that was added."""
        lead, place = self._clocks.leads[boot], self._clocks.place
        further = self._offsets[lead] + self._moved.get(lead, 0)
        if lead == boot:
            return lambda time: time - offset + further
        return lambda time: place(boot, time - offset)[0] + further

    def _measure(self, runs: Sequence[Run]) -> dict[str, int]:
        found: dict[str, int] = {}
        for run in runs:
            for process, time in _moments(run):
                boot = process.clock.boot
                if self._clocks.leads[boot] != boot:
                    uncertainty = self._clocks.place(boot, time - process.offset)[1]
                    found[boot] = max(uncertainty, found.get(boot, 0))
        return found

    def _explain(self, processes: Sequence[Process]) -> None:
        """Say how exact clocks are, which wall clocks are wrong, and which estimates contradict each other."""
        exact: dict[str, list[str]] = {}
        wrong: dict[str, list[str]] = {}
        worst: dict[str, int] = {}
        for boot, uncertainty in self.uncertainties.items():
            name, lead = self._names[boot], self._clocks.leads[boot]
            exact.setdefault(lead, []).append(f"{name} {within(uncertainty)}")
            worst[lead] = max(uncertainty, worst.get(lead, 0))
            first = next(process for process in processes if process.clock.boot == boot)
            ahead = first.begin - self.mover(first)(first.begin)
            if abs(ahead) > uncertainty + SET:
                side = "ahead" if ahead > 0 else "behind"
                wrong.setdefault(lead, []).append(f"{name} {abs(ahead) / SECOND:.3f} s {side}")
        for lead, found in exact.items():
            most = f", at worst {within(worst[lead])}" if len(found) > 1 else ""
            self.notes.append(f"clocks measured against that of host {self._names[lead]}: {_listed(found)}{most}")
        for lead, found in wrong.items():
            self.notes.append(
                f"wall clocks that differ from that of host {self._names[lead]}, and are not used: {_listed(found)}"
            )
        leads = dict.fromkeys(self._clocks.leads.values())
        unmeasured = [self._names[lead] for lead in list(leads)[1:] if lead not in self._moved]
        if unmeasured:
            self.notes.append(f"placed by wall clocks, and as exact as these agree: {_listed(unmeasured)}")
        for pair in self._clocks.unsteady:
            one, other = (self._names.get(boot, "?") for boot in pair)
            self.notes.append(
                f"the clocks of hosts {one} and {other} drifted apart by more than {DRIFT} millionths, or one was"
                " asleep: between two measurements they are less exact"
            )

    def _compare(self, processes: list[Process]) -> None:
        """Find the hosts of one launch whose time has nothing in common with that of the process that began it."""
        spans: dict[str, tuple[int, int]] = {}
        for process in processes:
            lead, moved = self._clocks.leads[process.clock.boot], self.mover(process)
            begin, end = moved(process.begin), moved(process.last)
            first, last = spans.get(lead, (begin, end))
            spans[lead] = min(first, begin), max(last, end)
        roots = [self._clocks.leads[process.clock.boot] for process in processes if process.root] or list(spans)[:1]
        for lead, (first, last) in spans.items():
            gap = max(first - spans[roots[0]][1], spans[roots[0]][0] - last)
            if gap > STRANGERS and lead not in self._moved:
                self._moved[lead] = 0
                self._say(
                    f"host {self._names[lead]}: its clock cannot be aligned with that of the run's first host; it"
                    " stands after everything else. They have no time in common, and differ by at least",
                    gap,
                )

    def _set_apart(self, processes: list[Process]) -> None:
        leads = [self._clocks.leads[process.clock.boot] for process in processes]
        for lead in dict.fromkeys(each for each in leads if each in self._moved):
            these = [process for process, each in zip(processes, leads, strict=True) if each == lead]
            first = min(self.mover(each)(each.begin) for each in these)
            last = max(self.mover(each)(each.last) for each in these)
            self._moved[lead] = self._after(first, last)

    def _after(self, begin: int, end: int) -> int:
        """Return what moves a piece of time behind all others, a second after them."""
        shift = self._next + SECOND - begin
        self._next = max(self._next, end + shift)
        return shift

    def _say(self, what: str, nanoseconds: int) -> None:
        self.notes.append(f"{what} {nanoseconds / SECOND:.3f} s")


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return ", ".join(texts[:MOST_NAMED]) + more


def _moments(run: Run) -> Iterator[tuple[Process, int]]:
    """Yield when what was recorded, or ran, began and ended; of hosts where nothing did, their processes."""
    seen = set[str]()
    for collection in run.collections:
        seen.add(collection.process.boot)
        yield collection.process, collection.open
        yield collection.process, collection.open if collection.close is None else collection.close
    for interval in run.intervals:
        seen.add(interval.process.boot)
        yield interval.process, interval.enter
        yield interval.process, interval.enter if interval.exit is None else interval.exit
    for process in run.processes:
        if process.boot not in seen:
            yield process, process.begin
            yield process, process.last
