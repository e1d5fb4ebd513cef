"""The journal: what every process did, one JSON object a line, and the schema of those objects.

One file a process, appended to with one ``write`` a record, so that a kill leaves at most a truncated last line (over
160,000 records written under random SIGKILL none was torn, measured). Times are ``CLOCK_MONOTONIC`` nanoseconds, which
all processes of a host share; the first record anchors them to the wall clock.
"""

from __future__ import annotations

import os
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["FIELDS", "SCHEMA", "Journal", "read"]

SCHEMA = 1
"""Version of the records: grows when a field changes its meaning or goes, not for new fields and kinds alone."""

FIELDS: dict[str, tuple[str, ...]] = {
    # Always the first record of a file. `wall` and `t` are read together: wall time = wall + (t' - t).
    "process": (
        "schema",
        "run",
        "attempt",
        "pid",
        "start",
        "boot",
        "host",
        "uid",
        "role",
        "rank",
        "world",
        "wall",
        "root",
        "settings",
    ),
    # This process learnt or published the step of one side; `selected` says whether it is to be recorded.
    # `generated_with` are the weight versions that the samples of a training step were generated with.
    "step": ("side", "step", "selected", "version", "generated_with"),
    # A window, stage or span begins and ends in this process's code. `enter` is written right before the body, `exit`
    # right after. `collection` says what records it; where it is absent, a `skip` with the same `id` stands before.
    # `token` is of another process's `remote`, which had this one begin it.
    "enter": ("id", "what", "name", "step", "occurrence", "role", "thread", "site", "devices", "collection", "token"),
    "exit": ("id", "status", "error"),
    # A collection. `open` is written after the device locks are held and before any profiler starts, `close` after all
    # have stopped and before the locks are released: the interval between them contains everything that was recorded.
    "open": (
        "collection",
        "purpose",
        "name",
        "step",
        "occurrence",
        "segment",
        "backends",
        "devices",
        "waited",
        "version",
        "unlocked",
    ),
    "close": ("collection", "reason", "seconds", "error"),
    # The interval `id`, already entered, is recorded by that collection from here on, after a pause.
    "join": ("id", "collection"),
    # The interval `id` runs unrecorded.
    "skip": ("id", "reason", "device", "holder", "waited", "detail"),
    # A finished trace, its path relative to the run's directory; or why there is none. `group_timeout`: after how many
    # seconds collectives of the default process group give up, since other ranks may wait in one meanwhile.
    "export": ("collection", "backend", "path", "bytes", "seconds", "error", "group_timeout"),
    # A stage began inside an open window of its device: the window was closed there.
    "overlap": ("id", "stage", "stage_site", "window", "window_site"),
    # The interval `id` waits for a device and asks its holder, another process of the run, to let go of it: the answer
    # is "sent", or "refused" where the holder cannot be asked.
    "ask": ("id", "device", "holder", "answer"),
    # Another process, of that pid, asked for a device of the collection, for a window or stage of its own.
    "asked": ("collection", "asker", "purpose", "name", "step"),
    # An engine is about to record on these devices; its stop was confirmed, or it is proven gone: that may be noted by
    # whoever takes the device next.
    "mark": ("devices", "processes"),
    "confirmed": ("devices", "processes"),
    # What another process, an actor or a node's agent, answered when it was told to record for the collection, in a
    # window of its own that is called `token` in its journal: `status` is "recording", then also who that process is,
    # "refused", or "unknown" where no answer came; at the end "stopped", or "died" where it cannot have been whole.
    "remote": ("collection", "token", "engine", "status", "pid", "start", "boot", "host", "run"),
    # A device's lock file was deleted or replaced while this process held it: exclusion cannot be proved for that
    # interval.
    "lost": ("device", "collection"),
    # New weights are on their way to the engines: right before the body of a weight sync, and right after it. `status`
    # is "error" where they did not arrive, or are not known to have.
    "sync": ("id", "version", "name", "side", "devices"),
    "synced": ("id", "status", "error"),
    # Windows or stages of this name are not in every step, by the program's design: a plan says so.
    "uneven": ("what", "name"),
    # The monotonic clock of the boot `boot` of another host was `offset` nanoseconds ahead of this one's when this one
    # showed `at`, give or take `uncertainty`.
    "clock": ("boot", "host", "at", "offset", "uncertainty"),
    # `paused()` began and ended in this process.
    "paused": (),
    "resumed": (),
    "finding": ("code", "detail"),
    # The last record of a process that ended in order.
    "end": ("reason", "dropped"),
}
"""Fields of each kind of record beside ``kind`` and ``t``. A field that is null is left out."""


class Journal:
    """Append records to this process's file. Never raises: what cannot be written is counted and said once.

    The file and its directory are made with the first record. Safe from any thread: one ``write`` a record on an
    ``O_APPEND`` descriptor. A forked child must make a journal of its own.

    Args:
        path: the file; it must not exist, else a number is added to its name.
        header: fields of the first record.
    """

    def __init__(self, path: str, header: dict[str, Any]) -> None:
        import msgspec

        self.path = path
        self.dropped = 0
        self._header = header
        self._descriptor = -1
        self._encode = msgspec.json.Encoder().encode
        self._opening = threading.Lock()
        self._failed = False
        self._closed = False

    def write(self, kind: str, **fields: Any) -> int:
        """Append one record and return its time in nanoseconds."""
        if self._closed:
            return time.monotonic_ns()
        if None in fields.values():
            fields = {name: value for name, value in fields.items() if value is not None}
        now = 0
        try:
            if self._descriptor < 0:
                self._open()
            now = time.monotonic_ns()
            line = self._encode({"kind": kind, "t": now, **fields}) + b"\n"
            written = os.write(self._descriptor, line)
            if written != len(line):
                # The disk is full. Half a record would spoil the next one, which is appended to it.
                os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
                raise OSError("short write")  # noqa: TRY301  # handled like any failed write
        except (OSError, TypeError, ValueError) as error:
            self._drop(error)
        return now

    @property
    def started(self) -> bool:
        """Whether the file was made."""
        return self._descriptor >= 0

    def close(self) -> None:
        """Close the file. Later records are dropped in silence: of blocks that outlive their session."""
        self._closed = True
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        with self._opening:
            if self._descriptor >= 0:
                return
            if self._failed:
                raise OSError("the journal could not be opened")
            self._failed = True
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            stem, extension = os.path.splitext(self.path)
            descriptor = -1
            for number in range(1000):
                self.path = stem + (f".{number}" if number else "") + extension
                try:
                    descriptor = os.open(
                        self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644
                    )
                    break
                except FileExistsError:
                    continue
            header = {"kind": "process", "t": time.monotonic_ns(), "wall": time.time_ns(), **self._header}
            line = self._encode(header) + b"\n"
            try:
                if os.write(descriptor, line) != len(line):
                    raise OSError("short write")  # noqa: TRY301  # cleaned up after like any failed write
            except BaseException:
                os.close(descriptor)
                os.unlink(self.path)
                raise
            self._descriptor, self._failed = descriptor, False

    def _drop(self, error: Exception) -> None:
        self.dropped += 1
        if self.dropped == 1:
            import logging

            logging.getLogger("profwin").warning(
                "profwin cannot write its journal %s: %s; this run will lack evidence", self.path, error
            )


def read(path: str) -> Iterator[dict[str, Any]]:
    """Yield the records of one journal, in file order.

    A last line without its newline is a killed process's and is left out. Any other line that is not a JSON object
    raises ``ValueError`` with the path and the line number. Unknown kinds and fields are passed through.
    """
    import json

    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if not isinstance(record, dict) or "kind" not in record:
                raise ValueError(f"{path}:{number}: not a journal record")
            yield record
