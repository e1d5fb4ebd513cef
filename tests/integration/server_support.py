"""A server made of several processes, as inference servers are: it listens, and what works are its grandchildren.

Run as a program it is one of these processes. All of them end when the test closes the pipe that they read.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ORDERS = 60.0


class Stand:
    """A server that a test has started.

    Attributes:
        process: what the test has started.
        pids: of all its processes, by role.
        port: where it listens.
    """

    def __init__(self, process, lines):
        self.process, self.port = process, 0
        self.pids = {}
        for line in lines:
            role, pid, port = line.rsplit(maxsplit=2)
            self.pids.setdefault(role, []).append(int(pid))
            self.port = int(port) or self.port

    @property
    def url(self):
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def all(self):
        """All its processes."""
        return sorted(pid for pids in self.pids.values() for pid in pids)


@contextmanager
def stand(folder, *roles, options=(), name="server.py", host="127.0.0.1", port=0, env=None, expected=None):
    """Start a server; yield a :class:`Stand` when all its processes are there.

    Args:
        folder: for its files.
        roles: one below the other; ``listen`` listens, ``title::…`` takes that name, ``reuse`` listens twice.
        options: what else its command line says.
        name: of its program.
        host: where it listens.
        port: likewise; 0 for a free one.
        env: variables that are added.
        expected: how many processes there will be; None: one a role.
    """
    program = Path(folder, name)
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(Path(__file__).read_text())
    notes = Path(folder, f"notes-{time.monotonic_ns()}")
    reading, writing = os.pipe()
    arguments = [sys.executable, str(program), *options, "--", str(notes), host, str(port), *roles]
    process = subprocess.Popen(arguments, stdin=reading, env={**os.environ, **(env or {})})
    os.close(reading)
    try:
        yield Stand(process, wait_for(notes, expected or len(roles), process))
    finally:
        os.close(writing)
        process.kill()
        process.wait()


def wait_for(notes, number, process):
    """Wait until so many processes have noted that they are there; return their notes."""
    end = time.monotonic() + ORDERS
    while time.monotonic() < end and process.poll() is None:
        lines = notes.read_text().splitlines() if notes.exists() else []
        if len(lines) >= number:
            return lines
        time.sleep(0.01)
    raise AssertionError(f"the server did not start: exit code {process.poll()}")


def until(holds):
    """Wait until something holds."""
    end = time.monotonic() + ORDERS
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.01)


def _run(notes, host, port, roles):
    import socket

    role, below = roles[0], roles[1:]
    listening = []
    if role in {"listen", "reuse"} or role.endswith("+listen"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening.append(socket.socket(family))
        if role == "reuse":
            listening[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening[0].bind((host, int(port)))
        listening[0].listen()
        port = listening[0].getsockname()[1]
    with open(notes, "a") as file:
        file.write(f"{role} {os.getpid()} {port if listening else 0}\n")
    children = []
    if below:
        for each in below[0].split(","):
            line = [each, __file__, "--", notes, host, str(port), each, *below[1:]]
            children.append(subprocess.Popen(line, executable=os.readlink("/proc/self/exe")))
    signal.signal(signal.SIGUSR1, lambda *_: children.append(subprocess.Popen(["late"], executable="/bin/cat")))
    os.read(0, 1)  # nothing comes: it returns when the test is done
    for child in children:
        child.wait()


if __name__ == "__main__":
    given = sys.argv[sys.argv.index("--") + 1 :]
    _run(*given[:3], given[3:])
