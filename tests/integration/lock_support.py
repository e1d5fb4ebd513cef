"""Other processes for the lock tests: each runs the statements it is told to, and answers."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 100.0

_CHILD = """
import json, os, sys, time, threading, subprocess, signal, warnings
sys.path.insert(0, {root!r})
umask, uid = {umask!r}, {uid!r}
if umask is not None:
    os.umask(umask)
if uid is not None:
    # The interpreter may lie where that user cannot read: import first.
    import profwin.registry.lock, profwin.registry.survey, urllib.parse
    import codecs
    codecs.lookup("ascii"), codecs.lookup("latin-1"), codecs.lookup("unicode_escape")
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
from profwin.registry.lock import Registry, Busy, Held
from profwin.registry.holder import Mark
from profwin.registry.process import ProcessIdentity, identity, gone
from profwin.errors import RegistryError

def take(*keys, kind="rollout", seconds=0.0, wait=True, **more):
    return registry.acquire(keys, kind=kind, run="other", name="n", step=1, seconds=seconds,
                            wait_for=lambda holder: wait, **more)

answers = os.fdopen(os.dup(1), "w")
for line in sys.stdin:
    try:
        text = json.loads(line)
        try:
            value = eval(text, globals())
        except SyntaxError:
            value = exec(text, globals())
        answer = ["ok", repr(value)]
    except SystemExit:
        raise
    except BaseException as error:
        answer = ["error", type(error).__name__ + ": " + str(error)]
    answers.write(json.dumps(answer) + "\\n")
    answers.flush()
"""


class Other:
    """A process of its own with ``registry``, ``take`` and everything of the registry at hand."""

    def __init__(self, directory: Path | str | None, uid: int | None = None, umask: int | None = None) -> None:
        code = _CHILD.format(root=str(ROOT), uid=uid, umask=umask)
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        try:
            if directory is not None:
                self.ask(f"registry = Registry({str(directory)!r})")
        except BaseException:
            self.close()
            raise

    def send(self, text: str) -> None:
        """Tell the process what to do, without waiting for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(text).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, patience: float = PATIENCE) -> str:
        """Wait for the answer to the oldest statement that was sent; raise what it raised."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], patience)
        if not ready:
            raise TimeoutError("the other process does not answer")
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"the other process ended: {self.process.wait()}")
        status, value = json.loads(line)
        if status == "error":
            raise RuntimeError(value)
        return str(value)

    def ask(self, text: str, patience: float = PATIENCE) -> str:
        """Tell the process what to do and wait for the answer."""
        self.send(text)
        return self.hear(patience)

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """End the process."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()

    def __enter__(self) -> Other:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def descriptors() -> set[str]:
    """What this process has open, but for the directory being listed."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except OSError:
            continue
    return found
