"""The manifest of a run that was collected: gathered anew from all journals that are here.

What the process that began the run wrote at its end knows the journals of its own node. It is kept, as `OWN`.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress

from profwin.manifest import gather, missing_stages
from profwin.ray.collecting.destination import open_part, open_whole, status_of
from profwin.ray.collecting.names import PART, beside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.ray.collecting.destination import Destination

__all__ = ["OWN", "renew"]

NAME = "manifest.json"
OWN = "manifest~own.json"
"""What a node's manifest is called here; of several different ones the others have names beside it."""
LARGEST = 128 << 20


def renew(destination: Destination, run: str) -> None:
    """Write the manifest of a run anew, at once or not at all; the same journals give the same manifest.

    Journals that a node's own manifest names and that are not here stay named, so that `profwin check` misses them. A
    manifest that is there and was not made so gets a name beside it.

    Args:
        destination: the folder that is collected into.
        run: the run's name.

    Raises:
        OSError: it cannot be written, or something that is no file has its name.
    """
    if not os.path.isdir(os.path.join(destination.directory, run)):
        return
    folder = destination.folder((run,))
    try:
        names = sorted(os.listdir(folder))
        mine = [name for name in names if name.startswith(OWN[:-5]) and name.endswith(".json")]
        own = [read for name in mine if (read := _read(folder, name)) is not None]
        manifest = _gathered(os.path.join(destination.directory, run), own)
        if manifest is not None:
            _write(folder, (json.dumps(manifest, indent=1) + "\n").encode())
    finally:
        os.close(folder)


def _gathered(directory: str, own: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the manifest; None where nothing is known of the run."""
    journals = os.path.join(directory, "journal")
    manifest = None
    if os.path.isdir(journals) and not os.path.islink(journals):
        with suppress(Exception):  # whatever journals from elsewhere bring about: the check says what is wrong there
            manifest = gather(directory, {})
    if manifest is None or not manifest["processes"]:
        return own[0] | {"collected": True} if own else None
    here = {process["journal"] for process in manifest["processes"]}
    for each in own:
        for process in _processes(each):
            if process["journal"] not in here:
                here.add(process["journal"])
                manifest["processes"].append(process)
    settings = [each["settings"] for each in own if isinstance(each.get("settings"), dict)]
    manifest["settings"] = manifest["settings"] or next(iter(settings), {})
    manifest["findings"] = [each for each in manifest["findings"] if each["code"] != "no-stages"]
    problem = missing_stages(manifest)
    if problem is not None:
        root = next((each for each in manifest["processes"] if each.get("root")), manifest["processes"][0])
        manifest["findings"].append({"journal": root["journal"], "code": "no-stages", "detail": problem})
    return manifest | {"collected": True}


def _processes(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    found = manifest.get("processes")
    listed = found if isinstance(found, list) else []
    return [each for each in listed if isinstance(each, dict) and isinstance(each.get("journal"), str)]


def _read(folder: int, name: str) -> dict[str, Any] | None:
    """Return a manifest; None where there is none."""
    found = _parsed(_bytes(folder, name) or b"")
    return found if "run" in found and "processes" in found else None


def _parsed(data: bytes) -> dict[str, Any]:
    """Return what JSON says; nothing where it is no object, or no JSON."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _bytes(folder: int, name: str) -> bytes | None:
    """Return what is in a file; None if there is none of that name, or no small enough one that is a file."""
    try:
        descriptor = open_whole(folder, name)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
        os.close(descriptor)
        return None
    with open(descriptor, "rb") as file:
        return file.read()


def _write(folder: int, data: bytes) -> None:
    there = _bytes(folder, NAME)
    if there == data:
        return
    descriptor = open_part(folder, NAME)
    with open(descriptor, "wb") as file:
        file.truncate(0)
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    if there is None and status_of(folder, NAME) is not None:
        raise OSError(f"{NAME} is not a file, or is too large")
    if there is not None and _parsed(there).get("collected") is not True:
        names = beside(NAME, "before")
        kept = next(name for name in names if status_of(folder, name) is None)
        os.link(NAME, kept, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    os.replace(NAME + PART, NAME, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)
