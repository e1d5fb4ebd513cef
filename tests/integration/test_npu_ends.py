"""Ends of processes while torch_npu records: exits, uncaught exceptions, forks and children of multiprocessing."""

from __future__ import annotations

import pytest
from core_support import Evidence
from npu_support import folders, metadata, record

ENDS = {"falls off": ("", 0), "sys.exit": ("sys.exit(3)", 3), "uncaught": ("raise RuntimeError('mine')", 1)}


@pytest.mark.parametrize("end", ENDS)
def test_a_window_that_nobody_closes(tmp_path, end):
    """It is stopped before torch_npu shuts the NPUs down, and its folder is whole; the status is the script's."""
    last, status = ENDS[end]
    script = f'configure(steps="1")\nrollout_window(1).open()\nspan("inner").__enter__()\n{last}\n'
    words = tmp_path / "words"
    out, _ = record(tmp_path / "out", script, status=status, NPU_STAND_IN_LAST_WORDS=str(words))
    assert "takes no effect" not in out, "it was stopped twice"
    evidence = Evidence(tmp_path / "out")
    assert [each["reason"] for each in evidence.collections()] == ["exit"]
    (export,) = evidence.of("export")
    assert "error" not in export
    assert "shut down" not in words.read_text()
    assert "open at the stop" not in words.read_text()
    assert len(folders(tmp_path / "out")) == 1


@pytest.mark.parametrize("end", ["sys.exit", "uncaught"])
def test_a_stage_that_the_end_comes_out_of(tmp_path, end):
    """sys.exit and an uncaught exception inside a stage keep its recording, and the status."""
    last, status = ENDS[end]
    script = f'configure(steps="1", collect="step")\nwith training_step(1), training_stage("update"):\n    {last}\n'
    record(tmp_path, script, status=status)
    Evidence(tmp_path).check()
    (folder,) = folders(tmp_path)
    assert metadata(folder)["name"] == "step"


def test_what_fails_at_the_end_is_in_the_journal(tmp_path):
    """A device that fails while the process ends neither changes its status nor goes unsaid."""
    script = 'configure(steps="1")\nrollout_window(1).open()\nos.environ["NPU_STAND_IN"] = "sync"\n'
    record(tmp_path, script)
    (close,) = Evidence(tmp_path).of("close")
    assert "aclrtSynchronizeStream" in close["error"]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_child_of_multiprocessing(tmp_path, method):
    """A child that was started anew records, and a window left open at its end is stopped and whole."""
    (tmp_path / "child_module.py").write_text(
        "import os, profwin\n"
        "def work():\n"
        "    with profwin.training_step(1), profwin.training_stage('update'):\n"
        "        pass\n"
        "    profwin.rollout_window(1).open()\n"
    )
    script = f"""
import multiprocessing
import child_module
configure(steps="1")
os.environ.update(profwin.environment())
with rollout_window(1):
    pass
child = multiprocessing.get_context({method!r}).Process(target=child_module.work)
child.start()
child.join()
assert child.exitcode == 0, child.exitcode
"""
    record(tmp_path / "out", f"sys.path.insert(0, {str(tmp_path)!r})\n" + script)
    evidence = Evidence(tmp_path / "out")
    assert [each for each in evidence.of("export") if "error" in each] == []
    assert sorted(each.parent.name for each in folders(tmp_path / "out")) == ["rollout", "rollout", "update"]


@pytest.mark.parametrize("how", ["multiprocessing", "os.fork"])
def test_a_forked_child_leaves_the_recording_to_its_parent(tmp_path, how):
    """The child, which drops the profiler, stops nothing and writes nothing."""
    script = """
import multiprocessing
configure(steps="1")

def work():
    with training_step(1), training_stage("update", devices="pretend:other"):
        print("child ran", flush=True)
    import torch_npu
    assert torch_npu._C.said == before, torch_npu._C.said
    gc.collect()
    assert not list(__import__("pathlib").Path(os.environ["OUT"]).rglob("profiler_info.json"))

with rollout_window(1):
    import torch_npu
    before = list(torch_npu._C.said)
    if HOW == "os.fork":
        pid = os.fork()
        if not pid:
            status = 1
            try:
                work()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
    else:
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        child.join()
        assert child.exitcode == 0, child.exitcode
say("parent", torch_npu._C.said == before)
"""
    out, err = record(tmp_path, script.replace("HOW", repr(how)))
    assert "child ran" in out.splitlines()
    assert "inherited" not in err
    assert "parent True" in out.splitlines()
    evidence = Evidence(tmp_path)
    evidence.check()
    assert evidence.skips() == [("update", "backend")]
    (folder,) = folders(tmp_path)
    assert metadata(folder)["step"] == 1
    assert "error" not in evidence.of("export")[0]


def test_a_child_forked_from_a_process_that_uses_npus(tmp_path):
    """It cannot use any: its stages run unrecorded, and a sentence says how to start it."""
    script = """
configure(steps="1")
with rollout_window(1):
    pass
pid = os.fork()
if not pid:
    with training_step(1), training_stage("update"):
        print("child ran", flush=True)
    profwin.shutdown()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    out, err = record(tmp_path, script)
    assert "child ran" in out.splitlines()
    (skip,) = Evidence(tmp_path).of("skip")
    assert skip["reason"] == "backend"
    assert "the process was forked from one that uses NPUs, and cannot use any itself: start it with" in skip["detail"]
    assert skip["detail"] in err
    assert len(folders(tmp_path)) == 1


def test_a_child_that_was_forked_before_the_first_use_records(tmp_path):
    """A fork before the process has used an NPU is no obstacle, for the child nor for the parent."""
    script = """
configure(steps="1")
pid = os.fork()
if not pid:
    with training_step(1), training_stage("update"):
        pass
    profwin.shutdown()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
with rollout_window(1):
    pass
"""
    record(tmp_path, script)
    Evidence(tmp_path).check()
    assert sorted(each.parent.name for each in folders(tmp_path)) == ["rollout", "update"]
