"""Alignment: where on one time axis the clocks of processes and hosts stand, and which cannot be compared.

Within one boot of a host all journals share the monotonic clock, so distances there are exact whatever was done to the
wall clock. Hosts are aligned by their wall clocks, as well as these are kept. Those that contradict the run are set
apart: what happened on them at the same time is not known.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from profwin.evidence.model import Clock
    from profwin.evidence.run import Process, Run

__all__ = ["EPOCH", "Alignment"]

SECOND = 1_000_000_000
EPOCH = 10**18
"""Nanoseconds from 1970 to 2001. Where a recording's times are as large they are times of day."""
STRANGERS = 60 * SECOND
"""Processes of one launch that have no time in common, and lie further apart than this, have different clocks."""
SET = 1_000_000
"""A wall clock that moved by more than this between two processes is worth a word."""


class Alignment:
    """Say by how much times are to be moved, for the processes of some runs and for other recordings.

    Attributes:
        notes: sentences on what could not be aligned, and on clocks that were set. Names are as in the files.
        origin: of the time axis, in wall-clock nanoseconds: the first time in the journals; 0 without journals.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.notes: list[str] = []
        self._offsets: dict[str, int] = {}
        self._moved: dict[str, int] = {}
        self._hosts: dict[str, str] = {}
        processes = [process for run in runs for process in run.processes]
        for process in sorted(processes, key=lambda each: (not each.root, each.begin - each.offset)):
            boot = process.clock.boot
            offset = self._offsets.setdefault(boot, process.offset)
            self._hosts.setdefault(process.host, boot)
            if abs(process.offset - offset) > SET:
                self._say(
                    f"the wall clock of host {process.host or '?'} was set during the run, by up to",
                    abs(process.offset - offset),
                )
        for run in runs:
            for attempt in run.attempts:
                self._compare([process for process in run.processes if process.attempt == attempt])
        self.origin = min((each.begin + self.shift(each) for each in processes), default=0)
        self._next = max((each.last + self.shift(each) for each in processes), default=EPOCH)
        self._set_apart([process for process in processes if process.clock.boot in self._moved])

    def shift(self, process: Process) -> int:
        """Return what to add to the wall-clock times of a process."""
        boot = process.clock.boot
        return self._offsets[boot] - process.offset + self._moved.get(boot, 0)

    def is_apart(self, process: Process) -> bool:
        """Say whether the host's clock cannot be aligned with the others'."""
        return process.clock.boot in self._moved

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
            boot = process.clock.boot if process is not None else self._hosts.get(clock.host, "")
            shift = self._moved.get(boot, 0)
            if process is not None and abs(set_by := self._offsets[boot] - process.offset) > SET:
                # Less is the time between two looks at the clocks, and has nothing to do with the recording's.
                shift += set_by
            self._next = max(self._next, end + shift)
            return shift, boot in self._moved
        self.notes.append(f"{path}: its times are on a clock that is not known; it stands after everything else")
        return self._after(begin, end), True

    def _compare(self, processes: list[Process]) -> None:
        """Find the hosts of one launch whose time has nothing in common with that of the process that began it."""
        spans: dict[str, tuple[int, int]] = {}
        for process in processes:
            boot, shift = process.clock.boot, self._offsets[process.clock.boot] - process.offset
            first, last = spans.get(boot, (process.begin + shift, process.last + shift))
            spans[boot] = min(first, process.begin + shift), max(last, process.last + shift)
        roots = [process.clock.boot for process in processes if process.root] or list(spans)[:1]
        for boot, (first, last) in spans.items():
            gap = max(first - spans[roots[0]][1], spans[roots[0]][0] - last)
            if gap > STRANGERS and boot not in self._moved:
                self._moved[boot] = 0
                host = next(process.host for process in processes if process.clock.boot == boot)
                self._say(
                    f"host {host or '?'}: its clock cannot be aligned with that of the run's first host; it stands"
                    " after everything else. They have no time in common, and differ by at least",
                    gap,
                )

    def _set_apart(self, processes: list[Process]) -> None:
        for boot in dict.fromkeys(process.clock.boot for process in processes):
            these = [process for process in processes if process.clock.boot == boot]
            first = min(each.begin + self.shift(each) for each in these)
            last = max(each.last + self.shift(each) for each in these)
            self._moved[boot] = self._after(first, last)

    def _after(self, begin: int, end: int) -> int:
        """Return what moves a piece of time behind all others, a second after them."""
        shift = self._next + SECOND - begin
        self._next = max(self._next, end + shift)
        return shift

    def _say(self, what: str, nanoseconds: int) -> None:
        self.notes.append(f"{what} {nanoseconds / SECOND:.3f} s")
