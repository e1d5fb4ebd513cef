"""What a death, a fork and a mark do to a device lock."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time

import pytest
from lock_support import Other

from profwin.errors import RegistryError
from profwin.registry.holder import Holder, Mark, encode
from profwin.registry.lock import Busy, Held, Registry
from profwin.registry.process import ProcessIdentity, gone, identity


@pytest.fixture
def registry(tmp_path):
    """Give a registry in a directory of the test's own."""
    return Registry(str(tmp_path / "locks"))


def take(registry, *keys, **more):
    """Take devices as a window of this process."""
    return registry.acquire(keys, kind="rollout", run="mine", name="n", step=1, **more)


@pytest.fixture
def sleeper():
    """Start a process that stands for an engine's worker."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def test_sigkill_frees_what_the_process_held(registry):
    """A killed holder's devices are free at once, also for one who already waits."""
    with Other(registry.directory) as victim, Other(registry.directory) as other:
        victim.ask("held = take('a', 'b')")
        other.send("take('a', 'b', seconds=20)")
        time.sleep(0.1)
        victim.kill()
        assert "Held" in other.hear(10)


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)", "os.abort()"])
def test_any_end_frees(registry, end):
    """However a process ends, its devices are free."""
    with Other(registry.directory) as victim:
        victim.ask("held = take('a')")
        victim.send(end)
        victim.process.wait(100)
        assert isinstance(take(registry, "a"), Held)


def test_forked_child_does_not_keep_the_device(registry):
    """Case 29: a child that outlives the killed holder, forked or spawned, keeps nothing."""
    with Other(registry.directory) as victim:
        victim.ask("held = take('a')")
        child = victim.ask("exec('child = os.fork()\\nif not child:\\n    time.sleep(600)') or child")
        spawned = victim.ask("subprocess.Popen(['sleep', '600'], close_fds=False, stdout=subprocess.DEVNULL).pid")
        victim.kill()
        try:
            assert isinstance(take(registry, "a", seconds=10), Held)
        finally:
            for pid in (child, spawned):
                os.kill(int(pid), signal.SIGKILL)


def test_child_frees_nothing_of_its_parent(registry):
    """Case 29: neither the end nor a release of a forked child frees what the parent holds."""
    held = take(registry, "a")
    pid = os.fork()
    if not pid:
        code = 1
        try:
            held.release()
            del held
            gc.collect()
            answer = take(registry, "a", wait_for=lambda _: False)
            code = 0 if isinstance(answer, Busy) and answer.reason == "busy" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert held.keys == ("a",)
    with Other(registry.directory) as other:
        assert "Busy" in other.ask("take('a', wait=False)")
        held.release()
        assert "Held" in other.ask("take('a')")


def test_child_can_take_devices_itself(registry):
    """A forked child takes devices under its own name, not its parent's."""
    take(registry, "a").release()
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            held = take(registry, "a")
            os.write(writer, b"x" if held.keys else b"")
            time.sleep(600)
        finally:
            os._exit(0)
    assert os.read(reader, 1) == b"x"
    answer = take(registry, "a", wait_for=lambda _: False)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reader)
    os.close(writer)
    assert answer.holder.pid == pid


def test_other_opens_of_the_file_lose_nothing(registry):
    """Case 28: opening and closing the lock file elsewhere in the holder's process does not free it."""
    held = take(registry, "a")
    with open(registry.path("a"), "rb"):
        pass
    os.close(os.open(registry.path("a"), os.O_RDWR))
    with Other(registry.directory) as other:
        assert "Busy" in other.ask("take('a', wait=False)")
    held.release()


def test_release_reaches_descriptors_that_a_child_still_has(registry):
    """A release frees the device although a child that has not reached its exec shares the descriptor."""
    held = take(registry, "a")
    shared = os.dup(held._files[0].numbers[0])
    held.release()
    with Other(registry.directory) as other:
        assert "Held" in other.ask("take('a', wait=False)")
    os.close(shared)


@pytest.mark.parametrize("change", [{"start": 1}, {"pid": 2**22 + 1}, {"boot": "another"}, {"namespace": 1}, {}])
def test_stale_records_hold_nothing(registry, change):
    """Case 35: a record of whomever, with the number of a living process too, does not keep a free device away."""
    take(registry, "a").release()
    own = identity(os.getppid())
    fields = {"pid": own.pid, "start": own.start, "boot": own.boot, "namespace": own.namespace} | change
    with open(registry.path("a"), "r+b") as file:
        file.write(encode(Holder(**fields, uid=0, run="r", kind="training", name="n", step=1)))
    assert isinstance(take(registry, "a", wait_for=lambda _: False), Held)


def test_locked_without_a_credible_record_is_unknown(registry):
    """A device that is locked under a dead process's record, or none, has an unknown holder."""
    take(registry, "a").release()
    with Other(registry.directory) as other:
        other.ask(f"import fcntl; file = open({registry.path('a')!r}); fcntl.flock(file, fcntl.LOCK_EX)")
        seen = []
        answer = take(registry, "a", wait_for=lambda holder: bool(seen.append(holder)))
        assert (answer.reason, answer.holder, seen) == ("unknown", None, [None])


def test_mark_keeps_the_device_after_its_writer(registry, sleeper):
    """A mark outlives its writer's death: the device is unknown until the marked process is gone."""
    with Other(registry.directory) as driver:
        driver.ask(f"held = take('a'); held.set_mark(Mark([identity({sleeper.pid})], 'r', 'rollout', 2))")
        driver.kill()
    answer = take(registry, "a", wait_for=lambda _: False)
    assert (answer.reason, answer.holder) == ("unknown", None)
    assert answer.mark.processes == [identity(sleeper.pid)]
    assert str(sleeper.pid) in answer.describe()
    assert isinstance(take(registry, "a", seconds=0.2), Busy)
    sleeper.kill()  # a zombie until it is waited for: dead enough
    held = take(registry, "a", seconds=10)
    assert (held.keys, held.mark) == (("a",), None)


def test_marks_owner_may_take_the_device(registry, sleeper):
    """Who names the marked processes gets the device with its mark, and may clear it after a confirmed stop."""
    engine = identity(sleeper.pid)
    held = take(registry, "a")
    held.set_mark(Mark([engine], "r", "rollout", 2))
    held.release()
    assert isinstance(take(registry, "a", owner_of_mark=frozenset([identity()])), Busy)
    held = take(registry, "a", owner_of_mark=frozenset([engine, identity()]))
    assert held.mark.processes == [engine]
    held.clear_mark()
    held.release()
    assert take(registry, "a").mark is None


def test_mark_of_nobody_is_never_dead(registry):
    """A mark without processes, and bytes that are no mark at all, wait for a human."""
    held = take(registry, "a")
    held.set_mark(Mark([]))
    held.release()
    assert take(registry, "a").reason == "unknown"
    assert registry.confirm("a")
    assert not registry.confirm("a")
    with open(registry.path("a"), "r+b") as file:
        file.seek(1024)
        file.write(b"from a later version")
    assert take(registry, "a").reason == "unknown"
    assert registry.confirm("a")
    assert isinstance(take(registry, "a"), Held)


def test_mark_of_another_boot_is_dead(registry):
    """Nothing that was recording before the machine started anew records now."""
    held = take(registry, "a")
    own = identity()
    held.set_mark(Mark([ProcessIdentity(own.pid, own.start, "another boot", own.namespace)]))
    held.release()
    assert isinstance(take(registry, "a"), Held)


def test_mark_needs_a_hold(registry):
    """A device that is not held cannot be marked, nor confirmed while somebody holds it."""
    held = take(registry, "a")
    held.set_mark(Mark([identity()]))
    with Other(registry.directory) as other:
        assert other.ask("registry.confirm('a')") == "False"
    held.clear_mark()
    held.release()
    with pytest.raises(RegistryError):
        registry.attempt(["a"], kind="rollout")._files[0].write_mark(Mark([identity()]))
    assert not registry.confirm("never-locked")


def test_gone_needs_proof(sleeper):
    """A process is gone when it was killed, even unwaited for; one of another process namespace never is."""
    living = identity(sleeper.pid)
    assert not gone(living)
    assert not gone(ProcessIdentity(living.pid, living.start, living.boot, 1))
    sleeper.kill()
    deadline = time.monotonic() + 10
    while not gone(living) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert gone(living)
    sleeper.wait()
    assert gone(living)
    with pytest.raises(ProcessLookupError):
        identity(sleeper.pid)
