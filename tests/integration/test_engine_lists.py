"""A list of engines: started and stopped together, each with its own outcome and traces."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest
from device_probe import taken
from engine_support import configure, engines, finish

from profwin import Loop, rollout_window, weight_sync
from profwin.errors import EngineError, EngineRefusedError, SettingError
from profwin.testing import RecordingEngine

FOREIGN = EngineRefusedError("server", "somebody else records", foreign=True)
KINDS = pytest.mark.parametrize("kind", ["thread", "coroutine", "plain"])


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes; it is set up."""
    path = tmp_path / "out"
    configure(path)
    return path


def windows(window, body=lambda: None, kind="coroutine"):
    """Run a window's body, in an event loop where its engines need one."""
    if kind != "coroutine":
        with window:
            return body()

    async def main():
        async with window:
            return body()

    return asyncio.run(main())


@KINDS
def test_all_record_at_the_same_time(output, kind):
    """All have started before the body and stopped after it; each is marked and confirmed by itself."""
    both = engines("a", "b", kind=kind)
    windows(rollout_window(1, engine=both), lambda: [engine.recording for engine in both], kind)
    assert [engine.order for engine in both] == [["start", "started", "stop", "stopped"]] * 2
    evidence, found = finish(output)
    assert found == []
    assert evidence.recorded() == ["rollout"]
    assert evidence.collections()[0]["devices"] == ["pretend-a", "pretend-b"]
    for what in ("mark", "confirmed"):
        assert sorted(each["devices"] for each in evidence.of(what)) == [["pretend-a"], ["pretend-b"]]


@pytest.mark.parametrize("kind", ["thread", "coroutine"])
@pytest.mark.parametrize("action", ["start", "stop"])
def test_they_are_told_side_by_side(output, kind, action):
    """The first is done only after the second was told, so neither waits for the other."""
    first, second = engines("a", "b", kind=kind)
    told = threading.Event()
    first.delay(action, told)
    noting = second._note

    def note(what):
        noting(what)
        if what == action:
            told.set()

    second._note = note
    windows(rollout_window(1, engine=(first, second)), kind=kind)
    assert first.order == second.order == ["start", "started", "stop", "stopped"]


def test_engines_that_need_the_callers_thread_are_told_there(output):
    """One after the other; one that may be told anywhere is not kept waiting by them."""
    plain, other = engines("a", "b", kind="plain")
    (free,) = engines("c")
    with rollout_window(1, engine=[plain, free, other]):
        pass
    here = threading.get_ident()
    assert {call.thread for call in plain.calls + other.calls} == {here}
    assert here not in {call.thread for call in free.calls}
    assert plain.calls[1].time <= other.calls[0].time


def test_in_an_event_loop_they_are_told_there(output):
    """An engine that must be told in its caller's thread is told in the loop's, beside one that needs the loop."""
    (plain,) = engines("a", kind="plain")
    (later,) = engines("b", kind="coroutine")
    later.delay("start", 0.02)

    async def main():
        async with rollout_window(1, engine=[plain, later]) as window:
            assert window.recorded
        return threading.get_ident()

    here = asyncio.run(main())
    assert {call.thread for call in plain.calls + later.calls} == {here}
    assert plain.order == later.order == ["start", "started", "stop", "stopped"]


@KINDS
def test_one_that_fails_keeps_no_other_from_recording(output, kind):
    """It is told to stop, its device is free, and a finding has its name; the next window has all."""
    both = engines("a", "b", kind=kind)
    both[0].fail("start", times=1)
    seen = windows(
        rollout_window(1, engine=both), lambda: ([engine.recording for engine in both], taken("a"), taken("b")), kind
    )
    windows(rollout_window(2, engine=both), kind=kind)
    assert seen[0] == [False, True]
    assert both[0].order[:3] == ["start", "failed", "stop"]
    assert both[0].starts == 1
    evidence, found = finish(output)
    assert [code for code, _ in found] == ["engine-failed"]
    assert found[0][1].startswith("RecordingEngine 1 did not record: ")
    assert len(evidence.recorded()) == 2
    assert evidence.skips() == []


@pytest.mark.parametrize("foreign", [True, False])
def test_all_that_refuse_are_a_skip(output, foreign):
    """None of them is told to stop, no device stays marked, and the reason says whose fault it is."""
    both = engines("a", "b")
    for engine in both:
        engine.fail("start", EngineRefusedError("server", "no", foreign=foreign))
    with rollout_window(1, engine=both):
        assert (taken("a"), taken("b")) == (None, None)
    assert [engine.order for engine in both] == [["start", "failed"]] * 2
    evidence, found = finish(output)
    assert evidence.skips() == [("rollout", "foreign" if foreign else "engine")]
    assert [code for code, _ in found] == (["foreign-session"] * 2 if foreign else [])
    assert len(evidence.of("confirmed")) == len(evidence.of("mark")) == 2


def test_strict_raises_only_where_none_records(output):
    """One that fails beside others is a finding; when all do, the error has the names and words of all."""
    configure(output, run="strict", strict=True)
    both = engines("a", "b")
    both[1].fail("start", FOREIGN, times=1)
    with rollout_window(1, engine=both):
        pass
    for engine in both:
        engine.fail("start")
    with pytest.raises(EngineError, match=r"RecordingEngine 1: .*RecordingEngine 2: "), rollout_window(2, engine=both):
        raise AssertionError


def test_traces_are_named_by_their_places(output):
    """Each engine is told a name of its own, and its own devices; what it names is listed."""
    told = {}

    class Writing(RecordingEngine):
        def start_profile(self, directory, profile_prefix, metadata):
            told[self.devices] = profile_prefix, metadata["devices"]
            os.makedirs(directory, exist_ok=True)
            self.path = os.path.join(directory, profile_prefix)
            super().start_profile(metadata)

        def stop_profile(self):
            super().stop_profile()
            with open(self.path, "w") as file:
                file.write("{}")
            return self.path

    with rollout_window(1, engine=[Writing("pretend:a"), Writing("pretend:b")]):
        pass
    evidence, _ = finish(output)
    assert [told[device,] for device in ("pretend:a", "pretend:b")] == [
        (os.path.basename(each["path"]), [f"pretend-{device}"])
        for each, device in zip(evidence.of("export"), "ab", strict=True)
    ]
    assert [name[-3:] for name, _ in told.values()] == ["_e0", "_e1"]


@pytest.mark.usefixtures("output")
def test_what_is_no_list_of_engines():
    """An empty one, one with the same engine twice, and one with something else in it."""
    (engine,) = engines("a")
    for wrong in ([], [engine, engine], [engine, object()]):
        with pytest.raises(SettingError), rollout_window(1, engine=wrong):
            raise AssertionError


def test_an_interrupted_start_stops_those_that_have_begun(output):
    """Ctrl-C during one start stops the others, and the devices are free."""
    both = engines("a", "b", kind="plain")
    both[1].fail("start", KeyboardInterrupt(), times=1)
    with pytest.raises(KeyboardInterrupt), rollout_window(1, engine=both):
        raise AssertionError
    assert [engine.recording for engine in both] == [False, False]
    assert (taken("a"), taken("b")) == (None, None)


def test_a_loop_and_weight_syncs_take_lists(output):
    """What takes an engine takes a list of them."""
    both = engines("a", "b")
    with Loop("colocate", engine=both) as loop:
        loop.step_begins(1)
        assert [engine.recording for engine in both] == [True, True]
        loop.devices_to_training()
        assert [engine.recording for engine in both] == [False, False]
    for version in (1, 2):
        with weight_sync(version, both):
            assert [engine.recording for engine in both] == [False, False]
        assert [engine.recording for engine in both] == [True, True]
    evidence, found = finish(output)
    assert found == []
    assert evidence.skips() == []
    assert evidence.of("sync")[0]["devices"] == ["pretend-a", "pretend-b"]
