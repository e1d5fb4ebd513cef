"""Which directory the locks are in, and which are refused."""

from __future__ import annotations

import os
import stat

import pytest

from profwin.errors import RegistryError, SettingError
from profwin.registry import directory
from profwin.registry.directory import choose, mount_of, prepare, private
from profwin.registry.lock import Registry

TABLE = """
21 1 254:0 / / rw - ext4 /dev/root rw
22 21 0:22 / /dev/shm rw - tmpfs tmpfs rw
23 21 0:23 /export/a /mnt/with\\040space rw shared:1 master:2 - nfs4 server:/export rw
24 21 0:24 / /mnt/with rw - fuse.sshfs host: rw
25 22 0:25 / /dev/shm rw - tmpfs shm rw
broken line
26 21 0:26 / /data rw - xfs /dev/sdb rw
""".strip()


def test_argument_goes_before_variable_before_shared_memory(monkeypatch, tmp_path):
    """The directory is the argument, else PROFWIN_LOCK_DIR, else in shared memory; the sentence says which."""
    monkeypatch.setenv("PROFWIN_LOCK_DIR", "/one")
    assert choose("/two//x/")[0] == "/two/x"
    assert choose()[0] == "/one"
    assert "PROFWIN_LOCK_DIR" in choose()[1]
    monkeypatch.setenv("PROFWIN_LOCK_DIR", "")
    monkeypatch.setattr(directory, "_SHARED_MEMORY", str(tmp_path))
    assert choose()[0] == f"{tmp_path}/profwin"
    monkeypatch.setattr(directory, "_SHARED_MEMORY", str(tmp_path / "missing"))
    monkeypatch.setenv("TMPDIR", "/of/this/job")
    path, sentence = choose()
    assert path == "/tmp/profwin"
    assert path in sentence


@pytest.mark.parametrize("given", ["relative/path", "~/locks", "/nul\0"])
def test_paths_that_differ_by_process_are_refused(given):
    """A path that is not absolute is a wrong setting."""
    with pytest.raises(SettingError, match="lock_dir"):
        Registry(given)


def test_is_made_for_all_whatever_the_umask(tmp_path):
    """A missing directory is made with its parents, with mode 1777; one that exists keeps its mode."""
    old = os.umask(0o077)
    try:
        prepare(str(tmp_path / "a" / "b"))
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o1777
    (tmp_path / "mine").mkdir(mode=0o700)
    prepare(str(tmp_path / "mine"))
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o700


def test_link_file_and_impossible_places_are_refused(tmp_path):
    """A link to a fine directory, a file, and a place below a file are errors that name the path."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_bytes(b"")
    for name in ("link", "file", "file/below"):
        with pytest.raises(RegistryError) as caught:
            Registry(str(tmp_path / name))
        assert caught.value.path == str(tmp_path / name)


@pytest.mark.parametrize(
    ("path", "point", "kind", "network"),
    [
        ("/dev/shm/profwin", "/dev/shm", "tmpfs", False),
        ("/mnt/with space/locks", "/mnt/with space", "nfs4", True),
        ("/mnt/with/locks", "/mnt/with", "fuse.sshfs", True),
        ("/mnt/without", "/", "ext4", False),
        ("/data", "/data", "xfs", False),
    ],
)
def test_mount_is_the_longest_that_holds_the_path(path, point, kind, network):
    """The mount of a path is the deepest, of several on one point the last, by whole names."""
    mount = mount_of(path, TABLE)
    assert (mount.point, mount.kind, mount.network) == (point, kind, network)


def test_last_mount_on_a_point_counts():
    """Of two mounts on one point the later hides the earlier."""
    assert mount_of("/dev/shm/x", TABLE).source == "shm"


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "gpfs", "beegfs", "9p", "fuse.sshfs"]
)
def test_network_file_systems_are_refused(tmp_path, monkeypatch, kind):
    """Case 40: a directory on a network file system is an error that names its type."""
    monkeypatch.setattr(directory, "mount_of", lambda _: directory.Mount("/", "/", kind, "server:"))
    with pytest.raises(RegistryError, match=kind):
        Registry(str(tmp_path / "locks"))


def test_unknown_mounts_are_let_through(tmp_path, monkeypatch):
    """Where nobody can tell what is mounted, the directory is used."""
    monkeypatch.setattr(directory, "mount_of", lambda _: None)
    Registry(str(tmp_path / "locks"))
    monkeypatch.undo()
    assert mount_of(str(tmp_path), "") is None
    assert not private(str(tmp_path), "", container=True)


def test_private_is_guessed_in_containers_alone():
    """Only in a container are its root and its runtime's shared memory taken for private."""
    overlay = "1 0 0:1 / / rw - overlay overlay rw\n2 1 0:2 / /host rw - ext4 /dev/sda rw"
    assert private("/tmp/profwin", overlay, container=True)
    assert not private("/host/profwin", overlay, container=True)
    assert not private("/tmp/profwin", overlay, container=False)
    assert private("/dev/shm/profwin", TABLE, container=True)
    assert not private("/data/profwin", TABLE, container=True)
    assert isinstance(private("/tmp"), bool)
