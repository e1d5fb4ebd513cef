"""Named ranges and the profiler that they belong to: a range that outlives it would crash the interpreter."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch
from core_support import Evidence, run
from release_support import configure
from torch_support import names, traces

import profwin
from profwin import clock, rollout_window, training_stage

SCRIPT = """
import threading
import torch
profwin.configure(steps="1-", backend="torch", output={output!r}, devices="pretend:card", run="r", trace_format="json")
for step in range(1, 61):
    inside, over = threading.Event(), threading.Event()

    def generate():
        with rollout_window(step), span("sample"):
            torch.ones(3).sin()
            inside.set()
            assert over.wait(30)

    thread = threading.Thread(target=generate)
    thread.start()
    assert inside.wait(30)
    with training_stage("update"):
        torch.ones(3).cos()
        over.set()
        thread.join()
        torch.ones(3).tan()
profwin.shutdown()
say("whole")
"""


def test_a_window_whose_block_outlives_its_recording(tmp_path):
    """A stage ends another thread's window, whose block is left while the stage records, and all is whole."""
    out, _ = run(SCRIPT.format(output=str(tmp_path)))
    assert out.split()[-1] == "whole"
    windows, stages = traces(Path(tmp_path), "rollout"), traces(Path(tmp_path), "train/update")
    assert len(windows) == len(stages) == 60
    for window in windows:
        assert {"rollout", "sample", "aten::sin"} <= set(names(window))
    for stage in stages:
        assert {"update", "aten::cos", "aten::tan"} <= set(names(stage))
        assert not {"rollout", "sample"} & set(names(stage))


def test_a_pause_in_the_middle_of_a_range(tmp_path):
    """What is paused and taken up again is a range of both of its traces."""
    out, _ = run(
        f"""
import torch
profwin.configure(steps="1", backend="torch", output={str(tmp_path)!r}, devices="pretend:card", run="r")
with rollout_window(1):
    torch.ones(3).sin()
    with paused():
        torch.ones(3).tan()
    torch.ones(3).cos()
profwin.shutdown()
say("whole")
"""
    )
    assert out.split()[-1] == "whole"
    found = [set(names(trace)) for trace in traces(Path(tmp_path), "rollout")]
    assert [("rollout" in each, "aten::tan" in each) for each in found] == [(True, False), (True, False)]
    assert sorted("aten::cos" in each for each in found) == [False, True]


USERS = """
import user_ranges
profwin.configure(steps="1-", backend="torch", output={output!r}, devices="pretend:card", run="r", trace_format="json",
                  collect="step" if {kind!r} == "hooks" else "stage")
for step in range(1, {times} + 1):
    getattr(user_ranges, {kind!r})(step)
profwin.shutdown()
say("whole")
"""

# Then glibc has one heap and gives what is freed back at once: whoever writes to freed memory dies nearly every time.
STRICT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}


@pytest.mark.parametrize("kind", ["pause", "split", "handover", "cut", "hooks", "sync", "nested", "tasks"])
def test_ranges_of_the_users_own_outlive_their_recordings(tmp_path, kind):
    """Whatever stops a recording inside a user's range: nothing crashes, and the range is in the trace it began in."""
    times = 25
    out, _ = run(USERS.format(kind=kind, times=times, output=str(tmp_path)), patience=120, **STRICT_MEMORY)
    assert out.split()[-1] == "whole"
    found = [names(trace) for trace in traces(Path(tmp_path))]
    assert len(found) >= (times if kind == "sync" else 2 * times)
    begun = [each for each in found if "earlier" in each]
    assert len(begun) == times
    for each in found:
        # Where the window is taken up again the user's range is not: torch's ranges have one beginning.
        assert ("user" in each) is ("earlier" in each)
        assert ("later" in each) is not ("earlier" in each) or kind == "sync"
        assert "unrecorded" not in each


def test_a_range_that_began_under_another_profiler(tmp_path):
    """A range of the user's own profiler, which has stopped, may end inside one of ours and inside the next."""
    out, _ = run(
        f"""
import torch
from torch.profiler import profile, record_function
def work(function):
    x = torch.ones(3)
    for _ in range(20):
        function(x)
profwin.configure(steps="1-", backend="torch", output={str(tmp_path)!r}, devices="pretend:card", run="r")
for step in range(1, 26):
    ranges = [record_function("user") for _ in range(3)]
    with profile():
        for each in ranges:
            each.__enter__()
        work(torch.sin)
    with training_step(step):
        for each in ranges[:2]:
            with training_stage("part"):
                work(torch.cos)
                each.__exit__(None, None, None)
                work(torch.cos)
    ranges[2].__exit__(None, None, None)
    with rollout_window(step):
        del each, ranges
        work(torch.cos)
profwin.shutdown()
say("whole")
""",
        **STRICT_MEMORY,
    )
    assert out.split()[-1] == "whole"
    assert len(traces(Path(tmp_path))) == 75
    assert not any("user" in names(trace) for trace in traces(Path(tmp_path)))


def test_the_limit_cuts_inside_a_range_of_another_thread(tmp_path, monkeypatch):
    """A window over its max_seconds ends at another thread's safe point, though a range is open in its own thread."""
    configure(tmp_path / "out", backend="torch")
    inside, over = threading.Event(), threading.Event()

    def generate():
        with rollout_window(1, max_seconds=10), torch.profiler.record_function("user"):
            torch.ones(3).sin()
            inside.set()
            assert over.wait(30)
            torch.ones(3).exp()

    thread = threading.Thread(target=generate)
    thread.start()
    assert inside.wait(30)
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + 11)
    with training_stage("update"):
        torch.ones(3).cos()
        over.set()
        thread.join()
        torch.ones(3).tan()
    profwin.shutdown()
    evidence = Evidence(tmp_path / "out")
    evidence.check()
    assert [each["reason"] for each in evidence.collections(name="rollout")] == ["cut"]
    found = {trace["profwin"]["name"]: set(names(trace)) for trace in traces(tmp_path / "out")}
    assert {"user", "aten::sin"} <= found["rollout"]
    assert "aten::cos" not in found["rollout"]
    assert {"aten::cos", "aten::exp", "aten::tan"} <= found["update"]
    assert "user" not in found["update"]


def test_a_forked_child_inside_a_range():
    """A child that was forked inside a recorded range leaves it, begins others, and ends as one of multiprocessing."""
    out, _ = run(
        """
import tempfile
import torch
from torch.profiler import record_function
profwin.configure(steps="1", backend="torch", output=tempfile.mkdtemp(), devices="pretend:card", run="r")
with rollout_window(1), record_function("user"):
    torch.ones(3).sin()
    pid = os.fork()
    if pid == 0:
        with record_function("child"):
            torch.ones(3).cos()
if pid == 0:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
profwin.shutdown()
say("whole")
"""
    )
    assert out.split()[-1] == "whole"
