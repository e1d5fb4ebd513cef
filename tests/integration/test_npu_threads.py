"""torch_npu's profiler is started and stopped in the main thread alone, and nothing else is let near it."""

from __future__ import annotations

from core_support import Evidence
from npu_support import folders, record

THREADS = """
def elsewhere(function):
    thread = threading.Thread(target=function, name="other")
    thread.start()
    thread.join()
"""
SAID = "\nimport torch_npu\nsay(torch_npu._C.said[-1])\n"


def test_a_stage_of_another_thread_is_skipped(tmp_path):
    """A stage in another thread runs unrecorded, at once, while a window is open; the window goes on."""
    script = """
configure(steps="1")
def stage():
    with training_stage("update"):
        say("ran")
with training_step(1), rollout_window(1) as window:
    elsewhere(stage)
    assert window.recorded
"""
    out, _ = record(tmp_path, THREADS + script)
    assert "ran" in out.splitlines()
    evidence = Evidence(tmp_path)
    evidence.check()
    assert evidence.skips() == [("update", "thread")]
    assert len(folders(tmp_path)) == 1


def test_another_thread_cannot_open(tmp_path):
    """A window in another thread runs unrecorded, a sentence says where to open it, and the main thread records."""
    script = """
configure(steps="1-2")
def body():
    with rollout_window(1):
        say("ran")
elsewhere(body)
with rollout_window(2):
    pass
"""
    out, err = record(tmp_path, THREADS + script)
    assert "ran" in out.splitlines()
    assert "torch_npu records in the main thread alone, and this is 'other': open the window or stage there" in err
    evidence = Evidence(tmp_path)
    assert evidence.skips() == [("rollout", "backend")]
    assert len(folders(tmp_path)) == 1


def test_a_window_that_another_thread_closes_waits_for_the_main_one(tmp_path):
    """close() from another thread stops nothing; the main thread's next stage does, and then records itself."""
    script = """
configure(steps="1")
import torch_npu
with training_step(1):
    window = rollout_window(1)
    window.open()
    elsewhere(window.close)
    say("on" if torch_npu._C._state.recording else "off")
    with training_stage("update"):
        pass
"""
    out, _ = record(tmp_path, THREADS + "import torch_npu\n" + script)
    assert "on" in out.splitlines()
    Evidence(tmp_path).check()
    assert len(folders(tmp_path)) == 2


def test_an_async_window_is_closed_by_its_own_loop(tmp_path):
    """A window of the main thread's event loop records, other tasks and threads meanwhile do not stop it."""
    script = """
configure(steps="1")
def in_executor():
    with training_stage("reward"):
        pass
async def other():
    await asyncio.sleep(0)
async def generate():
    async with rollout_window(1) as window:
        await asyncio.gather(asyncio.to_thread(in_executor), other())
        assert window.recorded
async def main():
    with training_step(1):
        await generate()
        async with rollout_window(1, name="late"):
            pass
        with training_stage("update"):
            pass
asyncio.run(main())
import torch_npu
say([each[2] for each in torch_npu._C.ranges if each[-1] == "profwin" and each[0] == "begin"])
"""
    out, _ = record(tmp_path, script)
    assert out.splitlines()[-1] == "['rollout', 'late', 'update']"
    evidence = Evidence(tmp_path)
    evidence.check()
    assert evidence.skips() == [("reward", "thread")]
    assert sorted(each.parent.name for each in folders(tmp_path)) == ["late", "rollout", "update"]


def test_an_async_window_closed_from_a_thread_is_left_to_the_loop(tmp_path):
    """aopen() in the loop and close() in a thread: the loop's next window or stage closes it, in its own thread."""
    script = """
configure(steps="1")
async def main():
    with training_step(1):
        window = rollout_window(1)
        await window.aopen()
        await asyncio.to_thread(window.close)
        say("on" if torch_npu._C._state.recording else "off")
        with training_stage("update"):
            pass
import torch_npu
asyncio.run(main())
"""
    out, _ = record(tmp_path, script)
    assert "on" in out.splitlines()
    evidence = Evidence(tmp_path)
    evidence.check()
    assert evidence.skips() == []
    assert len(folders(tmp_path)) == 2


def test_shutdown_in_another_thread_leaves_the_stop_to_the_end(tmp_path):
    """shutdown() from another thread stops no profiler: that is said, its device stays held, and the end stops it."""
    script = """
configure(steps="1")
window = rollout_window(1)
window.open()
elsewhere(profwin.shutdown)
import torch_npu
say("on" if torch_npu._C._state.recording else "off")
from profwin.registry.lock import Registry
outcome = Registry(None).acquire(("pretend-card",), kind="training", run="other", name="x", step=1)
say("free" if hasattr(outcome, "release") else "held")
"""
    words = tmp_path / "words"
    out, err = record(tmp_path / "out", THREADS + script, NPU_STAND_IN_LAST_WORDS=str(words))
    assert out.splitlines()[-2:] == ["on", "held"]
    assert "it must be stopped in the main thread, and is on until the process ends" in err
    assert "when the NPUs were shut down" not in words.read_text()
    assert len(folders(tmp_path / "out")) == 1
