"""Threads: several that close, share, or meet in one window, and what they leave at the end of the process."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import faulty_backend
import pytest
from core_support import Evidence, run

import profwin
from profwin import backends, rollout_window, training_stage, training_step
from profwin.errors import StateError


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


@pytest.fixture(autouse=True)
def faulty(monkeypatch):
    """Make the faulty backend known by name."""
    faulty_backend.reset()
    monkeypatch.setitem(backends._TABLE, "faulty", "faulty_backend")


def configure(output, **more):
    """Configure this process with the settings that these tests share."""
    profwin.configure(
        **{"steps": "1-3", "backend": "faulty", "output": str(output), "devices": "pretend:card", "run": "r", **more}
    )


def together(count, act):
    """Run one function in many threads at the same moment; return what they raised."""
    barrier, raised = threading.Barrier(count), []

    def body():
        barrier.wait()
        try:
            act()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=body) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return raised


def test_eight_threads_close_one_window(output):
    """Case 6: the profiler is stopped and exported once, every caller returns after that, and none raises."""
    configure(output)
    for step in (1, 2, 3):
        faulty_backend.reset()
        window = rollout_window(step)
        window.open()
        assert not together(8, lambda window=window: (window.close(), faulty_backend.log.append("returned")))
        assert faulty_backend.log == ["open", "close", "export"] + ["returned"] * 8
    profwin.shutdown()
    Evidence(output).check()


def test_close_without_open_and_open_twice(output, caplog):
    """Case 6: closing what was never opened only warns; opening twice opens once; a closed one is used up."""
    configure(output)
    rollout_window(2).close()
    assert "never opened" in caplog.text
    assert faulty_backend.log == []
    window = rollout_window(1)
    window.open()
    window.open()
    window.close()
    window.close()
    with pytest.raises(StateError):
        window.open()
    assert faulty_backend.log == ["open", "close", "export"]
    profwin.shutdown()


def test_shared_decorator_has_a_state_for_each_call(output):
    """Case 26: threads that call one decorated function each have their own window or join; none mixes with another."""
    configure(output)
    window = rollout_window(1)
    generate = window(lambda: time.sleep(0.02))
    update = training_stage(lambda: time.sleep(0.01))
    assert not together(4, generate)
    with training_step(1):
        assert not together(4, update)
    with window:
        assert window.recorded
        with pytest.raises(StateError, match="already entered"):
            window.__enter__()
        assert window.recorded
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert not evidence.of("skip")
    assert len(evidence.recorded()) == 4 + 4 + 1


def test_windows_and_stages_of_many_threads_never_overlap(output):
    """Threads that open windows and stages of one device in any order neither hang nor overlap nor raise."""
    configure(output, backend="record")

    def act():
        for turn in range(20):
            with rollout_window(1) if turn % 2 else training_stage("update"):
                pass

    with training_step(1):
        assert not together(6, act)
    profwin.shutdown()
    Evidence(output).check()


def test_stage_in_an_executor_inside_a_window(output):
    """Case 25: work that a window hands to an executor, and a task that outlives it, are recorded; no deadlock."""
    configure(output)

    def helper():
        with training_stage("helper"):
            return 1

    async def later():
        await asyncio.sleep(0.05)
        async with training_stage("later"):
            return 2

    async def main():
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool:
            async with rollout_window(1):
                found = [await loop.run_in_executor(pool, helper), await asyncio.to_thread(helper)]
                task = asyncio.create_task(later())
            return [*found, await task]

    assert asyncio.run(asyncio.wait_for(main(), 10)) == [1, 1, 2]
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [(each["name"], each["reason"]) for each in evidence.collections()] == [
        ("rollout", "handover"), ("helper", "end"), ("helper", "end"), ("later", "end"),
    ]  # fmt: skip


def test_a_new_configuration_closes_what_other_threads_have_open(output):
    """A second configure closes a window and a stage that are open, in any thread; their ends change nothing then."""
    configure(output, run="first")
    entered, go = threading.Event(), threading.Event()

    def body():
        with training_stage("update"):
            entered.set()
            go.wait(100)

    with training_step(1):
        thread = threading.Thread(target=body)
        thread.start()
        assert entered.wait(100)
        configure(output, run="second")
        go.set()
        thread.join(100)
    with rollout_window(1) as window:
        profwin.shutdown()
        assert not window.recorded
    evidence = Evidence(output)
    assert [each["reason"] for each in evidence.collections()] == ["shutdown", "shutdown"]
    assert len(list(output.glob("*/journal/*.jsonl"))) == 2


@pytest.mark.parametrize(("backend", "times"), [("record", 3), ("torch", 1)])
def test_a_daemon_thread_that_records_at_the_end(output, backend, times):
    """Daemon threads that open windows when the interpreter ends neither crash it nor leave anything open or half."""
    script = f"""
profwin.configure(steps="1", backend={backend!r}, output={str(output)!r}, devices="pretend:card", run="r")
ready = threading.Event()
def loop():
    while True:
        with rollout_window(1):
            pass
        ready.set()
for _ in range(3):
    threading.Thread(target=loop, daemon=True).start()
ready.wait(100)
time.sleep(0.05)
"""
    for _ in range(times):
        run(script)
    evidence = Evidence(output)
    assert len(evidence.of("end")) == times
    assert all(each["end"] is not None for each in evidence.collections())
    assert not list(output.glob("**/.*tmp*"))
