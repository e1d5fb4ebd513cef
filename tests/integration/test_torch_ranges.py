"""Named ranges and the profiler that they belong to: a range that outlives it would crash the interpreter."""

from __future__ import annotations

from pathlib import Path

from core_support import run
from torch_support import names, traces

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
