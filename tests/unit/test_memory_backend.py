"""The memory backend: snapshots of each recording and of the moment when memory runs out, and the rules it keeps."""

from __future__ import annotations

import json
import os
import pickle
import pickletools
import subprocess
import sys
from pathlib import Path

import memory_support
import pytest

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.journal import read
from profwin.testing import Host

torch = pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
READABLE = {
    "PROTO", "FRAME", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "MEMOIZE", "MARK", "SHORT_BINUNICODE", "BINUNICODE",
    "BINGET", "LONG_BINGET", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "NONE", "NEWTRUE", "NEWFALSE",
    "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "STOP",
}  # fmt: skip
"""Opcodes that the reader of pytorch.org/memory_viz knows, of the protocols 2 to 4."""


@pytest.fixture
def host(tmp_path):
    """Return a pretend host."""
    with Host(tmp_path) as found:
        yield found


@pytest.fixture(params=["cuda", "npu"])
def allocator(request, monkeypatch):
    """Return the allocator of each kind."""
    return getattr(memory_support, request.param)(monkeypatch)


def files(host, ending="pickle"):
    """Return what was written, by step."""
    return sorted(Path(host.output).glob(f"*/step_*/**/*.{ending}"))


def events(path):
    """Return the names in a snapshot's history."""
    (trace,) = pickle.loads(path.read_bytes())["device_traces"]
    return [event["frames"][0]["name"] for event in trace]


def check(host):
    """Return what `profwin check` finds, as codes, and its exit status."""
    (run,) = Path(host.output).iterdir()
    command = [sys.executable, "-m", "profwin", "check", str(run), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=ROOT, check=False)
    return done.returncode, json.loads(done.stdout)["findings"]


def test_one_snapshot_a_recording(host, allocator):
    """Each window and stage has a snapshot of its own events, with the metadata, and the history is off in between."""
    host.configure(backend="memory", strict=True)
    allocator.allocate("before")
    for step in (1, 2):
        with rollout_window(step):
            allocator.allocate(f"generate {step}")
        assert not allocator.on
        allocator.allocate("between")
        with training_step(step), training_stage("update"):
            allocator.allocate(f"update {step}")
    found = files(host, "memory.pickle")
    assert sorted(event for path in found for event in events(path)) == [
        "generate 1", "generate 2", "update 1", "update 2",
    ]  # fmt: skip
    assert len(found) == 4
    said = [pickle.loads(path.read_bytes())["profwin"] for path in found]
    assert sorted((each["step"], each["purpose"]) for each in said) == [
        (1, "rollout"), (1, "training"), (2, "rollout"), (2, "training"),
    ]  # fmt: skip
    assert all(not collection.problems for collection in host.record.collections)
    assert set(allocator.calls) == {("all", "all", "python", 100_000), (None, "all", "all", sys.maxsize)}


def test_options_reach_the_allocator(host, allocator):
    """The options are arguments of torch's function; ``none`` is its None, and device chooses the kind."""
    kind = "npu" if "torch_npu" in sys.modules else "cuda"
    options = {"max_entries": 7, "stacks": "all", "context": "none", "on_oom": False, "device": kind}
    host.configure(backend="memory", memory_options=options, strict=True)
    with rollout_window(1):
        assert allocator.calls == [("all", None, "all", 7)]
    assert not allocator.observers


def journal(host, kind):
    """Return the records of a kind, of all runs."""
    paths = Path(host.output).glob("*/journal/*.jsonl")
    return [record for path in paths for record in read(str(path)) if record["kind"] == kind]


def test_no_device_lock_is_taken(host, allocator):
    """Where nothing else records, no device is locked; so it never waits and nobody waits for it."""
    host.configure(backend="memory", strict=True)
    with rollout_window(1):
        assert not list(Path(host.lock_dir).glob("*.lock"))
    (opened,) = journal(host, "open")
    assert opened["unlocked"]


def test_out_of_memory_is_seen_at_once_and_once(host, allocator):
    """The snapshot of the moment is on disk before the error reaches the training, which sees its own error."""
    host.configure(backend="memory", strict=True)
    with rollout_window(1):
        allocator.allocate("much")
        for _ in range(2):
            with pytest.raises(MemoryError, match="Tried to allocate"):
                allocator.run_out()
            (found,) = files(host, "oom.pickle")
            assert events(found) == ["much"]
            allocator.allocate("more")
    exported = [record["path"] for record in journal(host, "export")]
    assert [path.rpartition(".")[0].rpartition(".")[2] for path in exported] == ["memory", "oom"]


def test_out_of_memory_elsewhere_is_not_ours(host, allocator):
    """The observer stays for the process's life, is there once, and does nothing outside of recordings."""
    for _ in range(2):
        host.configure(backend="memory", strict=True)
        with rollout_window(1):
            pass
        with pytest.raises(MemoryError):
            allocator.run_out()
    assert len(allocator.observers) == 1
    assert not files(host, "oom.pickle")


def test_the_observer_never_raises(host, allocator, caplog):
    """Where the snapshot of the moment cannot be written, the training sees its own error, and one warning says so."""
    host.configure(backend="memory")
    with rollout_window(1):
        (run,) = [path for path in Path(host.output).iterdir() if path.is_dir()]
        (run / "step_1").write_text("in the way")
        for name in ("step_000001", "step_00001", "step_0001"):
            (run / name).write_text("in the way")
        with pytest.raises(MemoryError):
            allocator.run_out()
    assert sum("memory ran out is lost" in record.getMessage() for record in caplog.records) == 1
    assert [record for record in journal(host, "export") if record.get("error")]
    assert not list(run.rglob("*.tmp"))


def test_a_history_that_is_on_is_shared(host, allocator, caplog):
    """Somebody else's history is neither changed nor ended, and the snapshot is of that one."""
    allocator.record("all", "alloc", "all", 1000)
    allocator.allocate("before")
    host.configure(backend="memory", strict=True)
    for step in (1, 2):
        with rollout_window(step):
            allocator.allocate("inside")
    assert allocator.on
    assert allocator.calls == [("all", "alloc", "all", 1000)]
    assert [events(path) for path in files(host)] == [
        ["before", "inside"], ["before", "inside", "inside"],
    ]  # fmt: skip
    assert sum("records the history already" in record.getMessage() for record in caplog.records) == 1


def test_a_history_that_another_ends_is_lost(host, allocator):
    """Turned off inside, the history is gone: the journal says so, and nothing that looks whole is written."""
    host.configure(backend="memory")
    with rollout_window(1):
        allocator.allocate("inside")
        allocator.record(None, "all", "all", 1)
    (record,) = journal(host, "export")
    assert "turned the history off" in record["error"]
    assert not files(host)


def test_a_device_is_never_initialised(host, monkeypatch):
    """Where nothing uses the device, it stays so: initialising it would keep forked children from using it."""
    allocator = memory_support.cuda(monkeypatch, used=False)
    host.configure(backend="memory")
    with rollout_window(1):
        pass
    assert not allocator.used
    (record,) = journal(host, "export")
    assert "nothing in this process had used cuda" in record["error"]


def test_a_full_ring_is_said(host, allocator, caplog):
    """Where the history came to its limit, the older events are gone, and that is said once."""
    host.configure(backend="memory", memory_options="max_entries=2", strict=True)
    for step in (1, 2):
        with rollout_window(step):
            for name in "abc":
                allocator.allocate(name)
    assert events(files(host)[0]) == ["b", "c"]
    assert sum("came to max_entries, 2" in record.getMessage() for record in caplog.records) == 1


def test_the_viewer_can_read_it(host, allocator):
    """A snapshot is of a protocol, and has only opcodes, that the reader of pytorch.org/memory_viz knows."""
    host.configure(backend="memory", strict=True)
    with rollout_window(1):
        for number in range(300):
            allocator.allocate(f"layer {number}")
    (path,) = files(host)
    found = list(pickletools.genops(path.read_bytes()))
    assert {opcode.name for opcode, _, _ in found} <= READABLE
    assert found[0][1] == 4


@pytest.mark.parametrize("moment", ["recording", "record", "observe", "snapshot"])
def test_an_allocator_that_fails_leaves_nothing_on(host, allocator, monkeypatch, moment):
    """Whatever of the allocator fails, the body runs, the history is off, and the next window records."""
    from profwin.backends.memory_allocator import Allocator

    def fail(*_args, **_kwargs):
        raise RuntimeError("cudaMallocAsync does not yet support recordHistory")

    host.configure(backend="memory")
    ran = []
    with monkeypatch.context() as patch:
        patch.setattr(Allocator, moment, fail)
        with rollout_window(1):
            ran.append(1)
    assert ran
    assert not allocator.on
    with rollout_window(2):
        allocator.allocate("later")
    (path,) = files(host)
    assert events(path) == ["later"]
    said = [record.get("detail", record.get("error")) for kind in ("skip", "close") for record in journal(host, kind)]
    assert any("does not yet support recordHistory" in (each or "") for each in said)


def test_ctrl_c_while_it_begins(host, allocator, monkeypatch):
    """Interrupted right after the history was turned on, it is off again, and the interrupt passes."""
    from profwin.backends.memory_allocator import Allocator

    record = Allocator.record

    def interrupted(self, **options):
        record(self, **options)
        raise KeyboardInterrupt

    host.configure(backend="memory")
    monkeypatch.setattr(Allocator, "record", interrupted)
    with pytest.raises(KeyboardInterrupt), rollout_window(1):
        pass
    assert not allocator.on


def test_a_run_checks_clean(host, monkeypatch):
    """`profwin check` never unpickles; it names each snapshot and passes over it, and finds one that is gone."""
    allocator = memory_support.cuda(monkeypatch)
    host.configure(backend="memory", strict=True)
    for step in (1, 2):
        with rollout_window(step):
            allocator.allocate("inside")
        with training_step(step), training_stage("update"), pytest.raises(MemoryError):
            allocator.run_out()
    profwin.shutdown()
    status, found = check(host)
    assert status == 0, found
    assert {each["code"] for each in found if each["severity"] != "remark"} == set()
    assert sorted(each["file"] for each in found if each["code"] == "memory-snapshot") == sorted(
        str(path.relative_to(next(Path(host.output).iterdir()))) for path in files(host)
    )
    assert len(files(host)) == 6
    os.unlink(files(host)[0])
    status, found = check(host)
    assert status != 0
    assert "trace-missing" in {each["code"] for each in found}
