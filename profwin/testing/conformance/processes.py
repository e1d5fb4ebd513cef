"""Rules for a backend in processes of their own: how they end, fork, and what would crash them."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from profwin.registry.survey import survey
from profwin.testing.conformance.child import ENDS, READY, start
from profwin.testing.conformance.evidence import judge, made
from profwin.testing.conformance.recorder import require
from profwin.testing.conformance.suite import Suite

__all__ = ["ProcessRules"]


class ProcessRules(Suite):
    """What must hold whatever becomes of the process."""

    @pytest.mark.parametrize("way", sorted(ENDS))
    def test_the_end_of_a_process(self, way: str) -> None:
        """With a window open, a process ends as it would without profwin, and the device is free then.

        Where Python code still runs at the end, the window is whole.
        """
        end = ENDS[way]
        terminate = way == "is terminated"
        status, _, errors = self._run(way, terminate=terminate)
        require(status == end.status, f"a process that {way} ended with status {status}, not {end.status}:\n{errors}")
        found = made(self._output)
        require(len(found) == 1, f"one recording was to be made, and there are {len(found)}")
        if end.closed:
            judge(self._output, found, writes=self.writes)
        self._look_free()

    def test_a_forked_child(self) -> None:
        """A child that is forked inside a window ends as it would, and the parent's window is whole."""
        status, said, errors = self._run("forked")
        require(status == 0, f"the parent ended with status {status}:\n{errors}")
        require("child 0" in said, f"the child did not end with status 0: {said}\n{errors}")
        held = "['pretend-0'] held" if self.kind.exclusive else "[] held"
        require(held in said, f"the child changed its parent's device locks: {said}")
        judge(self._output, made(self._output)[:1], writes=self.writes)
        self._look_free()

    def test_a_full_disk(self) -> None:
        """Where the disk is full, the export raises and leaves nothing; the next recording is whole."""
        status, said, errors = self._run("full")
        require(status == 0, f"status {status}: {said}\n{errors}")

    def test_a_second_recording(self) -> None:
        """One inside another is refused, or lost with an error, or whole; so is the outer one, and nothing crashes."""
        status, said, errors = self._run("second")
        require(status == 0, f"status {status}: {said}\n{errors}")

    @property
    def _output(self) -> str:
        return os.path.join(self.directory, "output")

    def _look_free(self) -> None:
        __tracebackhide__ = True
        held = [each.key for each in survey(os.path.join(self.directory, "locks")) if each.state != "free"]
        require(not held, f"a device stayed locked: {held}")

    def _run(self, scenario: str, *, terminate: bool = False) -> tuple[int, str, str]:
        """Run a scenario in a process of its own; return its status, and what it said on both outputs."""
        __tracebackhide__ = True
        process = start(self, scenario, self.directory)
        try:
            if terminate and process.stdout is not None:
                for line in process.stdout:
                    if line.strip() == READY:
                        process.send_signal(signal.SIGTERM)
                        break
            said, errors = process.communicate(timeout=self.patience)
        except subprocess.TimeoutExpired:
            process.kill()
            said, errors = process.communicate()
            raise AssertionError(f"{scenario}: no end after {self.patience} s\n{said}\n{errors}") from None
        return process.returncode, said, errors
