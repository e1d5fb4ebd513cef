"""Run a command in a session of its own until standard input ends, then kill everything in that session.

A server's processes outlive their parents, so a test that is killed must not be what ends them: its end of the pipe
closes in any case.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def members(session: int) -> list[int]:
    """Return the living processes of a session."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            # Behind the program's name, which may hold anything: state, parent, process group, session.
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(name))
    return found


def end(session: int) -> None:
    """Kill all processes of a session, also those that start meanwhile, and wait until they are gone."""
    while left := members(session):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


def main(*command: str) -> None:
    """Say the session's number, and wait."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)
    try:
        print(process.pid, flush=True)
        sys.stdin.read()
    finally:
        end(process.pid)
        process.wait()


if __name__ == "__main__":
    # Ctrl-C in a terminal reaches the tests, which then close the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(*sys.argv[1:])
