"""Journals of runs that never ran: written line by line, or whole runs of many ranks."""

from __future__ import annotations

import os
from typing import Any

import msgspec

WALL = 1_790_000_000_000_000_000
SECOND = 1_000_000_000
BOOT = "5f3a0000-0000-4000-8000-000000000000"
SETTINGS: dict[str, Any] = {
    "steps": "2,4",
    "backend": ["record"],
    "collect": "stage",
    "ranks": None,
    "roles": None,
    "stages": None,
}

_encode = msgspec.json.Encoder().encode


class JournalBuilder:
    """The journal of one process; times are seconds after the run's begin.

    Args:
        directory: of the run.
        role, rank, world, pid, attempt, boot, host, run, settings: of the process.
        clock: monotonic time at the run's begin, in ns: another for each boot.
        fields: that the first record has besides, or has otherwise; None leaves one out.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        role: str | None = "actor",
        rank: int | None = 0,
        *,
        world: int | None = None,
        pid: int | None = None,
        attempt: int = 0,
        boot: str = BOOT,
        host: str = "host",
        run: str = "a-run",
        settings: dict[str, Any] | None = None,
        clock: int = 1000 * SECOND,
        fields: dict[str, Any] | None = None,
    ) -> None:
        self.directory = os.fspath(directory)
        self.pid = 100 + (rank or 0) if pid is None else pid
        self.rank, self.role, self.clock = rank, role, clock
        name = f"rank{rank}" if rank is not None else "norank"
        self.name = f"journal/{name}_{role}_p{self.pid}-{boot[:4]}_a{attempt}.jsonl"
        self.path = os.path.join(self.directory, self.name)
        self.lines: list[bytes] = []
        self._next = 0
        head = {
            "wall": WALL, "schema": 1, "run": run, "attempt": attempt, "pid": self.pid, "start": 1, "boot": boot,
            "host": host, "uid": 0, "role": role, "rank": rank, "world": world, "root": False,
            "settings": SETTINGS | (settings or {}),
        }  # fmt: skip
        self.write("process", 0, **(head | (fields or {})))

    def number(self) -> int:
        """Return a number for the next interval or collection."""
        self._next += 1
        return self._next

    def write(self, kind: str, at: float, /, **fields: Any) -> JournalBuilder:
        """Append one record."""
        record = {"kind": kind, "t": self.clock + round(at * SECOND)}
        record |= {name: value for name, value in fields.items() if value is not None}
        self.lines.append(_encode(record) + b"\n")
        return self

    def raw(self, line: bytes) -> JournalBuilder:
        """Append bytes as they are."""
        self.lines.append(line)
        return self

    def step(self, step: int, at: float, *, side: str = "training", selected: bool = True, **fields: Any) -> None:
        """Let the process learn a step."""
        self.write("step", at, side=side, step=step, selected=selected, **fields)

    def recorded(
        self,
        what: str,
        name: str,
        step: int,
        begin: float,
        end: float,
        *,
        devices: tuple[str, ...] = ("gpu-0",),
        occurrence: int = 1,
        reason: str | None = "end",
        closed: float | None = None,
        backends: tuple[str, ...] = ("record",),
        trace: tuple[str, int] | None = None,
        opened: dict[str, Any] | None = None,
        close: dict[str, Any] | None = None,
        status: str | None = "ok",
        seconds: float = 0.001,
    ) -> tuple[int, int]:
        """Record a window or stage; return the numbers of its interval and its collection.

        Args:
            what: ``"window"`` or ``"stage"``.
            name: of both.
            step: of both.
            begin: of both.
            end: of the interval.
            devices: of both.
            occurrence: of both.
            reason: of the close; None: never closed.
            closed: when, if not at the end.
            backends: of the collection.
            trace: path and size of the export.
            opened: further fields of the record.
            close: further fields of the record.
            status: of the exit; None: there is none.
            seconds: what stopping took.
        """
        interval, collection = self.number(), self.number()
        self.write(
            "open", begin, collection=collection, purpose="rollout" if what == "window" else "training", name=name,
            step=step, backends=backends, devices=devices,
            **{"occurrence": occurrence, "segment": 1} | (opened or {}),
        )  # fmt: skip
        self.write(
            "enter", begin, id=interval, what=what, name=name, step=step, occurrence=occurrence, role=self.role,
            thread=self.pid, site="train.py:10", devices=devices, collection=collection,
        )  # fmt: skip
        early = closed is not None and closed < end
        if reason is not None and early:
            self._close(collection, closed or 0, reason, seconds, close, trace)
        if status is not None:
            self.write("exit", end, id=interval, status=status)
        if reason is not None and not early:
            self._close(collection, end if closed is None else closed, reason, seconds, close, trace)
        return interval, collection

    def _close(
        self, collection: int, at: float, reason: str, seconds: float, more: Any, trace: tuple[str, int] | None
    ) -> None:
        self.write("close", at, collection=collection, reason=reason, seconds=seconds, **(more or {}))
        if trace is not None:
            self.write("export", at, collection=collection, backend="torch", path=trace[0], bytes=trace[1], seconds=0.0)

    def window(self, step: int, begin: float, end: float, name: str = "rollout", **more: Any) -> tuple[int, int]:
        """Record a window."""
        return self.recorded("window", name, step, begin, end, **more)

    def stage(self, step: int, begin: float, end: float, name: str = "update", **more: Any) -> tuple[int, int]:
        """Record a stage."""
        return self.recorded("stage", name, step, begin, end, **more)

    def skipped(
        self, what: str, name: str, step: int, begin: float, end: float, reason: str, *,
        devices: tuple[str, ...] = ("gpu-0",), **more: Any,
    ) -> int:  # fmt: skip
        """Let a window or stage run unrecorded; return its number."""
        interval = self.number()
        self.write("skip", begin, id=interval, reason=reason, **{"waited": 0.0} | more)
        self.write(
            "enter", begin, id=interval, what=what, name=name, step=step, occurrence=1, role=self.role,
            thread=self.pid, site="train.py:20", devices=devices,
        )  # fmt: skip
        self.write("exit", end, id=interval, status="ok")
        return interval

    def end(self, at: float = 3600, reason: str = "exit") -> JournalBuilder:
        """Let the process end in order."""
        return self.write("end", at, reason=reason)

    def save(self) -> str:
        """Write the file and return its path."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "wb") as file:
            file.writelines(self.lines)
        return self.path


def write_trace(directory: str | os.PathLike[str], path: str, size: int) -> None:
    """Put a file of that size where a journal says that a trace is."""
    whole = os.path.join(directory, path)
    os.makedirs(os.path.dirname(whole), exist_ok=True)
    with open(whole, "wb") as file:
        file.write(b" " * size)


def make_run(
    directory: str | os.PathLike[str],
    ranks: int = 2,
    steps: int = 2,
    *,
    stages: tuple[str, ...] = ("old_log_prob", "update"),
    traces: bool = False,
) -> list[str]:
    """Write a run in which nothing is amiss: each rank has a device, and on it a window and then stages in each step.

    Args:
        directory: of the run.
        ranks: how many, each a process on a device of its own; eight share a host.
        steps: how many, from 1; all are recorded.
        stages: their names, in order.
        traces: whether each recording leaves a trace (of blanks).

    Returns:
        The paths of the journals.
    """
    paths = []
    for rank in range(ranks):
        host = rank // 8
        journal = JournalBuilder(
            directory, "actor", rank, world=ranks, boot=f"{host:04x}{BOOT[4:]}", host=f"host-{host}",
            settings={"steps": f"1-{steps}"}, clock=(1000 + host) * SECOND, fields={"root": rank == 0},
        )  # fmt: skip
        for step in range(1, steps + 1):
            begin = step * 100.0
            journal.step(step, begin, side="rollout", version=step - 1)
            journal.step(step, begin, version=step - 1, generated_with=[step - 1])
            for number, name in enumerate(("rollout", *stages)):
                folder = name if number == 0 else f"train/{name}"
                path = f"step_{step:06d}/{folder}/rank{rank}_actor_p{journal.pid}_n1_a0.pt.trace.json"
                if traces:
                    write_trace(directory, path, 10)
                journal.recorded(
                    "window" if number == 0 else "stage", name, step, begin + number, begin + number + 0.9,
                    devices=(f"GPU-{rank:08x}",), backends=("torch",) if traces else ("record",),
                    trace=(path, 10) if traces else None, opened={"version": step - 1},
                )  # fmt: skip
        journal.step(steps + 1, steps * 100.0 + 90, selected=False)
        journal.end(steps * 100.0 + 99)
        paths.append(journal.save())
    return paths
