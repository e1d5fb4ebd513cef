"""Engines in processes of their own, and the death of either side inside a window; and stops that come too often."""

from __future__ import annotations

import os
import signal

import pytest
from core_support import Child, Evidence, run
from device_probe import becomes, taken
from engine_process import Engine

import profwin
from profwin import rollout_window


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


@pytest.fixture
def both():
    """Return two engines on devices of their own, whose workers end with the test."""
    engines = [Engine("pretend:a"), Engine("pretend:b")]
    yield engines
    for engine in engines:
        engine.end()


LEADER = """
import subprocess
class Engine:
    revocable = True
    def __init__(self, device):
        self.devices = [device]
        self.process_ids = [subprocess.Popen(["sleep", "60"]).pid]
    def start_profile(self):
        pass
    def stop_profile(self):
        pass
profwin.configure(steps="1-9", output={output!r}, run="led", backend="record")
both = [Engine("pretend:a"), Engine("pretend:b")]
with rollout_window(1, engine=both):
    say(*(engine.process_ids[0] for engine in both))
    hear()
"""


def test_our_death_leaves_the_devices_of_a_list_unknown(output):
    """Each is free when its own engine's processes are dead, and not before."""
    with Child(LEADER.format(output=str(output))) as child:
        workers = [int(pid) for pid in child.hear().split()]
        try:
            assert (taken("a"), taken("b")) == ("busy", "busy")
            child.kill()
            assert (taken("a"), taken("b")) == ("unknown", "unknown")
            os.kill(workers[0], signal.SIGKILL)
            becomes("a", None)
            assert taken("b") == "unknown"
        finally:
            os.kill(workers[1], signal.SIGKILL)
        becomes("b", None)


def test_a_worker_that_is_killed_in_the_window(output, both):
    """Its device is free, a finding names it, the other engine is confirmed; the next window goes without it."""
    profwin.configure(steps="1-9", output=str(output), backend="record", run="mine")
    with rollout_window(1, engine=both):
        both[0].process.kill()
    assert (taken("a"), taken("b")) == (None, None)
    assert both[1].told == ["start", "stop"]
    with rollout_window(2, engine=both) as second:
        assert second.recorded
    profwin.shutdown()
    evidence = Evidence(output)
    said = [(each["code"], each["detail"].partition(":")[0]) for each in evidence.of("finding")]
    assert said[0] == ("engine-died", "Engine 1")
    assert ("engine-failed", "Engine 1 did not record") in said
    assert both[1].told == ["start", "stop"] * 2
    assert len(evidence.of("mark")) == len(evidence.of("confirmed"))


def test_stops_that_come_too_often(output, both):
    """A window that is closed twice, and after the run's end, tells each engine once."""
    profwin.configure(steps="1-9", output=str(output), backend="record", run="mine")
    first, second = (rollout_window(step, engine=both) for step in (1, 2))
    first.open()
    first.close()
    first.close()
    second.open()
    profwin.shutdown()
    second.close()
    assert [engine.told for engine in both] == [["start", "stop"] * 2] * 2
    assert (taken("a"), taken("b")) == (None, None)
    assert [each["reason"] for each in Evidence(output).collections()] == ["end", "shutdown"]


def test_the_end_of_the_program_stops_them(output):
    """A window that nobody closed is closed when the interpreter ends, and both engines confirm."""
    script = f"""
from engine_process import Engine
class Telling(Engine):
    def stop_profile(self):
        super().stop_profile()
        os.write(1, f"stopped {{self.devices[0]}}\\n".encode())  # in one piece: both stop at the same time
        self.end()
both = [Telling("pretend:a"), Telling("pretend:b")]
profwin.configure(steps="1-9", output={str(output)!r}, run="ended", backend="record")
rollout_window(1, engine=both).open()
"""
    out, _ = run(script)
    assert sorted(out.splitlines()) == ["stopped pretend:a", "stopped pretend:b"]
    evidence = Evidence(output)
    assert len(evidence.of("confirmed")) == 2
    assert [each["reason"] for each in evidence.collections()] == ["exit"]
