"""What a wait costs, what ends it, and what need not wait although it runs in the same process."""

from __future__ import annotations

import signal
import threading
import time

import pytest
from core_support import Evidence, descriptors, holder, once_waiting, run

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current
from profwin.registry.lock import Busy, Registry


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def configure(output, **more):
    """Configure this process with the settings that these tests share."""
    profwin.configure(**{"steps": "1-3", "output": str(output), "devices": "pretend:card", "run": "mine", **more})


@training_stage
def update():
    """Train."""


def test_a_users_alarm_ends_a_wait(output):
    """An exception of the user's own signal handler passes through our wait, and nothing is left behind."""

    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    configure(output)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        with holder(output), training_step(1):
            open_before = descriptors()
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(Alarm):
                update()
            assert descriptors() == open_before
            assert not current().owner.collections
    finally:
        signal.signal(signal.SIGALRM, before)


def test_successful_waits_count_too(output):
    """One budget a device and step: what was waited for with success is gone for the rest of the step."""
    configure(output, wait_budget=6.0)
    with training_step(1):
        with holder(output) as other:
            with once_waiting(other.say, 0.3):
                update()
            left = current().budget.left(("pretend-card",), 1)
            assert other.hear() == "left"
            other.say()
            other.finish()
        with holder(output):
            update()
            assert current().budget.left(("pretend-card",), 1) == 0
    assert 0 < left <= 5.7
    profwin.shutdown()
    evidence = Evidence(output)
    assert evidence.skips() == [("update", "busy")]
    assert evidence.of("skip")[0]["waited"] >= left


def test_a_wait_in_one_thread_does_not_hold_up_another(output):
    """While a thread waits for a busy device, a stage of another thread on a free one is recorded."""
    configure(output, wait_budget=60.0)
    with holder(output) as other, training_step(1):
        thread = threading.Thread(target=update)
        thread.start()
        time.sleep(0.3)
        with training_stage("elsewhere", devices="pretend:free"):
            pass
        assert thread.is_alive()
        other.say()
        thread.join()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["name"] for each in evidence.collections(purpose="training")] == ["elsewhere", "update"]
    assert evidence.skips() == []


def test_two_threads_that_want_one_device_share_it(output):
    """Threads that reach a free device at once are both recorded: one opens, the other joins or follows."""
    configure(output)
    barrier = threading.Barrier(4)

    def work():
        barrier.wait()
        for _ in range(25):
            update()

    with training_step(1):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == []
    assert len(evidence.recorded()) == 100


def test_a_stage_that_joins_locks_its_own_devices(output):
    """Joining a recording of a process without devices, a stage still locks those that it names."""
    profwin.configure(steps="1", output=str(output), run="mine")
    with training_step(1), training_stage("outer"):
        with training_stage("inner", devices="pretend:card"):
            refused = Registry().acquire(["pretend-card"], kind="rollout")
            assert isinstance(refused, Busy)
        assert current().owner.collections[0].keys == ("pretend-card",)
    free = Registry().acquire(["pretend-card"], kind="rollout")
    assert not isinstance(free, Busy)
    free.release()


def test_a_window_waits_for_what_a_stage_joined_with(output):
    """The devices that a joined stage added are released with the collection, so that a window gets them."""
    profwin.configure(steps="1", output=str(output), run="mine", devices="pretend:a")
    with training_step(1), training_stage("outer"), training_stage("inner", devices="pretend:b"):
        pass
    with rollout_window(1, devices="pretend:b") as window:
        assert window.recorded


def test_the_process_groups_timeout_bounds_the_budget(output):
    """A rank waits at most a quarter of its process group's timeout, since the others wait for it in a collective."""
    out, _ = run(
        f"""
import datetime
import torch.distributed as group
from profwin.configuration import current
profwin.configure(steps="1", output={str(output)!r}, wait_budget=30.0)
say(current().budget.whole())
timeout = datetime.timedelta(seconds=2)
group.init_process_group("gloo", store=group.HashStore(), rank=0, world_size=1, timeout=timeout)
say(current().budget.whole())
group.destroy_process_group()
profwin.shutdown()
os._exit(0)
"""
    )
    assert out.split() == ["30.0", "0.5"]
