"""Runs the command `profwin demo` for tests, and finds what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

NO_LOCK = Path(__file__).with_name("no_lock")
"""On the ``PYTHONPATH`` of a process it takes the device lock away: whoever asks has it, whatever is marked."""


class Demo:
    """The command in a directory of its own, with a lock directory of its own.

    All its processes carry a mark in their environment, by which :meth:`survivors` finds them.
    """

    def __init__(self, directory: Path, *, without_lock: bool = False) -> None:
        self.directory = directory
        self.mark = uuid.uuid4().hex
        locks = directory / "locks"
        locks.mkdir()
        paths = [str(NO_LOCK), str(ROOT)] if without_lock else [str(ROOT)]
        bare = {name: value for name, value in os.environ.items() if not name.startswith("PROFWIN_")}
        self.environment = {
            **bare,
            "PYTHONPATH": os.pathsep.join(paths),
            "PROFWIN_LOCK_DIR": str(locks),
            "DEMO_MARK": self.mark,
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command."""
        return self._start("demo", "--output", "out", *arguments)

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "profwin", *arguments],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, patience: float = 280) -> tuple[int, str, str]:
        """Run the command; return its exit code and what it printed on both streams."""
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=patience)
        return process.returncode, output, errors

    def command(self, *arguments: str) -> tuple[int, str, str]:
        """Run another command of profwin's; return the same."""
        process = self._start(*arguments)
        output, errors = process.communicate(timeout=280)
        return process.returncode, output, errors

    def report(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """Run the command with ``--json`` and return the object, after a look at the exit code."""
        returned, output, errors = self.run("--json", *arguments)
        assert returned == code, errors + output
        report: dict[str, Any] = json.loads(output)
        return report

    def survivors(self) -> list[int]:
        """Return the processes of this command that are still there after a moment of grace."""
        deadline = time.monotonic() + 60
        while (found := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def child(self, module: str) -> int:
        """Return the process of this command that runs that module of the demo."""
        for pid in self.processes():
            if f"profwin.demo.{module}".encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return pid
        raise AssertionError(f"no process runs {module}")

    def processes(self) -> list[int]:
        """Return the processes of this command that are there now."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                environment = Path(f"/proc/{name}/environ").read_bytes()
            except OSError:
                continue
            if f"DEMO_MARK={self.mark}".encode() in environment:
                found.append(int(name))
        return found


def wait_for_line(process: subprocess.Popen[str], beginning: str) -> None:
    """Read the command's progress until a line begins like this."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(beginning):
            return
    raise AssertionError(f"no line began with {beginning!r}")


def failed(report: dict[str, Any]) -> list[str]:
    """Return what was checked and did not hold."""
    return [check["what"] for check in report["checks"] if not check["passed"]]


def rows(report: dict[str, Any], step: int) -> list[dict[str, Any]]:
    """Return the table of a profiled step."""
    return next(each["rows"] for each in report["profiled"] if each["step"] == step)


def interrupt(process: subprocess.Popen[str]) -> int:
    """Send Ctrl-C's signal and return the exit code."""
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)
    return process.returncode
