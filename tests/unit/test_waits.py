"""What an interval can wait for: how long, for which descriptor, and work that nobody waits for any more."""

from __future__ import annotations

import threading
import time

import pytest

from profwin import clock
from profwin.waits import TURN, Job, LockWait, Turn


class Attempt:
    """Stands for the attempt at a device that another process holds."""

    def __init__(self):
        self.asked = []

    def wait(self, seconds):
        """Note a blocking wait."""
        self.asked.append(("wait", seconds))

    def pause(self, seconds):
        """Note a question and answer it."""
        self.asked.append(("pause", seconds))
        return seconds, 7

    def woken(self, hung_up, slept):
        """Note how a sleep ended."""
        self.asked.append(("woken", hung_up, slept))
        return 0.25


def test_a_turn_is_short():
    """A turn sleeps for a millisecond at most, watches nothing and asks for no further sleep."""
    turn = Turn()
    assert turn.pause(1.0) == (TURN, None)
    assert turn.pause(TURN / 4) == (TURN / 4, None)
    assert turn.woken(True, 1.0) == 0.0
    began = time.monotonic()
    turn.block(60.0)
    assert time.monotonic() - began < 20


def test_a_lock_wait_ends_with_its_budget(monkeypatch):
    """A wait for a lock is never longer than asked for, nor than what is left, and never negative."""
    now = [100.0]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    attempt = Attempt()
    wait = LockWait(attempt, 103.0)
    assert wait.pause(0.05) == (0.05, 7)
    wait.block(0.05)
    now[0] = 102.99
    seconds, _ = wait.pause(0.05)
    assert seconds == pytest.approx(0.01)
    now[0] = 200.0
    assert wait.pause(0.05) == (0.0, 7)
    wait.block(0.05)
    assert attempt.asked[1] == ("wait", 0.05)
    assert attempt.asked[-1] == ("wait", 0.0)
    assert wait.woken(True, 0.5) == 0.25
    assert attempt.asked[-1] == ("woken", True, 0.5)


def test_a_job_that_is_done():
    """A job's work runs once, its error is kept for whoever waits, and nothing is undone."""
    done = []
    job = Job(lambda: done.append("work"), lambda: done.append("undo"))
    assert not job.done
    job.run()
    assert job.done
    job.result()
    assert done == ["work"]


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt()])
def test_a_job_that_fails(error):
    """What the work raises, of any kind, is raised where the result is asked for, and not in the thread."""

    def fail():
        raise error

    job = Job(fail, pytest.fail)
    job.run()
    assert job.done
    with pytest.raises(type(error)):
        job.result()


def test_a_job_that_is_abandoned_before_it_ends():
    """Abandoned work is undone by whoever did it, as soon as it is done, and not before."""
    began, go_on, done = threading.Event(), threading.Event(), []

    def work():
        began.set()
        go_on.wait(20)
        done.append("work")

    job = Job(work, lambda: done.append(threading.current_thread().name))
    thread = threading.Thread(target=job.run, name="worker")
    thread.start()
    began.wait(20)
    job.abandon()
    assert done == []
    go_on.set()
    thread.join(20)
    assert done == ["work", "worker"]


def test_failed_work_that_was_abandoned_is_undone_too():
    """Work that fails after it was abandoned is undone as well: half of it may have happened."""
    done = []
    job = Job(lambda: 1 / 0, lambda: done.append("undo"))
    job.abandon()
    job.run()
    assert done == ["undo"]


def test_a_job_that_is_abandoned_after_its_end():
    """Work that was done a moment before it was abandoned is undone by whoever abandons it."""
    done = []
    job = Job(lambda: done.append("work"), lambda: done.append("undo"))
    job.run()
    job.abandon()
    assert done == ["work", "undo"]


def test_abandoned_in_any_moment_it_is_undone_once():
    """However an end and an abandonment meet, the work is undone exactly once."""
    for _ in range(300):
        done = []
        job = Job(lambda done=done: done.append("work"), lambda done=done: done.append("undo"))
        barrier = threading.Barrier(2)

        def run(job=job, barrier=barrier):
            barrier.wait(20)
            job.run()

        thread = threading.Thread(target=run)
        thread.start()
        barrier.wait(20)
        job.abandon()
        thread.join(20)
        assert done == ["work", "undo"]
