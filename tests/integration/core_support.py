"""Scripts in processes of their own, for tests of the core, and what their journals say."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profwin.journal import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 100.0

PRELUDE = f"""
import asyncio, gc, json, os, signal, sys, threading, time, warnings
sys.path[:0] = [{str(ROOT)!r}, {str(Path(__file__).parent)!r}]
import profwin
from profwin import paused, rollout_window, span, training_stage, training_step

def say(*words):
    print(*words, flush=True)

def hear():
    return sys.stdin.readline().strip()
"""


class Child:
    """A script in a process of its own, with the public names, ``say`` and ``hear`` at hand.

    Args:
        script: Python statements.
        environment: further variables.
    """

    def __init__(self, script: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            bufsize=0,
        )
        self.pid = self.process.pid
        self._rest = b""

    def hear(self, patience: float = PATIENCE) -> str:
        """Return the next line that the script says."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + patience
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the script says nothing")
            block = os.read(self.process.stdout.fileno(), 65536)
            if not block:
                raise EOFError(self._last_words())
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def say(self, text: str = "") -> None:
        """Send a line to the script."""
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")

    def kill(self, number: int = signal.SIGKILL) -> int:
        """Send a signal and wait for the end; return the status."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def finish(self, patience: float = PATIENCE) -> tuple[int, str, str]:
        """Wait for the end; return the status and what was said on both outputs."""
        out, err = self.process.communicate(timeout=patience)
        return self.process.returncode, (self._rest + out).decode(), err.decode()

    def _last_words(self) -> str:
        assert self.process.stderr is not None
        return f"the script ended ({self.process.wait(PATIENCE)}): {self.process.stderr.read().decode()}"

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                pass


def run(script: str, *, status: int = 0, patience: float = PATIENCE, **environment: str) -> tuple[str, str]:
    """Run a script to its end, which must have the given status; return what it said on both outputs."""
    with Child(script, **environment) as child:
        code, out, err = child.finish(patience)
    assert code == status, f"status {code}\n{out}\n{err}"
    return out, err


class Evidence:
    """What the journals below an output directory say, over all runs and processes.

    Attributes:
        records: every record, in order of time, each with the ``pid`` of its process.
    """

    def __init__(self, output: Path) -> None:
        self.records: list[dict[str, Any]] = []
        for path in sorted(Path(output).glob("*/journal/*.jsonl")):
            journal = list(read(str(path)))
            if not journal:
                continue  # it is being made
            assert journal[0]["kind"] == "process"
            for record in journal:
                self.records.append({**record, "pid": journal[0]["pid"]})
        self.records.sort(key=lambda record: record["t"])

    def of(self, kind: str, **values: Any) -> list[dict[str, Any]]:
        """Return the records of a kind that have these values."""
        return [
            record
            for record in self.records
            if record["kind"] == kind and all(record.get(name) == value for name, value in values.items())
        ]

    def skips(self) -> list[tuple[str, str]]:
        """Return the name and the reason of every interval that ran unrecorded."""
        return [(record["name"], skip["reason"]) for record, skip in self._unrecorded() if skip is not None]

    def recorded(self) -> list[str]:
        """Return the names of the windows and stages that something recorded, by the time of their entry."""
        return [record["name"] for record in self.of("enter") if "collection" in record and record["what"] != "span"]

    def collections(self, **values: Any) -> list[dict[str, Any]]:
        """Return each collection: its ``open`` record with ``end`` and ``reason``, None where it was never closed."""
        found = []
        for opened in self.of("open", **values):
            closed = self.of("close", pid=opened["pid"], collection=opened["collection"])
            assert len(closed) < 2, "a collection was closed twice"
            end, reason = (closed[0]["t"], closed[0]["reason"]) if closed else (None, None)
            found.append({**opened, "end": end, "reason": reason})
        return found

    def check(self, *, killed: tuple[int, ...] = ()) -> None:
        """Assert that nothing overlapped on a device, all was closed, and every entered body had its exit.

        Args:
            killed: processes that were killed.
        """
        devices: dict[str, list[tuple[int, int, int]]] = {}
        for each in self.collections():
            assert each["end"] is not None or each["pid"] in killed, f"never closed: {each}"
            for device in each["devices"] or [f"process {each['pid']}"]:
                devices.setdefault(device, []).append((each["t"], each["end"] or each["t"], each["pid"]))
        for device, spans in devices.items():
            spans.sort()
            for (_, end, _), (begin, _, _) in pairwise(spans):
                assert end <= begin, f"collections overlap on {device}"
        entered = Counter((record["pid"], record["id"]) for record in self.of("enter") if record["pid"] not in killed)
        left = Counter((record["pid"], record["id"]) for record in self.of("exit") if record["pid"] not in killed)
        assert entered == left, "an interval lacks its exit, or has two"
        for record, skip in self._unrecorded():
            assert skip is not None, f"neither recorded nor skipped: {record}"

    def _unrecorded(self) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
        skips = {(record["pid"], record["id"]): record for record in self.of("skip")}
        return [
            (record, skips.get((record["pid"], record["id"])))
            for record in self.of("enter")
            if "collection" not in record
        ]


HOLDER = """
profwin.configure(steps="1-3", output={output!r}, devices="pretend:card", run={run!r})
with {block}:
    say("inside")
    hear()
say("left")
hear()
profwin.shutdown()
"""


def holder(output: Path, block: str = "rollout_window(1)", run: str = "other") -> Child:
    """Start a process that holds the device ``pretend:card`` until it is spoken to; it has said "inside" already."""
    if "stage" in block:
        block = f"training_step(1), {block}"
    child = Child(HOLDER.format(output=str(output), block=block, run=run))
    try:
        assert child.hear() == "inside"
    except BaseException:
        child.__exit__()
        raise
    return child


@contextmanager
def once_waiting(act: Callable[[], object], seconds: float = 0.1) -> Iterator[None]:
    """Act from a thread, some time after this process has begun to wait for a device, or the body is over without."""
    over, before = threading.Event(), descriptors()

    def watch() -> None:
        while not any(name.endswith(".fifo") for name in descriptors() - before) and not over.wait(0.01):
            pass
        over.wait(seconds)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def descriptors() -> set[str]:
    """Return the files that this process has open; a deleted one is the board of a session not yet collected."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if target.startswith("/") and not target.startswith(("/proc", "/dev")) and not target.endswith("(deleted)"):
            found.add(target)
    return found
