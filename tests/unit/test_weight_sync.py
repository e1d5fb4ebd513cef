"""`weight_sync`: one window ends where new weights reach the engines, and the next begins after it."""

from __future__ import annotations

import asyncio
import logging
import pickle
import threading

import pytest
from sync_support import Engine, opened, records

import profwin
from profwin import rollout_window, training_stage, weight_sync
from profwin.configuration import current
from profwin.errors import EngineError, SettingError, StateError


@pytest.fixture
def output(tmp_path):
    """Configure a run that records steps 1 to 3 and 7."""
    profwin.configure(steps="1-3,7", output=tmp_path, devices="pretend:1", run="run")
    yield tmp_path
    profwin.shutdown()


def test_the_window_of_a_version_lies_between_two_syncs(output):
    """In each sync nothing records, and after it the next step does, with the version; unselected steps do not."""
    engine = Engine()
    for version in range(8):
        with weight_sync(version, engine):
            assert not engine.recording
        assert engine.recording == (version + 1 in (1, 2, 3, 7))
    assert opened(output) == [(version + 1, "rollout", 1, version) for version in (0, 1, 2, 6)]
    assert [r["reason"] for r in records(output, "close")] == ["end"] * 4


def test_the_end_of_the_run_closes_the_window(output):
    """What the last sync opened is stopped when the run ends."""
    engine = Engine()
    with weight_sync(0, engine):
        pass
    profwin.shutdown()
    assert engine.told == ["start", "stop"]
    assert [r["kind"] for r in records(output) if r["kind"] in ("open", "close")] == ["open", "close"]


def test_a_resumed_run_begins_with_the_restored_version(output):
    """The first sync of a resumed run opens the step after its version."""
    with weight_sync(6, Engine()):
        pass
    assert opened(output) == [(7, "rollout", 1, 6)]


def test_a_retried_or_lower_sync_opens_its_step_again(output):
    """The same version again opens a second window of its step; a lower one, a restart, opens that step's."""
    engine = Engine()
    for version in (1, 1, 0):
        with weight_sync(version, engine):
            assert not engine.recording
    assert opened(output) == [(2, "rollout", 1, 1), (2, "rollout", 2, 1), (1, "rollout", 1, 0)]


def test_a_failing_sync_opens_nothing(output):
    """An exception of the body passes unchanged and leaves the rollout unrecorded until the next sync."""
    engine, error = Engine(), KeyError("body")
    with weight_sync(0, engine):
        pass
    with pytest.raises(KeyError) as caught, weight_sync(1, engine):
        raise error
    assert caught.value is error
    assert not engine.recording
    with weight_sync(1, engine):
        pass
    assert engine.recording


def test_nested_syncs_open_once(output):
    """A sync inside another opens nothing: the outermost opens the window of the highest version."""
    engine = Engine()
    with weight_sync(0, engine):
        with weight_sync(1, engine):
            pass
        assert not engine.recording
    assert opened(output) == [(2, "rollout", 1, 1)]
    with pytest.raises(KeyError), weight_sync(2, engine):  # noqa: PT012  # the nested one is the point
        with weight_sync(2, engine):
            pass
        raise KeyError
    assert not engine.recording


def test_engines_of_different_names_have_windows_of_their_own(output):
    """A sync of one engine leaves another one's window alone."""
    one, other = Engine(), Engine()
    other.devices = ["pretend:2"]
    with weight_sync(0, one, name="one"), weight_sync(0, other, name="other"):
        pass
    with weight_sync(1, one, name="one"):
        assert other.recording
    assert opened(output) == [(1, "other", 1, 0), (1, "one", 1, 0), (2, "one", 1, 1)]


@pytest.mark.parametrize("plan", [("stop",), ("stop", "stop"), ("start", "stop")])
def test_an_engine_that_fails_keeps_no_sync_from_running(output, caplog, plan):
    """Outside strict the body runs whatever the engine raises, and a later window is recorded."""
    engine, bodies = Engine(*plan), 0
    with caplog.at_level(logging.CRITICAL, "profwin"):
        for version in range(3):
            with weight_sync(version, engine):
                bodies += 1
    assert bodies == 3
    assert engine.recording
    assert opened(output)[-1] == (3, "rollout", 1, 2)


def test_an_engine_that_never_confirms_its_stop_costs_the_budget_at_most(tmp_path):
    """An engine of unknown processes whose stop failed is not assumed to have stopped: later windows go unrecorded."""
    profwin.configure(steps="1-3", output=tmp_path, devices="pretend:1", wait_budget=0.05)
    engine, bodies = Engine("stop"), 0
    engine.process_ids = []
    for version in range(3):
        with weight_sync(version, engine):
            bodies += 1
    profwin.shutdown()
    assert bodies == 3
    assert opened(tmp_path) == [(1, "rollout", 1, 0)]
    assert [r["reason"] for r in records(tmp_path, "skip")] == ["unknown"] * 2


def test_strict_raises_what_the_engine_does(tmp_path):
    """Under strict a stop that fails is raised before the body, and the next sync begins anew."""
    profwin.configure(steps="1-3", output=tmp_path, devices="pretend:1", strict=True)
    engine = Engine("stop")
    with weight_sync(0, engine):
        pass
    with pytest.raises(EngineError), weight_sync(1, engine):
        pytest.fail("the body ran")
    with weight_sync(1, engine):
        pass
    assert engine.recording
    profwin.shutdown()


def test_threads_sync_one_after_the_other(output):
    """Eight threads sync at once, again and again: no window is open in a body, and one is in the end."""
    engine, wrong = Engine(), []
    barrier = threading.Barrier(8)

    def sync():
        barrier.wait()
        for version in range(12):
            with weight_sync(version % 3, engine):
                if engine.recording:
                    wrong.append(version)

    threads = [threading.Thread(target=sync) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert engine.told == ["start", "stop"] * (len(engine.told) // 2) + ["start"] * (len(engine.told) % 2)
    with weight_sync(2, engine):
        assert not engine.recording
    assert engine.recording


def test_in_an_event_loop(output):
    """``async with`` does the same, also from several tasks at once and after a cancelled one."""
    engine = Engine()

    async def sync(version, delay):
        async with weight_sync(version, engine):
            assert not engine.recording
            await asyncio.sleep(delay)

    async def run():
        await sync(0, 0)
        assert engine.recording
        await asyncio.gather(sync(1, 0.02), sync(1, 0.01), sync(1, 0))
        assert engine.recording
        cancelled = asyncio.create_task(sync(2, 5))
        await asyncio.sleep(0.05)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        assert not engine.recording
        await sync(2, 0)
        assert engine.recording

    asyncio.run(run())
    assert [step for step, *_ in opened(output)] == [1, 2, 3]


@weight_sync(lambda weights, version: version)
def load(weights, version):
    """Load weights."""
    return [len(current().owner.collections), weights]


@weight_sync(lambda weights, version: version)
async def aload(weights, version):
    """Load weights."""
    return [len(current().owner.collections), weights]


def test_as_a_decorator_each_call_is_a_sync(output):
    """Functions and coroutines can be decorated, with the version taken from the call's arguments."""
    assert load("a", version=0) == [0, "a"]
    assert asyncio.run(aload("b", 1)) == [0, "b"]
    assert opened(output) == [(1, "rollout", 1, 0), (2, "rollout", 1, 1)]


def test_a_process_that_only_trains_says_which_step(output):
    """Without a window each sync ends the step that is trained, and leaving it begins the next."""
    steps = []
    for version in (0, 1):
        with weight_sync(version, window=False):
            steps.append(current().position.training_side())
        steps.append(current().position.training_side())
        with training_stage("update"):
            pass
    assert steps == [(-1, False), (1, True), (1, False), (2, True)]
    with pytest.raises(KeyError), weight_sync(2, window=False):
        raise KeyError
    assert not current().position.training_side()[1]
    assert [(r["purpose"], r["step"]) for r in records(output, "open")] == [("training", 1), ("training", 2)]


def test_a_recording_of_a_whole_step_ends_with_the_sync(tmp_path):
    """With ``collect="step"`` one recording holds the stages between two syncs, and none of the sync itself."""
    profwin.configure(steps="1-2", output=tmp_path, devices="pretend:1", collect="step")
    for version in range(3):
        with weight_sync(version, window=False):
            assert not current().owner.collections
        for _ in range(2):
            with training_stage("update"):
                pass
    profwin.shutdown()
    assert [(r["step"], r["segment"]) for r in records(tmp_path, "open")] == [(1, 1), (2, 1)]


def test_while_profwin_is_off_nothing_is_kept():
    """Off, bodies run and exceptions pass; no engine is called and no session made."""
    engine = Engine()
    with weight_sync(0, engine):
        pass
    with pytest.raises(KeyError), weight_sync(1, engine):
        raise KeyError
    assert engine.told == []
    assert current() is None


def test_a_second_configure_begins_anew(tmp_path, output):
    """A run that is configured between, or within, two syncs knows nothing of the windows of the one before."""
    engine = Engine()
    with weight_sync(0, engine):
        pass
    profwin.configure(steps="1-3", output=tmp_path / "second", devices="pretend:1")
    assert not engine.recording
    with weight_sync(1, engine):
        profwin.configure(steps="1-3", output=tmp_path / "third", devices="pretend:1")
    assert not engine.recording
    with weight_sync(2, engine):
        pass
    assert engine.recording


def test_misuse_is_refused(output):
    """Wrong versions, an engine for a process that only trains, and a second entry raise at once; pickles work."""
    for version in (-1, True, "2", None, 2.0):
        with pytest.raises(SettingError, match="version"):
            weight_sync(version)
    with pytest.raises(SettingError, match="window"):
        weight_sync(1, Engine(), window=False)
    with pytest.raises(SettingError, match="for the decorator"), weight_sync(len):
        pass
    sync = pickle.loads(pickle.dumps(weight_sync(0, devices="pretend:0")))
    with sync, pytest.raises(StateError), sync:
        pass
    with sync:
        pass
    assert [name for _, name, *_ in opened(output)] == ["rollout"] * 2


def test_a_window_within_joins(output):
    """A plain window of the same step inside the rollout between two syncs is part of it."""
    with weight_sync(0, Engine()):
        pass
    with rollout_window(1, devices="pretend:0", name="reward"):
        pass
    assert [name for _, name, *_ in opened(output)] == ["rollout"]
