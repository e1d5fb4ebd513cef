"""What tests of faults on a Ray cluster look at: which device is free, and since when, and what the evidence says."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from check_support import codes
from core_support import Evidence

from profwin.registry.process import gone, identity
from profwin.registry.survey import survey
from profwin.testing import assert_no_overlap, read_record

PATIENCE = 200.0
"""Seconds; for what Ray does after a death, on a busy machine."""

LASTING = """
class Lasting:
    def train(self, path):  # until a file is there
        while not os.path.exists(path):
            self.update()
            time.sleep(0.02)

    @training_stage
    def update(self):
        return os.getpid()
"""
"""A trainer that goes on while something else dies."""


def taken(device, host=None):
    """Say why a pretend device of a host cannot be had: ``held`` or ``unknown``; None: it can. Disturbs nobody."""
    directory = os.environ["PROFWIN_LOCK_DIR"] + ("" if host is None else f"-host-{host}")
    state = next((each.state for each in survey(directory) if each.key == f"pretend-{device}"), "free")
    return None if state == "free" else state


def until(what, patience=PATIENCE):
    """Wait until something is so."""
    deadline = time.monotonic() + patience
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def frees(pid, device, host=None, *, cause=None, held="held", orderly=None):
    """Assert that a device is free when a process has ended, and not before; print how long each took.

    Args:
        pid: of the process that records on it.
        device: its name, without ``pretend:``.
        host: of which host's registry.
        cause: called first, it brings about the process's death; default: it is killed with SIGKILL.
        held: why the device cannot be had while the process lives.
        orderly: the output directory, if Ray may let the process run to its end instead of killing it (it does one or
            the other when a driver is gone): then the process may also free the device itself, when it has stopped.
    """
    process, path = identity(pid), Path(f"/proc/{pid}/task")
    assert taken(device, host) == held
    began = time.monotonic()
    if cause is None:
        os.kill(pid, signal.SIGKILL)
    else:
        cause()
    dead = None
    while True:
        ended = not _threads(path)  # nothing of it holds a file any more
        reason = taken(device, host)
        now = time.monotonic()
        if dead is None and gone(process):
            dead = now
        if reason is None and dead is None and orderly is not None:
            until(lambda: Evidence(orderly).of("close", pid=pid, reason="exit"))
            until(lambda: gone(process))
            print(f"{device}: given back {now - began:.4f} s after, by the process itself")
            return
        if reason is None:
            assert dead is not None, "its device was free while it lived"
            break
        assert not ended, f"it has ended, and its device is {reason}"
        assert now < began + PATIENCE
        time.sleep(0.001)
    print(f"{device}: process gone after {dead - began:.4f} s, device free {now - dead:.4f} s later")


def _threads(path):
    """Return the threads of a process that are more than an entry in the list of processes."""
    try:
        return [each for each in os.listdir(path) if _runs(path / each / "stat")]
    except FileNotFoundError:
        return []


def _runs(path):
    try:
        return path.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def judged(output, *wanted, run="run"):
    """Assert what `profwin check` says of a run at least, that nothing overlaps on any host, and return all codes."""
    found = codes(output / run, mildest="remark")
    assert set(wanted) <= found, found
    bad = {"overlap", "shared-device", "handover-order", "unconfirmed-handover", "never-closed"} - set(wanted)
    bad |= {"not-collected", "remote-missing", "remote-outside", "remote-unknown"} - set(wanted)
    assert not found & bad, found
    assert_no_overlap(read_record(output))
    return found


def goes_on(output, pid):
    """Assert that a process begins and ends further recorded stages from now on, and has skipped none so far."""
    since = time.monotonic_ns()
    until(lambda: [each for each in Evidence(output).collections(pid=pid, purpose="training") if _later(each, since)])
    assert not Evidence(output).of("skip", pid=pid)


def _later(collection, since):
    return collection["t"] > since and collection["reason"] == "end"


def findings(output):
    """Return the code of every finding in the journals, sorted."""
    return sorted(each["code"] for each in Evidence(output).of("finding"))


def skips(output, **values):
    """Return name and reason of all that ran unrecorded."""
    return [(each["name"], each["reason"]) for each in _named(output, values)]


def _named(output, values):
    evidence = Evidence(output)
    names = {(each["pid"], each["id"]): each["name"] for each in evidence.of("enter")}
    return [{**each, "name": names[each["pid"], each["id"]]} for each in evidence.of("skip", **values)]
