"""Where the device locks lie, whether all who share a device meet there, and who holds what now. Changes nothing."""

from __future__ import annotations

import os
import stat

from profwin.doctor.line import NO, NOTE, OK, UNKNOWN, WARNING, Line
from profwin.errors import RegistryError, SettingError
from profwin.registry import directory as folder
from profwin.registry.holder import printable
from profwin.registry.survey import survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.doctor.host import Host
    from profwin.registry.survey import DeviceState

__all__ = ["FOLDER", "locks"]

FOLDER = "lock folder"
"""Name of the line that is :data:`profwin.doctor.line.NO` where no device can be locked."""
_MEANING = {"held": OK, "unknown": WARNING, "unusable": WARNING}
_REMEDY = {
    "unknown": "`profwin locks --confirm DEVICE`, if you know that its engine records no more",
    "unusable": "remove its lock file if nobody uses the device",
}


def locks(host: Host) -> Iterator[Line]:
    """Look at the lock folder without making it, and at who holds which device."""
    host.say("the lock folder")
    try:
        path, choice = folder.choose(host.environment.get("PROFWIN_LOCK_DIR"))
    except SettingError as error:
        yield Line(FOLDER, NO, str(error))
        return
    choice = choice.replace("as configured", "as PROFWIN_LOCK_DIR says")
    problem = _problem(path)
    mount = folder.mount_of(path)
    kind = None if mount is None else mount.kind
    data = {"path": path, "file_system": kind, "private": folder.private(path), "exists": os.path.isdir(path)}
    if problem is None and mount is not None and mount.network:
        problem = f"it lies on a network file system ({kind}), where locks may hang or mean nothing"
    if problem is not None:
        remedy = "set PROFWIN_LOCK_DIR to a local directory that all users can write"
        yield Line(FOLDER, NO, f"{choice}: {problem}", remedy, data)
        return
    detail = f"{choice}; {kind or 'on an unknown file system'}"
    yield Line(FOLDER, OK, detail if data["exists"] else f"{detail}; it is made when first needed", data=data)
    if data["private"]:
        detail = "only this container seems to see it, so nothing keeps other containers off shared devices"
        yield Line("private", WARNING, detail, "share it, or set PROFWIN_LOCK_DIR to a directory that is shared")
    if data["exists"]:
        yield from _held(path)


def _problem(path: str) -> str | None:
    """Say why the folder cannot be used; None if it can, or can be made."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return _cannot_make(path)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if stat.S_ISLNK(status.st_mode):
        return "it is a symbolic link, which could lead each process elsewhere"
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a directory"
    if not os.access(path, os.W_OK | os.X_OK):
        return f"user {os.geteuid()} cannot write it (owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):o})"
    return None


def _cannot_make(path: str) -> str | None:
    above = os.path.dirname(path)
    while above != "/" and not os.path.lexists(above):
        above = os.path.dirname(above)
    return None if os.access(above, os.W_OK | os.X_OK) else f"it is missing, and cannot be made in {above}"


def _held(path: str) -> Iterator[Line]:
    try:
        states = survey(path)
    except RegistryError as error:
        yield Line("devices", UNKNOWN, str(error))
        return
    counts = {name: sum(state.state == name for state in states) for name in ("free", "held", "unknown", "unusable")}
    shown = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none has been locked yet"
    yield Line("devices", NOTE, shown, data=counts)
    for state in states:
        if state.state in _MEANING:
            name, data = printable(state.key), {"key": state.key, "state": state.state}
            detail = f"{state.state}: {_who(state)}"
            yield Line(name, _MEANING[state.state], detail, _REMEDY.get(state.state), data)


def _who(state: DeviceState) -> str:
    if state.problem is not None:
        return state.problem
    return next((each.describe() for each in (state.holder, state.mark) if each is not None), "by an unknown holder")
