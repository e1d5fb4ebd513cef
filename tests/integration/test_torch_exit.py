"""No profiler is on when the interpreter ends, however it ends: it would crash there, and the trace be lost."""

from __future__ import annotations

import pytest
from core_support import Evidence, run
from torch_support import names, traces

OPENERS = {
    "main": "window.open()",
    "thread": "t = threading.Thread(target=window.open); t.start(); t.join()",
    "daemon thread": """
opened = threading.Event()
def body():
    window.open(); opened.set(); time.sleep(600)
threading.Thread(target=body, daemon=True).start(); opened.wait(100)""",
    "daemon thread in a block": """
opened = threading.Event()
def body():
    with window:
        opened.set(); time.sleep(600)
threading.Thread(target=body, daemon=True).start(); opened.wait(100)""",
}
ENDS = {"falls off": ("", 0), "sys.exit": ("sys.exit(3)", 3), "uncaught": ("raise RuntimeError('mine')", 1)}


@pytest.mark.parametrize(
    ("opener", "end"),
    [
        ("main", "falls off"),
        ("main", "uncaught"),
        ("thread", "sys.exit"),
        ("daemon thread", "falls off"),
        ("daemon thread in a block", "uncaught"),
    ],
)
def test_a_window_that_nobody_closes(tmp_path, opener, end):
    """A window left open at the end, whichever thread opened it, is closed and exported; the status is the script's."""
    last, status = ENDS[end]
    _, err = run(
        f"""
import torch
profwin.configure(steps="1", backend="torch", output={str(tmp_path)!r}, devices="pretend:card", run="r")
window = rollout_window(1)
{OPENERS[opener]}
torch.ones(3).sin()
{last}
""",
        status=status,
    )
    assert "Segmentation" not in err
    assert ("RuntimeError: mine" in err) == (end == "uncaught")
    evidence = Evidence(tmp_path)
    assert [each["reason"] for each in evidence.collections()] == ["exit"]
    assert evidence.of("end")[0]["reason"] == "exit"
    (trace,) = traces(tmp_path)
    assert "aten::sin" in names(trace)


@pytest.mark.parametrize("end", ["sys.exit", "uncaught"])
def test_a_stage_that_the_end_comes_out_of(tmp_path, end):
    """sys.exit and an uncaught exception inside a stage keep its trace, and the status."""
    last, status = ENDS[end]
    run(
        f"""
import torch
profwin.configure(steps="1", backend="torch", output={str(tmp_path)!r}, devices="pretend:card", run="r", collect="step")
with training_step(1), training_stage("update"):
    torch.ones(3).sin()
    {last}
""",
        status=status,
    )
    Evidence(tmp_path).check()
    (trace,) = traces(tmp_path)
    assert "aten::sin" in names(trace)


def test_takeover_that_is_left_on_is_not_ours_to_stop(tmp_path):
    """A foreign profiler that took ours over and is stopped by its owner before the end leaves a clean exit."""
    _, err = run(f"""
import torch
from torch.profiler import profile
profwin.configure(steps="1", backend="torch", output={str(tmp_path)!r}, devices="pretend:card", run="r")
foreign = profile()
with rollout_window(1):
    torch.ones(3).sin()
    foreign.start()
    for _ in range(50):
        torch.ones(3).cos()
for _ in range(50):
    torch.ones(3).cos()
foreign.stop()
say(len([event for event in foreign.events() if event.name == "aten::cos"]))
with training_stage("update"):
    torch.ones(3).tan()
""")
    assert "took the recording over" in err
    (trace,) = traces(tmp_path)
    assert "aten::tan" in names(trace)
