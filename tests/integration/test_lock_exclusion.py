"""Two owners never hold one device: processes, threads, several devices, refusals and waits."""

from __future__ import annotations

import os
import stat
import threading
import time

import pytest
from lock_support import Other

from profwin.errors import SettingError, StateError
from profwin.registry.lock import Busy, Held, Registry


@pytest.fixture
def registry(tmp_path):
    """Give a registry in a directory of the test's own."""
    return Registry(str(tmp_path / "locks"))


def take(registry, *keys, kind="rollout", **more):
    """Take devices as a window of this process."""
    return registry.acquire(keys, kind=kind, run="mine", name="n", step=1, **more)


def test_two_processes_exclude_each_other(registry):
    """What one process holds another cannot take, and can after the release."""
    with Other(registry.directory) as other:
        held = take(registry, "d")
        assert "Busy('d', 'busy'" in other.ask("take('d', wait=False)")
        held.release()
        assert "Held" in other.ask("take('d')")


def test_two_threads_exclude_each_other(registry):
    """Eight threads that each count while they hold a device never see another inside."""
    inside, worst = [], []

    def work():
        for _ in range(50):
            attempt = registry.attempt(["d"], kind="rollout")
            # A thread of this process is "self", which is refused at once: try again.
            while not isinstance(held := attempt.step(), Held):
                time.sleep(0.0001)
                attempt = registry.attempt(["d"], kind="rollout")
            inside.append(1)
            worst.append(len(inside))
            time.sleep(0)
            inside.pop()
            held.release()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(worst) == {1}


def test_own_process_is_refused_at_once(registry):
    """Case 31: asking again for a device that this process holds ends at once as "self", whatever the wait."""
    held = take(registry, "d")
    begun = time.monotonic()
    answer = take(registry, "d", seconds=30)
    assert isinstance(answer, Busy)
    assert answer.reason == "self"
    assert time.monotonic() - begun < 15
    held.release()


def test_refusals_name_holder_and_reason(registry):
    """A refused wait for training is "peer", for rollout "busy", and both name the holder."""
    with Other(registry.directory) as other:
        for kind, reason in (("training", "peer"), ("rollout", "busy")):
            other.ask(f"held = take('d', kind={kind!r})")
            seen = []
            answer = take(registry, "d", wait_for=lambda holder, seen=seen: bool(seen.append(holder)))
            assert (answer.reason, answer.holder.pid, answer.holder.kind) == (reason, other.pid, kind)
            assert seen[-1] == answer.holder
            assert f"pid {other.pid}" in answer.describe()
            assert "run other" in answer.describe()
            other.ask("held.release()")


def test_wait_is_bounded_and_reports(registry):
    """A wait ends at its limit with the last answer, and says once, after a second, for whom it waits."""
    with Other(registry.directory) as other:
        other.ask("held = take('d')")
        slow = []
        answer = take(registry, "d", seconds=1.3, on_slow=slow.append)
        assert answer.reason == "busy"
        assert 1.3 <= answer.waited < 30
        assert [busy.holder.pid for busy in slow] == [other.pid]


def test_release_wakes_a_waiter(registry):
    """A waiter gets the device soon after it is released, in both directions, many times over."""
    with Other(registry.directory) as other:
        for _ in range(20):
            held = take(registry, "d")
            other.send("held = take('d', seconds=20)")
            time.sleep(0.01)
            held.release()
            other.hear()
            other.send("(time.sleep(0.01), held.release())")
            held = take(registry, "d", seconds=20)
            assert isinstance(held, Held)
            other.hear()
            held.release()


def test_several_devices_are_all_or_none(registry):
    """Where one of several devices is held, none is taken; doubled keys count once; the order given is no matter."""
    with Other(registry.directory) as other:
        other.ask("held = take('b')")
        answer = take(registry, "c", "b", "a", "c", wait_for=lambda _: False)
        assert (answer.device, answer.reason) == ("b", "busy")
        assert "Held" in other.ask("take('a', 'c')")
        other.ask("held.release()")
        held = take(registry, "c", "b", "a", "c", seconds=20)
        assert held.keys == ("a", "b", "c")


def test_waiting_for_one_device_leaves_the_others_free(registry):
    """Who waits for one of several devices holds none of them meanwhile."""
    with Other(registry.directory) as other, Other(registry.directory) as third:
        other.ask("held = take('b')")
        third.send("take('a', 'b', seconds=20).keys")
        time.sleep(0.1)
        held = take(registry, "a", seconds=5)
        assert isinstance(held, Held)
        held.release()
        other.ask("held.release()")
        assert third.hear() == "('a', 'b')"


def test_opposite_orders_do_not_deadlock(registry):
    """Two processes that take the same devices in opposite orders, over and over, both finish."""
    loop = (
        "for i in range(200):\n    held = take({}, seconds=20)\n    assert held.keys == ('a', 'b')\n    held.release()"
    )
    with Other(registry.directory) as one, Other(registry.directory) as two:
        one.send(loop.format("'a', 'b'"))
        two.send(loop.format("'b', 'a'"))
        assert (one.hear(60), two.hear(60)) == ("None", "None")


def test_extend_is_one_try(registry):
    """Further devices are taken in one try, without waiting; a refusal leaves what is held alone."""
    with Other(registry.directory) as other:
        other.ask("held = take('b')")
        held = take(registry, "a")
        assert held.extend(["b", "c"]).device == "b"
        assert held.keys == ("a",)
        assert "Held" in other.ask("take('c')")
        other.ask("held.release()")
        assert held.extend(["b", "a"]) is None
        assert held.keys == ("a", "b")
        assert "Busy" in other.ask("take('b', wait=False)")
        held.release()
        assert "Held" in other.ask("take('a', 'b')")
        with pytest.raises(StateError):
            held.extend(["c"])


def test_attempt_steps_and_closes(registry):
    """An attempt can be driven by hand, gives a descriptor to watch, and leaves nothing after close."""
    with Other(registry.directory) as other:
        other.ask("held = take('d')")
        attempt = registry.attempt(["d"], kind="rollout")
        assert attempt.step() is None
        assert attempt.busy.holder.pid == other.pid
        limit, number = attempt.pause(5)
        assert 0 < limit < 1
        assert stat.S_ISFIFO(os.fstat(number).st_mode)
        assert attempt.woken(False, limit) == 0
        attempt.wait(0.01)
        other.ask("held.release()")
        assert isinstance(attempt.step(), Held)
        with pytest.raises(StateError):
            attempt.step()
        attempt.close()
        attempt.close()


def test_dropped_hold_is_released(registry):
    """A hold that nobody keeps is released, and release may be called twice."""
    take(registry, "d")
    held = take(registry, "d")
    assert isinstance(held, Held)
    held.release()
    held.release()


@pytest.mark.parametrize("key", ["", "x" * 300])
def test_keys_that_name_no_file_are_refused(registry, key):
    """A key that cannot name a file is a wrong setting."""
    with pytest.raises(SettingError):
        take(registry, key)


def test_keys_with_odd_characters_stay_inside(registry, tmp_path):
    """A key with slashes and dots names one file in the directory, and comes back whole from the survey."""
    key = "../../pretend: ü\n"
    held = take(registry, key)
    assert [state.key for state in registry.survey()] == [key]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["locks"]
    held.release()
