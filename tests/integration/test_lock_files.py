"""Lock files and directories that are planted, foreign, full, read-only, deleted or of other users."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from lock_support import Other

from profwin.errors import RegistryError
from profwin.registry import file as lock_file
from profwin.registry.lock import Busy, Held, Registry

NOBODY = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="becomes other users")


@pytest.fixture
def registry(tmp_path):
    """Give a registry in a directory of the test's own."""
    return Registry(str(tmp_path / "locks"))


@pytest.fixture
def shared():
    """Give a directory that all users can write, unlike pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="profwin-test-"))
    path.chmod(0o1777)
    yield path
    shutil.rmtree(path)


def take(registry, *keys, **more):
    """Take devices as a window of this process."""
    return registry.acquire(keys, kind="rollout", run="mine", name="n", step=1, **more)


def plant(kind, path):
    """Put something else in place of a file of the registry; give the file that it leads to."""
    target = Path(path).with_name("target")
    target.write_bytes(b"precious")
    if kind == "symlink":
        os.symlink(target, path)
    elif kind == "dangling symlink":
        os.symlink("/nonexistent/file", path)
    elif kind == "hard link":
        os.link(target, path)
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind == "directory":
        os.mkdir(path)
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
    return target


@pytest.mark.parametrize("kind", ["symlink", "dangling symlink", "hard link", "FIFO", "directory", "socket"])
def test_planted_lock_file_is_refused(registry, kind):
    """What is no regular file with one link is an error, at once, and what it leads to is not written."""
    target = plant(kind, registry.path("d"))
    begun = time.monotonic()
    with pytest.raises(RegistryError):
        take(registry, "a", "d", seconds=60)
    assert time.monotonic() - begun < 20
    assert target.read_bytes() == b"precious"
    assert isinstance(take(registry, "a"), Held)
    assert [(state.key, state.state) for state in registry.survey()] == [("a", "free"), ("d", "unusable")]


@pytest.mark.parametrize("kind", ["symlink", "hard link", "directory", "socket"])
def test_planted_fifo_only_slows(registry, kind):
    """What is planted in place of the FIFO keeps nobody from taking, waiting and releasing, and is not written."""
    target = plant(kind, registry.path("d")[:-4] + "fifo")
    with Other(registry.directory) as other:
        held = take(registry, "d")
        other.send("take('d', seconds=20)")
        time.sleep(0.05)
        held.release()
        assert "Held" in other.hear()
    assert target.read_bytes() == b"precious"


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"garbage", b"{}" * 200, os.urandom(1024)])
def test_foreign_content_holds_nothing(registry, content):
    """A lock file with somebody else's bytes is free, and gets a proper record."""
    Path(registry.path("d")).write_bytes(content)
    with Other(registry.directory) as other:
        other.ask("held = take('d')")
        answer = take(registry, "d", wait_for=lambda _: False)
        assert answer.holder.pid == other.pid


def test_modes_are_set_against_the_umask(tmp_path):
    """Whatever the umask, any user can use the directory and both files."""
    with Other(tmp_path / "locks", umask=0o077) as other:
        other.ask("held = take('d')")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "locks").iterdir()}
        assert modes == {"d.lock": 0o666, "d.fifo": 0o666}
        assert stat.S_IMODE((tmp_path / "locks").stat().st_mode) == 0o1777


@root_only
def test_two_users_exclude_each_other(shared):
    """Case 37: two users with umask 077 lock the same file, whoever comes first, and wake each other."""
    with (
        Other(shared / "locks", uid=None, umask=0o077) as root,
        Other(shared / "locks", uid=NOBODY, umask=0o077) as one,
        Other(shared / "locks", uid=NOBODY - 1, umask=0o077) as two,
    ):
        for first, second in ((one, two), (two, root), (root, one)):
            first.ask("held = take('d')")
            assert "uid" in second.ask("take('d', wait=False)")
            second.send("held = take('d', seconds=20)")
            time.sleep(0.05)
            first.ask("held.release()")
            second.hear()
            second.ask("held.release()")
        assert one.ask("[state.state for state in registry.survey()]") == "['free']"


@root_only
def test_read_only_folder_is_an_error(shared):
    """A folder that this user cannot write is an error that names it, not another folder."""
    (shared / "locks").mkdir(mode=0o555)
    with Other(None, uid=NOBODY) as other, pytest.raises(RuntimeError, match=r"RegistryError.*cannot be written"):
        other.ask(f"Registry({str(shared / 'locks')!r})")


@root_only
def test_folder_of_another_user_is_an_error(shared):
    """A folder that another user keeps for himself is an error, also once it was fine."""
    with Other(shared / "locks", uid=NOBODY - 1) as owner, Other(shared / "locks", uid=NOBODY) as other:
        other.ask("held = take('d'); held.release()")
        owner.ask(f"os.chmod({str(shared / 'locks')!r}, 0o700)")
        for call in ("take('d')", "registry.survey()", f"Registry({str(shared / 'locks')!r})"):
            with pytest.raises(RuntimeError, match="RegistryError"):
                other.ask(call)


@root_only
def test_lock_file_of_a_selfish_user_is_an_error(shared):
    """A lock file that its owner closed to others is an error that says so."""
    with Other(shared / "locks", uid=NOBODY - 1) as owner, Other(shared / "locks", uid=NOBODY) as other:
        owner.ask("held = take('d'); held.release(); os.chmod(registry.path('d'), 0o600)")
        with pytest.raises(RuntimeError, match="another user"):
            other.ask("take('d')")
        owner.ask("held = take('d')")  # its owner's next use opens it to all again
        assert "Busy" in other.ask("take('d', wait=False)")


@root_only
def test_full_disk_is_an_error(tmp_path):
    """On a full file system nothing is held and nothing stays open; where the record has room already, all works."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)], check=False).returncode:
        pytest.skip("may not mount")
    try:
        registry = Registry(str(disk / "locks"))
        take(registry, "old").release()
        with pytest.raises(OSError, match="No space"):
            (disk / "filler").write_bytes(bytes(1 << 20))
        with pytest.raises(RegistryError, match="full"):
            take(registry, "old", "new")
        with Other(disk / "locks") as other:
            assert other.ask("take('old')").startswith("<")
        held = take(registry, "old")
        assert isinstance(held, Held)
        held.release()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EBADF, errno.ESTALE, errno.EROFS, errno.ENOSPC])
def test_locks_that_do_not_work_are_an_error(registry, monkeypatch, code):
    """Case 40: a file system without working locks is an error that names the file, not a wait."""

    def broken(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(lock_file, "flock", broken)
    with pytest.raises(RegistryError) as caught:
        take(registry, "d", seconds=10)
    assert caught.value.path == registry.path("d")


@pytest.mark.parametrize("whole", [False, True])
def test_deleted_under_its_holder_is_detected(registry, whole):
    """Case 33: a holder sees that its file, or the folder, was deleted; later ones meet in the new file."""
    held = take(registry, "a", "b")
    assert held.lost() == []
    if whole:
        shutil.rmtree(registry.directory)
    else:
        os.unlink(registry.path("b"))
    assert held.lost() == (["a", "b"] if whole else ["b"])
    with Other(registry.directory) as other, Other(registry.directory) as third:
        other.ask("held = take('b')")
        assert "Busy" in third.ask("take('b', wait=False)")
        assert held.lost() == (["a", "b"] if whole else ["b"])
        held.release()
        assert "Busy" in third.ask("take('b', wait=False)")


def test_deleted_under_waiters_never_lets_two_in(registry):
    """Case 33: one who waits on a file that is deleted, or moved away, and one who comes later never hold together."""
    for away in (os.unlink, lambda path: os.rename(path, path + ".old")):
        with Other(registry.directory) as waiter, Other(registry.directory) as late:
            held = take(registry, "d")
            waiter.send("held = take('d', seconds=20)")
            time.sleep(0.1)
            away(registry.path("d"))
            late.ask("held = take('d')")
            held.release()
            with pytest.raises(TimeoutError):
                waiter.hear(0.3)
            late.ask("held.release()")
            waiter.hear()


def test_concurrent_creation_meets_in_one_file(tmp_path):
    """Processes that make the folder and the files at the same moment all lock the same ones."""
    others = [Other(None) for _ in range(4)]
    try:
        for number in range(10):
            path = str(tmp_path / f"locks{number}")
            for other in others:
                other.send(f"registry = Registry({path!r}); held = take('d', seconds=0)")
            for other in others:
                other.hear()
            kinds = [other.ask("type(held).__name__") for other in others]
            assert kinds.count("'Held'") == 1
            assert kinds.count("'Busy'") == 3
    finally:
        for other in others:
            other.close()


def test_busy_is_false_only_for_the_holder(registry):
    """The answer of a refusal is a value that shows itself well."""
    held = take(registry, "d")
    answer = take(registry, "d")
    assert isinstance(answer, Busy)
    assert repr(answer).startswith("Busy('d', 'self', rollout window 'n' of step 1, pid ")
    held.release()
