"""The devices of a list of engines: each engine's are its own, whatever becomes of the others."""

from __future__ import annotations

import os
import threading
import time

import pytest
from device_probe import taken
from engine_support import configure, engines, finish

from profwin import rollout_window, training_stage, training_step
from profwin.registry.device import keys_of
from profwin.registry.lock import Registry
from profwin.testing import RecordingEngine


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes; it is set up."""
    path = tmp_path / "out"
    configure(path)
    return path


@pytest.mark.parametrize("known", [True, False])
def test_one_that_does_not_stop_leaves_its_own_devices_unknown(output, known):
    """The others' are free. The next window tries it again, where its processes are known, else goes without it."""
    configure(output, wait_budget=1.0)
    both = engines("a", "b", process_ids=(os.getpid(),) if known else ())
    both[1].fail("stop", times=1)
    with rollout_window(1, engine=both):
        pass
    assert (taken("a"), taken("b")) == (None, "unknown")
    with rollout_window(2, engine=both) as second:
        assert second.recorded
        assert both[0].recording
        assert both[1].starts == (2 if known else 1)
    evidence, found = finish(output)
    assert taken("a") is None
    assert taken("b") == (None if known else "unknown")
    assert evidence.skips() == []
    assert [code for code, _ in found] == ([] if known else ["engine-failed"])
    (failed,) = [each for each in evidence.of("close") if "error" in each]
    assert failed["error"].startswith("RecordingEngine 2 failed to stop")


def test_a_device_that_cannot_be_had_is_left_out(output):
    """Its engine is not told, the others record; a replica that spans several devices needs all of them."""
    configure(output, wait_budget=0.1)
    wide = RecordingEngine(("pretend:b", "pretend:c"), revocable=True)
    (alone,) = engines("a")
    held = Registry(None).acquire(keys_of(("pretend:c",)), kind="rollout", run="other", name="other", step=1)
    with rollout_window(1, engine=[wide, alone]):
        assert alone.recording
        assert taken("b") is None
    held.release()
    with rollout_window(2, engine=[wide, alone]):
        assert wide.recording
        assert (taken("b"), taken("c")) == ("self", "self")
    evidence, found = finish(output)
    devices = [each["devices"] for each in evidence.collections()]
    assert devices == [["pretend-a"], ["pretend-a", "pretend-b", "pretend-c"]]
    assert found[0][1].startswith("RecordingEngine 1 did not record: pretend-c is held by rollout window 'other'")


def test_one_whose_devices_nobody_knows_records_where_the_others_cannot(output):
    """It needs no device, as alone."""
    configure(output, wait_budget=0.1)
    (named,), unknown = engines("a"), RecordingEngine(revocable=True)
    held = Registry(None).acquire(keys_of(("pretend:a",)), kind="rollout", run="other", name="other", step=1)
    with rollout_window(1, engine=[named, unknown]):
        assert unknown.recording
        assert not named.recording
    held.release()
    evidence, found = finish(output)
    assert [each["devices"] for each in evidence.collections()] == [[]]
    assert [code for code, _ in found] == ["engine-failed"]


def test_two_that_name_one_device_do_not_both_record(output):
    """The second one is left out, and a finding says whose device it is."""
    both = engines("a", "a")
    with rollout_window(1, engine=both):
        assert [engine.recording for engine in both] == [True, False]
    evidence, found = finish(output)
    why = "RecordingEngine 1 records on pretend-a, which it names too"
    assert found == [("engine-failed", f"RecordingEngine 2 did not record: {why}")]
    assert evidence.skips() == []


def test_those_that_name_none_share_the_windows_devices(output):
    """Such a device is free when all of them have stopped, and its mark names the processes of all that have not."""
    both = [RecordingEngine(revocable=True, process_ids=(pid,)) for pid in (os.getpid(), os.getppid())]
    both[1].fail("stop", times=1)
    with rollout_window(1, engine=both, devices=("pretend:a", "pretend:b")):
        assert [engine.recording for engine in both] == [True, True]
        marks = [state.mark for state in Registry(None).survey()]
        pids = [sorted(process.pid for process in mark.processes) for mark in marks]
        assert pids == [sorted((os.getpid(), os.getppid()))] * 2
    outcome = Registry(None).acquire(keys_of(("pretend:a",)), kind="rollout", run="probe", name="p", step=1)
    assert [process.pid for process in outcome.mark.processes] == [os.getppid()]
    with rollout_window(2, engine=both, devices=("pretend:a", "pretend:b")):
        assert both[0].order.count("stop") == 1
        assert both[1].order.count("stop") == 2
    assert (taken("a"), taken("b")) == (None, None)


def test_a_stage_on_one_of_their_devices_ends_the_window(output):
    """All stop before the stage; one on another device does not touch them."""
    both = engines("a", "b")
    with rollout_window(1, engine=both), training_step(1):
        with training_stage("elsewhere", devices="pretend:c"):
            assert both[0].recording
        with training_stage("update", devices="pretend:b"):
            assert [engine.recording for engine in both] == [False, False]
    evidence, _ = finish(output)
    assert [each["reason"] for each in evidence.collections(name="rollout")] == ["handover"]
    assert evidence.skips() == []


def test_ranks_choose_among_them(output):
    """Only those of which a selected device rank is one are told; where none is, nothing is recorded."""
    configure(output, run="ranks", ranks="8-11", rank=0)
    both = engines("a", "b")
    both[0].ranks, both[1].ranks = range(8), [8, 9]
    with rollout_window(1, engine=both):
        assert [engine.recording for engine in both] == [False, True]
    with rollout_window(2, engine=both[0]) as none:
        assert not none.recorded
    evidence, found = finish(output)
    assert (evidence.recorded(), evidence.skips(), found) == (["rollout"], [], [])


def test_one_that_is_late_does_not_keep_the_caller_for_ever(output):
    """Beside one that must be told in the caller's thread it is waited for within the budget; its device is unknown.

    When it has confirmed, its device is free.
    """
    configure(output, run="late", wait_budget=0.1)
    (plain,), (late,) = engines("a", kind="plain"), engines("b", process_ids=(os.getpid(),))
    answered = threading.Event()
    late.delay("stop", answered)
    with rollout_window(1, engine=[plain, late]):
        pass
    try:
        assert plain.order[-1] == "stopped"
        assert late.recording
        assert (taken("a"), taken("b")) == (None, "unknown")
    finally:
        answered.set()
    deadline = time.monotonic() + 20
    while taken("b") is not None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    evidence, _ = finish(output)
    assert "RecordingEngine 2: TimeoutError: it has not answered in time" in evidence.of("close")[-1]["error"]
