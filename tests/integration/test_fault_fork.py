"""Processes that are forked or spawned inside a window."""

from __future__ import annotations

import gzip
import json

import pytest
from core_support import Evidence, run


def configure(output, backend="record", **more):
    """Return the statement that configures the script."""
    settings = {
        "steps": "1-3",
        "backend": backend,
        "output": str(output),
        "devices": "pretend:card",
        "run": "r",
        **more,
    }
    return f"profwin.configure(**{settings!r})\n"


def names_in(path):
    """Return the names of a trace's events."""
    with gzip.open(path) as file:
        return [event.get("name") for event in json.load(file)["traceEvents"]]


# A forked child of a process that ever used torch.profiler cannot end in C's exit(): torch's own clean-up aborts there,
# without us too (2.13). So with torch only the ways that multiprocessing's children and pools use are tried.
@pytest.mark.parametrize(
    ("backend", "end"),
    [
        ("record", "sys.exit(0)"),
        ("record", "gc.collect(); os._exit(0)"),
        ("torch", "profwin.shutdown(); gc.collect(); os._exit(0)"),
    ],
)
def test_fork_inside_a_window(tmp_path, backend, end):
    """However a forked child ends, it ends well, frees nothing of its parent's, and the parent's window is whole."""
    script = f"""
from core_support import ROOT
from profwin.registry.lock import Busy, Registry
if {backend == "torch"}:
    import torch
{configure(tmp_path, backend)}
with rollout_window(1) as window:
    if {backend == "torch"}:
        torch.ones(3).sin()
    pid = os.fork()
    if not pid:
        {end}
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    answer = Registry().acquire(["pretend-card"], kind="rollout", run="t", name="t", step=1)
    say(code, window.recorded, isinstance(answer, Busy) and answer.reason)
    if {backend == "torch"}:
        torch.ones(3).cos()
profwin.shutdown()
"""
    out, err = run(script)
    assert out.split() == ["0", "True", "self"], err
    evidence = Evidence(tmp_path)
    assert [each["reason"] for each in evidence.collections()] == ["end"]
    traces = list(tmp_path.glob("r/step_000001/**/*.json.gz"))
    assert len(traces) == (1 if backend == "torch" else 0)
    for trace in traces:
        names = names_in(trace)
        assert "aten::sin" in names
        assert "aten::cos" in names


@pytest.mark.parametrize(("method", "backend"), [("fork", "record"), ("spawn", "record"), ("fork", "torch")])
def test_child_opens_a_stage_of_its_own(tmp_path, backend, method):
    """A child that multiprocessing starts inside a window waits for that window, then records in its own name."""
    module = tmp_path / "child_module.py"
    module.write_text("""
import profwin
from profwin import training_stage, training_step

def work(ready):
    ready.set()
    with training_step(1), training_stage("theirs"):
        if profwin.configuration.current().settings.backend == ("torch",):
            import torch
            torch.ones(3).sin()
""")
    script = f"""
import multiprocessing
sys.path.insert(0, {str(tmp_path)!r})
from child_module import work
{configure(tmp_path / "out", backend)}
if {backend == "torch"}:
    import torch
os.environ.update(profwin.environment())
context = multiprocessing.get_context({method!r})
ready = context.Event()
with rollout_window(1):
    if {backend == "torch"}:
        torch.ones(3).cos()
    child = context.Process(target=work, args=(ready,))
    child.start()
    ready.wait(100)
    time.sleep(0.2)
child.join(100)
say(child.exitcode)
profwin.shutdown()
"""
    out, err = run(script)
    assert out.split() == ["0"], err
    evidence = Evidence(tmp_path / "out")
    evidence.check()
    assert [each["name"] for each in evidence.collections()] == ["rollout", "theirs"]
    assert len({each["pid"] for each in evidence.collections()}) == 2
    assert len(evidence.of("end")) == 2
    if backend == "torch":
        (mine,) = (tmp_path / "out").glob("r/step_000001/rollout/*.gz")
        (theirs,) = (tmp_path / "out").glob("r/step_000001/train/theirs/*.gz")
        assert "aten::cos" in names_in(mine)
        assert "aten::sin" in names_in(theirs)
        assert "aten::sin" not in names_in(mine)


def test_child_that_leaves_its_parents_blocks(tmp_path):
    """A child that returns out of the window, stage and pause it was forked in closes none, and can record on."""
    script = f"""
{configure(tmp_path)}
with rollout_window(1) as window:
    with paused():
        pid = os.fork()
    if not pid:
        say("child", window.recorded)
if not pid:
    with training_step(1), training_stage("mine"):
        say("child", bool(profwin.configuration.current().owner.collections))
    sys.exit(0)
say("parent", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
with training_step(1), training_stage("theirs"):
    pass
profwin.shutdown()
"""
    out, err = run(script)
    assert sorted(out.splitlines()) == ["child False", "child True", "parent 0"], err
    evidence = Evidence(tmp_path)
    assert sorted(each["name"] for each in evidence.collections()) == ["mine", "rollout", "rollout", "theirs"]
    assert all(each["end"] for each in evidence.collections())


def test_child_keeps_no_journal_of_its_parent_open(tmp_path):
    """A forked child writes a journal of its own, and holds neither its parent's nor any lock file open."""
    script = f"""
from core_support import descriptors
{configure(tmp_path)}
with rollout_window(1):
    pid = os.fork()
    if not pid:
        say(sorted(os.path.basename(each) for each in descriptors()))
        os._exit(0)
    os.waitpid(pid, 0)
profwin.shutdown()
"""
    out, _ = run(script)
    assert not [name for name in json.loads(out.replace("'", '"')) if name.endswith((".jsonl", ".lock", ".fifo"))]
