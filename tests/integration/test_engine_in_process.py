"""Engines whose workers record in this process: they and this process's own profilers never record at the same time."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
import torch
from core_support import Child, Evidence

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.errors import EngineRefusedError
from profwin.registry.device import keys_of
from profwin.registry.lock import Held, Registry
from profwin.testing import RecordingEngine


class Colocated:
    """An engine that records in this process with torch's profiler, as vLLM's in-process core does."""

    in_process = True
    revocable = True  # not so: its profiler belongs to the thread that started it
    devices = "pretend:card"

    def __init__(self):
        self.threads = []

    def start_profile(self, directory, profile_prefix):
        """Start a profiler."""
        self.threads.append(threading.get_ident())
        os.makedirs(directory, exist_ok=True)
        self.path = os.path.join(directory, f"{profile_prefix}.pt.trace.json")
        self.profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        self.profile.start()

    def stop_profile(self):
        """Stop it, write its trace and return the path."""
        self.threads.append(threading.get_ident())
        self.profile.stop()
        self.profile.export_chrome_trace(self.path)
        return self.path


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes; it is set up."""
    path = tmp_path / "out"
    profwin.configure(steps="1-9", backend="torch", output=str(path), run="mine", devices="pretend:card")
    return path


def work():
    """Do what a profiler sees."""
    (torch.ones(4, 4) @ torch.ones(4, 4)).sum()


@training_stage
def update():
    """Train."""
    work()


def finish(output):
    """End the run and return its evidence; every trace that it names holds the work."""
    profwin.shutdown()
    evidence = Evidence(output)
    for record in evidence.of("export"):
        if record.get("path", "").endswith(".json"):
            assert "aten::matmul" in (Path(output) / "mine" / record["path"]).read_text()
    return evidence


def outcome(**more):
    """Try to take the device as another one would; return why not, or None."""
    found = Registry(None).acquire(keys_of(("pretend:card",)), kind="rollout", run="probe", name="p", step=1, **more)
    if isinstance(found, Held):
        found.release()
        return None
    return found.reason


def test_window_and_stages_take_turns(output):
    """Steps of window and stage: each has its trace, and nothing overlaps."""
    engine = Colocated()
    for step in (1, 2):
        with rollout_window(step, engine=engine) as window:
            assert window.recorded
            work()
        update()
    evidence = finish(output)
    evidence.check()
    assert evidence.recorded() == ["rollout", "update"] * 2
    assert [each["backend"] for each in evidence.of("export")] == ["engine", "torch"] * 2
    assert not [each for each in evidence.of("export") if "error" in each]
    assert set(engine.threads) == {threading.get_ident()}


def test_a_stage_inside_its_window_ends_it(output):
    """It is this process's one session that both need. Both are recorded."""
    engine = Colocated()
    with rollout_window(1, engine=engine), training_step(1):
        work()
        update()
    evidence = finish(output)
    evidence.check()
    assert [each["reason"] for each in evidence.collections()] == ["handover", "end"]
    assert len(evidence.of("export")) == 2


def test_a_stage_on_another_device_is_part_of_its_recording(output):
    """The session is one, and the devices are not shared: nothing has to end."""
    engine = Colocated()
    with rollout_window(1, engine=engine), training_step(1):
        work()
        with training_stage("elsewhere", devices="pretend:other"):
            work()
        assert len(engine.threads) == 1
    evidence = finish(output)
    assert evidence.recorded() == ["rollout", "elsewhere"]
    assert [each["reason"] for each in evidence.collections()] == ["end"]


def test_inside_a_stage_it_is_not_told(output):
    """What records the stage records the window with it."""
    engine = Colocated()
    with training_step(1), training_stage("outer"), rollout_window(1, engine=engine) as window:
        assert window.recorded
        work()
    assert engine.threads == []
    assert len(finish(output).of("export")) == 1


@pytest.mark.parametrize("strict", [False, True])
def test_beside_a_foreign_profiler_it_does_not_start(output, strict):
    """The engine is not told anything, the foreign recording is whole, and the device stays free."""
    profwin.shutdown()
    profwin.configure(
        steps="1-9", backend="record", output=str(output), run="mine", devices="pretend:card", strict=strict
    )
    engine = Colocated()
    with torch.profiler.profile() as profile:
        if strict:
            with pytest.raises(EngineRefusedError, match="already on"), rollout_window(1, engine=engine):
                raise AssertionError
        else:
            with rollout_window(1, engine=engine):
                work()
        work()
    assert engine.threads == []
    assert any(event.key == "aten::matmul" for event in profile.key_averages())
    assert outcome() is None
    evidence = finish(output)
    assert evidence.skips() == ([] if strict else [("rollout", "foreign")])
    assert evidence.of("finding", code="foreign-session") == []


def test_another_thread_leaves_it_alone(output):
    """A stage in another thread cannot stop it there, so it is not recorded."""
    engine = Colocated()
    with rollout_window(1, engine=engine), training_step(1):
        work()
        thread = threading.Thread(target=update)
        thread.start()
        thread.join()
    evidence = finish(output)
    assert evidence.skips() == [("update", "thread")]
    assert set(engine.threads) == {threading.get_ident()}


def test_in_an_event_loop_it_is_told_in_its_thread(output):
    """Starting and stopping run in the loop's thread, like those of this process's own profilers."""
    engine = Colocated()

    async def main():
        async with rollout_window(1, engine=engine):
            work()
        return threading.get_ident()

    assert [asyncio.run(main())] * 2 == engine.threads
    assert finish(output).skips() == []


def test_an_engine_elsewhere_records_beside_it(output):
    """Devices that are not shared do not wait for each other."""
    other = RecordingEngine("pretend:other", revocable=True)
    with rollout_window(1, engine=Colocated()), rollout_window(1, engine=other, name="other") as second:
        work()
        assert second.recorded
        assert other.recording
    evidence = finish(output)
    assert evidence.skips() == []
    assert len(evidence.collections()) == 2


def test_in_a_list_with_others(output):
    """It is told in the caller's thread, and a stage of this process ends the window of all of them."""
    engine, other = Colocated(), RecordingEngine("pretend:other", revocable=True)
    with rollout_window(1, engine=[other, engine]), training_step(1):
        work()
        assert other.recording
        update()
        assert not other.recording
    evidence = finish(output)
    evidence.check()
    assert evidence.skips() == []
    assert set(engine.threads) == {threading.get_ident()}


def test_a_stop_that_fails_makes_its_device_unknown(output):
    """Its profiler may still be on; until a later stop is confirmed, or this process ends, nobody has the device."""
    engine = Colocated()
    stop = engine.stop_profile

    def broken():
        raise RuntimeError("no")

    engine.stop_profile = broken
    with rollout_window(1, engine=engine):
        pass
    assert outcome() == "unknown"
    engine.stop_profile = stop
    with rollout_window(2, engine=engine) as second:
        assert second.recorded
        work()
    assert outcome() is None
    finish(output)


def test_its_device_is_free_when_the_process_is_killed(output):
    """What it recorded, it recorded here: nothing is unknown after the process's death."""
    profwin.shutdown()
    script = f"""
from test_engine_in_process import Colocated
profwin.configure(steps="1", output={str(output)!r}, run="killed")
with rollout_window(1, engine=Colocated()):
    say("inside")
    hear()
"""
    with Child(script) as child:
        assert child.hear() == "inside"
        assert outcome() == "busy"
        child.kill()
        assert outcome() is None
