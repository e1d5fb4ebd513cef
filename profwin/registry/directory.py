"""Where the device locks lie: one directory of this host that every user can write.

All processes that share a device must meet in one directory. A directory that cannot be used is therefore an
error and never a reason to take another: two processes would lock two files, and both believe that they hold
the device.
"""

from __future__ import annotations

import os
import stat
import time

from profwin.errors import RegistryError, SettingError
from profwin.registry.host import VARIABLE, pretended

__all__ = ["MODE", "Mount", "choose", "mount_of", "prepare", "private"]

MODE = 0o1777
"""Everybody may create files; nobody but the owner may delete them."""

_SHARED_MEMORY = "/dev/shm"
_TEMPORARY = "/tmp"  # not TMPDIR, which batch systems set for each job: jobs on one device would never meet
_NETWORK = """
9p afs beegfs ceph cifs coda cvmfs gfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs pvfs2
smb2 smb3 smbfs virtiofs wekafs
fuse.beegfs fuse.ceph-fuse fuse.cephfs fuse.curlftpfs fuse.dfuse fuse.gcsfuse fuse.glusterfs fuse.goofys
fuse.hdfs fuse.juicefs fuse.mfs fuse.mount-s3 fuse.rclone fuse.s3fs fuse.seaweedfs fuse.sshfs fuse.wekafs
"""


class Mount:
    """What ``/proc/self/mountinfo`` says of one mount.

    Attributes:
        point: where it is mounted.
        root: the part of its file system that is mounted there.
        kind: type of the file system.
        source: what is mounted, as the mounter named it.
    """

    __slots__ = ("kind", "point", "root", "source")

    def __init__(self, point: str, root: str, kind: str, source: str) -> None:
        self.point, self.root, self.kind, self.source = point, root, kind, source

    @property
    def network(self) -> bool:
        """Whether other hosts see the same files, or locks may hang or mean nothing."""
        return self.kind in _NETWORK.split()


def choose(directory: str | None = None) -> tuple[str, str]:
    """Choose the lock directory, without touching it.

    Args:
        directory: an absolute path; None for ``PROFWIN_LOCK_DIR``, else the host's shared memory where that
            is a writable directory, else in ``/tmp``.

    Returns:
        The path, and a sentence that says which it is and why.

    Raises:
        SettingError: the path given is not absolute; every process would resolve it differently. Or a pretended
            host's name is none of a file.
    """
    given, why = directory, "as configured"
    if not given:
        given, why = os.environ.get("PROFWIN_LOCK_DIR"), "as PROFWIN_LOCK_DIR says"
    if given:
        if not os.path.isabs(given) or "\0" in given:
            raise SettingError("lock_dir", given, "an absolute path of this host")
        path = os.path.normpath(given)
    elif os.path.isdir(_SHARED_MEMORY) and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
        path, why = f"{_SHARED_MEMORY}/profwin", "in the host's shared memory"
    else:
        path, why = f"{_TEMPORARY}/profwin", "since there is no writable shared memory"
    name = pretended()
    if name is not None:
        if "/" in name or "\0" in name:
            raise SettingError(VARIABLE, name, "the name of a host")
        path, why = f"{path}-host-{name}", f"{why}, as those of the host {name}, which {VARIABLE} pretends"
    return path, f"device locks are in {path}, {why}"


def prepare(path: str) -> None:
    """Make the lock directory where it is missing, and make sure that it can be used.

    It gets mode 1777 whatever the umask says; one that exists keeps its mode. Several processes may do this
    at once.

    Raises:
        RegistryError: it cannot be made, is a link or no directory, cannot be written by this user, or lies
            on a network file system.
    """
    try:
        created = _make(path)
        status = os.lstat(path)
    except OSError as problem:
        raise RegistryError(path, f"cannot be made or read: {problem.strerror}") from problem
    if stat.S_ISLNK(status.st_mode):
        raise RegistryError(path, "is a symbolic link, which could lead each process elsewhere")
    if not stat.S_ISDIR(status.st_mode):
        raise RegistryError(path, "is not a directory")
    if not created and not _usable(path):
        mode = stat.S_IMODE(status.st_mode)
        raise RegistryError(path, f"cannot be written by user {os.geteuid()} (owner {status.st_uid}, mode {mode:o})")
    mount = mount_of(path)
    if mount is not None and mount.network:
        trouble = f"lies on a network file system ({mount.kind}), where locks may hang or mean nothing"
        raise RegistryError(path, trouble)


def _make(path: str) -> bool:
    """Make the directory; False where it exists."""
    try:
        os.mkdir(path, MODE)
    except FileExistsError:
        return False
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return _make(path)
    os.chmod(path, MODE)
    return True


def _usable(path: str) -> bool:
    """Wait a moment for a process that has made the directory and not yet set its mode."""
    for _ in range(20):
        if os.access(path, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            return True
        time.sleep(0.001)
    return False


def _unescape(field: str) -> str:
    return field.encode("latin-1", "replace").decode("unicode_escape") if "\\" in field else field


def mount_of(path: str, table: str | None = None) -> Mount | None:
    """Find the mount in which a path lies; None where nobody can tell.

    Args:
        path: need not exist.
        table: text of ``/proc/self/mountinfo``; None to read it.
    """
    if table is None:
        try:
            with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
                table = file.read()
        except OSError:
            return None
    target, found = os.path.realpath(path), None
    for line in table.splitlines():
        left, separator, right = line.partition(" - ")
        fields, kinds = left.split(" "), right.split(" ")
        if not separator or len(fields) < 5 or len(kinds) < 2:
            continue
        point = _unescape(fields[4])
        inside = point == "/" or target == point or target.startswith(point + "/")
        # Of several mounts on one point the last hides the others.
        if inside and (found is None or len(point) >= len(found.point)):
            found = Mount(point, _unescape(fields[3]), kinds[0], _unescape(kinds[1]))
    return found


def private(path: str, table: str | None = None, container: bool | None = None) -> bool:
    """Guess whether the directory is one that only this container sees.

    True in a container whose lock directory lies in the container's own root (an overlay) or in the shared
    memory that the container runtime made for it (a tmpfs whose source is named ``shm``). A directory mounted
    from the host, the host's own shared memory (``--ipc=host``) and an in-memory volume of a pod are taken for
    shared, the last of them perhaps wrongly: containers of one pod share it, pods do not. Nothing inside a
    container proves either, so this is good for a warning and for nothing else.

    Args:
        path: the lock directory.
        table: text of ``/proc/self/mountinfo``; None to read it.
        container: whether this is a container; None to find out.
    """
    if container is None:
        container = (
            "KUBERNETES_SERVICE_HOST" in os.environ
            or os.path.exists("/.dockerenv")
            or os.path.exists("/run/.containerenv")
        )
    mount = mount_of(path, table)
    if not container or mount is None:
        return False
    own = mount.kind in {"overlay", "aufs", "fuse.fuse-overlayfs", "fuse-overlayfs"}
    return own or (mount.kind == "tmpfs" and mount.source == "shm")
