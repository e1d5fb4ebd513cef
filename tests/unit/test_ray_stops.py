"""Where a driver waits for the stops of its actors: in its own thread while they answer soon; without a cluster."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="ray is not installed: actors cannot be named")

import ray

import profwin
from profwin.ray import actors
from profwin.testing import read_record

pytestmark = pytest.mark.timeout(60)

STARTED = {"recorded": True, "reason": "", "detail": ""}
STOPPED = {"known": True, "detail": ""}


class Handle:
    """A handle of an actor that starts at once, and stops when it is let."""

    def __init__(self, number):
        self.__ray_call__, self._actor_id = self, SimpleNamespace(hex=lambda: f"{number:032x}")
        self.told, self.stop = [], Future()

    def remote(self, work):
        """Take a call."""
        self.told.append(work.func.__name__)
        if self.told[-1] == "end":
            return SimpleNamespace(future=lambda: self.stop)
        started = Future()
        started.set_result(STARTED)
        return SimpleNamespace(future=lambda: started)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Be connected to none; return two actors, the names of threads that were started, and what each start is to do."""
    handles = [Handle(number) for number in range(2)]
    threads, on_start = [], []

    def get(references, timeout):
        try:
            return [each.future().result(timeout) for each in references]
        except (Late, TimeoutError):
            raise ray.exceptions.GetTimeoutError from None

    def start(thread):
        threads.append(thread.name)
        real(thread)
        for work in on_start if thread.name == "profwin-stop" else ():
            work()

    real = threading.Thread.start
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "get", get)
    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr("profwin.ray.call._has_loop", lambda: False)
    profwin.configure(steps="1", output=str(tmp_path), run="a", backend="record", strict=True)
    yield handles, threads, on_start
    profwin.shutdown()
    assert [handle.told for handle in handles] == [["begin", "end"]] * 2
    [window] = read_record(str(tmp_path / "a")).intervals
    assert window.skip is None


def window(handles):
    """Return a window over the actors."""
    return profwin.rollout_window(1, engine=actors(handles))


def test_no_thread_where_all_answer(cluster):
    """Answers that come at once are taken in the thread that leaves the window, and none is started."""
    handles, threads, _ = cluster
    for handle in handles:
        handle.stop.set_result(STOPPED)
    with window(handles) as opened:
        assert opened.recorded
    assert threads == []


def test_a_thread_waits_for_who_is_late(cluster, monkeypatch):
    """Who has not answered after a moment is waited for in a thread, and not told a second time."""
    handles, threads, on_start = cluster
    monkeypatch.setattr("profwin.closing._MOMENT", 0.05)
    handles[0].stop.set_result(STOPPED)
    on_start.append(lambda: handles[1].stop.set_result(STOPPED))
    with window(handles) as opened:
        assert opened.recorded
    assert threads[0] == "profwin-stop"


def test_a_thread_takes_over_after_ctrl_c(cluster, monkeypatch):
    """Ctrl-C in that moment ends the wait; the stops are waited for in a thread all the same."""
    handles, threads, on_start = cluster
    opened = window(handles)
    opened.open()
    on_start.extend([lambda handle=handle: handle.stop.set_result(STOPPED) for handle in handles])

    def interrupted(references, timeout):
        raise KeyboardInterrupt

    monkeypatch.setattr(ray, "get", interrupted)
    with pytest.raises(KeyboardInterrupt):
        opened.close()
    assert threads[0] == "profwin-stop"


def test_one_that_fails_is_left_to_a_thread(cluster):
    """A stop that fails is not waited out with the others, and its failure is said."""
    handles, threads, _ = cluster
    handles[0].stop.set_result(STOPPED)
    handles[1].stop.set_exception(ValueError("no"))
    with pytest.raises(profwin.EngineError, match="no"), window(handles):
        pass
    assert threads[0] == "profwin-stop"
