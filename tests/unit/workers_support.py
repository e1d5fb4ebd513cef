"""What the tests of `profwin.evidence.workers` let processes do with a file."""

from __future__ import annotations

import os
import signal
import sys
import time


def read(what: str, value: object = None) -> object:
    """Return a value, or fail in the way that ``what`` names."""
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "raise":
        raise ValueError("no such value")
    if what == "deny":
        raise PermissionError(13, "Permission denied", "secret")
    if what == "leave":
        sys.exit(3)
    if what == "print":
        print("noise")
        os.write(1, b"noise")
    if what == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    if what == "sleep":
        if isinstance(value, str):
            open(os.path.join(value, str(os.getpid())), "x").close()
        time.sleep(60)
    if what == "meet":
        return _meet(str(value))
    return os.getpid() if what == "pid" else value


def _meet(directory: str) -> int:
    """Wait until two processes are in here, and return this one's id."""
    with open(os.path.join(directory, str(os.getpid())), "x"):
        pass
    deadline = time.monotonic() + 30
    while len(os.listdir(directory)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    return os.getpid()
