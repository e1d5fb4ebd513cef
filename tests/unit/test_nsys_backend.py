"""Capture ranges of nsys: in which order its calls come, what is refused, and that none is left open."""

from __future__ import annotations

import json
import os
import threading

import pytest
import torch
from cuda_support import pretend_cuda, pretend_listener, taken

import profwin
from profwin import paused, rollout_window, span, training_stage, training_step
from profwin.backends import nsys
from profwin.backends.nsys import BACKEND
from profwin.configuration import current
from profwin.errors import BackendError


@pytest.fixture
def cuda(monkeypatch):
    """Pretend a CUDA build with a device, a tool that listens to NVTX, and that nsys launched this process."""
    runtime = pretend_cuda(monkeypatch)
    pretend_listener(monkeypatch)
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "7")
    return runtime


def configure(output, **more):
    """Configure a session that records with nsys."""
    profwin.configure(steps="1-", backend="nsys", output=output, run="r", devices="pretend:0", **more)


def records(output, kind):
    """Return the journal's records of a kind."""
    (journal,) = (output / "r" / "journal").iterdir()
    return [record for record in map(json.loads, journal.read_text().splitlines()) if record["kind"] == kind]


def direct():
    """Return a capture range of its own, without a session."""
    return BACKEND(None).open(None)


def test_a_window_and_a_stage_are_two_capture_ranges(tmp_path, cuda):
    """The range starts first; marks end, then the device is waited for, then it stops; and the device is the same."""
    configure(tmp_path)
    with rollout_window(1), span("sample"):
        pass
    with training_step(1), training_stage("update"):
        pass
    profwin.shutdown()
    inner = ["push rollout", "push sample", "pop sample", "pop rollout"]
    stop = ["device 3", "synchronize", "stop"]
    assert taken() == ["start", *inner, *stop, "start", "push update", "pop update", *stop]
    assert not records(tmp_path, "finding")
    assert not records(tmp_path, "export")


def test_a_step_is_one_capture_range(tmp_path, cuda):
    """With collect="step" the stages of a step are in one range."""
    configure(tmp_path, collect="step")
    for step in (1, 2):
        with training_step(step):
            for name in ("a", "b"):
                with training_stage(name):
                    pass
    profwin.shutdown()
    assert taken().count("start") == 2


def test_ranges_end_before_a_handover_stops_their_recording(tmp_path, cuda):
    """A stage inside a window of its own thread ends the window's mark, then the capture range, then has its own."""
    configure(tmp_path)
    with rollout_window(1), training_stage("update"):
        pass
    profwin.shutdown()
    stop = ["device 3", "synchronize", "stop"]
    first = ["start", "push rollout", "pop rollout", *stop]
    assert taken() == [*first, "start", "push update", "pop update", *stop]


def test_another_thread_closes_a_capture_range(tmp_path, cuda):
    """A mark that another thread's stage cuts off is popped in its own thread, after the stop, and never elsewhere."""
    configure(tmp_path)
    inside, over = threading.Event(), threading.Event()

    def generate():
        with rollout_window(1):
            inside.set()
            over.wait(30)

    thread = threading.Thread(target=generate)
    thread.start()
    inside.wait(30)
    with training_stage("update"):
        happened = taken()
        over.set()
        thread.join()
        assert taken() == ["pop update"]  # the stand-in has one stack for all threads
    assert happened == ["start", "push rollout", "device 3", "synchronize", "stop", "start", "push update"]
    profwin.shutdown()


def test_what_a_pause_cuts_has_a_mark_in_its_next_capture_range(tmp_path, cuda):
    """What goes on after a pause is marked in its second range too, by a range that may end anywhere."""
    configure(tmp_path)
    with rollout_window(1):
        taken()
        with paused():
            assert taken() == ["pop rollout", "device 3", "synchronize", "stop"]
        assert taken() == ["start", "start rollout"]
    assert taken() == ["end rollout", "device 3", "synchronize", "stop"]
    profwin.shutdown()


def test_one_capture_range_at_a_time(cuda):
    """A second range of the process is refused without a call; the first stops once, however often it is left."""
    first = direct()
    with first:
        with pytest.raises(BackendError, match="does not count"):
            direct().__enter__()
        assert taken() == ["start"]
    first.__exit__(None, None, None)
    assert taken() == ["device 3", "synchronize", "stop"]
    with direct():
        pass
    assert taken().count("start") == 1


def test_a_capture_range_that_was_lost_keeps_no_other_from_starting(cuda):
    """A range whose object is gone cannot be stopped any more, and does not block the next."""
    direct().__enter__()
    with direct():
        pass
    assert taken().count("start") == 2


def test_the_error_of_earlier_work_at_the_start(tmp_path, cuda):
    """A start that fails is undone by a stop, the body runs unrecorded, and the next range starts."""
    configure(tmp_path)
    cuda.failing = "start"
    with rollout_window(1) as window:
        assert not window.recorded
    cuda.failing = ""
    assert taken() == ["start", "stop"]
    with rollout_window(2) as window:
        assert window.recorded
    profwin.shutdown()
    (skip,) = records(tmp_path, "skip")
    assert (skip["reason"], "error 700 of earlier work" in skip["detail"]) == ("backend", True)


def test_the_error_of_earlier_work_at_the_end(tmp_path, cuda, monkeypatch):
    """Where waiting for the device fails the range is stopped all the same, which the journal has as a failure."""

    def fail():
        raise RuntimeError("device-side assert")

    monkeypatch.setattr(torch.cuda, "synchronize", fail)
    configure(tmp_path)
    with rollout_window(1):
        pass
    profwin.shutdown()
    assert taken()[-1] == "stop"
    (close,) = records(tmp_path, "close")
    assert "device-side assert" in close["error"]


def test_the_device_cannot_be_chosen(cuda, monkeypatch):
    """Where not even the device can be set any more, the range is stopped."""

    class Broken:
        def __init__(self, index):
            raise RuntimeError("no device")

    monkeypatch.setattr(torch.cuda, "device", Broken)
    with pytest.raises(RuntimeError, match="no device"), direct():
        pass
    assert taken() == ["start", "stop"]


def test_ctrl_c_in_the_start(cuda, monkeypatch):
    """A start that Ctrl-C ends is undone."""

    def interrupted():
        cuda.cudaProfilerStart()
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.cuda.profiler, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        direct().__enter__()
    assert taken() == ["start", "stop"]
    assert nsys._current is None


@pytest.mark.parametrize(
    ("version", "available", "words"),
    [(None, False, "is built without CUDA: install a CUDA build"), ("13.0", False, "finds no CUDA device")],
)
def test_it_says_why_it_cannot_record(tmp_path, cuda, monkeypatch, version, available, words):
    """A CPU build, and a machine without a device, are refused in one sentence; training goes on unrecorded."""
    monkeypatch.setattr(torch.version, "cuda", version)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    assert words in BACKEND.unusable()
    configure(tmp_path)
    with rollout_window(1) as window:
        assert not window.recorded
    profwin.shutdown()
    (skip,) = records(tmp_path, "skip")
    assert words in skip["detail"]
    assert taken() == []


def test_it_warns_once_where_nsys_did_not_launch_the_process(tmp_path, cuda, monkeypatch, caplog):
    """Without a sign of nsys there is one finding, whatever is recorded afterwards, and check passes it on."""
    monkeypatch.delenv("NSYS_PROFILING_SESSION_ID")
    configure(tmp_path)
    for step in (1, 2):
        with rollout_window(step):
            pass
    profwin.shutdown()
    assert [each["code"] for each in records(tmp_path, "finding")] == ["nsys-not-there", "no-stages"]
    assert caplog.text.count("profwin nsys-options") == 1
    from profwin.evidence.check import check

    assert "nsys-not-there" in {each.code.name for each in check(str(tmp_path)).findings}


def test_no_trace_is_missed(tmp_path, cuda):
    """Reports are written by nsys itself, so check asks for none."""
    configure(tmp_path)
    with rollout_window(1):
        pass
    with training_step(1), training_stage("update"):
        pass
    profwin.shutdown()
    from profwin.evidence.check import check

    assert not check(str(tmp_path)).findings


def test_a_forked_child_leaves_the_parents_range_alone(tmp_path, cuda):
    """A child that leaves the parent's block stops nothing and waits for no device: CUDA does not work there."""
    configure(tmp_path)
    with rollout_window(1):
        before = taken()
        pid = os.fork()
        if not pid:
            try:
                current().obstacle(_interval())
                ok = taken() == [] and nsys._current is None
            finally:
                os._exit(0 if ok else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert before == ["start", "push rollout"]
    assert taken()[-1] == "stop"
    profwin.shutdown()


def _interval():
    from profwin.interval import Interval

    return Interval("window", "w", 1, (), "here", role="rollout")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, and there is none here")
def test_on_a_real_device():
    """The real runtime starts and stops a range, twice, around real work."""
    for _ in range(2):
        with direct() as recording, recording.span("work"):
            torch.ones(8, device="cuda").sin()
