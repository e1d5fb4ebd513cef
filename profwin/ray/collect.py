"""Collecting the journals, manifests and traces of all nodes of a cluster into one folder."""

from __future__ import annotations

import os
from importlib import import_module

from profwin.errors import SettingError, StateError
from profwin.ray.presence import needs_ray
from profwin.step import checked_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from profwin.ray.collecting.result import Collected
    from profwin.ray.nodes import Node

__all__ = ["collect"]

_SECONDS = 60.0


def collect(
    directory: str | os.PathLike[str],
    source: str | os.PathLike[str] | None = None,
    run: str | None = None,
    *,
    all_runs: bool = False,
    nsight: bool = False,
    timeout: float = _SECONDS,
    progress: Callable[[int, int, int, int], object] | None = None,
) -> Collected:
    """Copy a run's files from all nodes of the cluster into one folder, ``<directory>/<run>``.

    For a process that is connected to Ray; ``profwin collect`` is the same for a shell. The sources are not changed,
    and no different file in the folder is overwritten. What was broken off, even by a kill, goes on where it was when
    it is called again; journals that have grown since are continued. A file that several nodes share is read once. The
    folder's ``manifest.json`` is gathered anew each time, from all journals there; the driver's own is kept beside it.

    One process without resources is started on each living node. At most 16 MiB are on their way at a time.

    Args:
        directory: to collect into; made where it is not there. Not the one that the run writes to.
        source: the output directory of the run, the same on all nodes; ``~`` and ``$NAME`` are each node's own. A
            relative one is below this process's working directory. Default: that of this process's session, else of
            ``PROFWIN_OUTPUT`` here, else there, else ``outputs/profwin``.
        run: the run's name; default: the session's, if there is one and no source is given, else the one that was
            written to last.
        all_runs: every run in the output directory instead.
        nsight: also the nsys reports in the folders of Ray's session on the nodes, of whichever run, into
            ``<run>/nsight``.
        timeout: seconds that a node may take for an answer, of 4 MiB at most; one that is late is asked no more.
        progress: is called with the files and the bytes that are done, and with those that there are.

    Returns:
        What was done. A node that is dead or does not answer, and a file that cannot be read, are in ``missing``; the
        rest is there.

    Raises:
        SettingError: an argument is wrong, the folder is a source itself, or another process collects into it.
        StateError: this process is not connected to Ray.
        ProfwinError: Ray is not installed.
        OSError: the folder cannot be written to, or is full.
    """
    needs_ray()
    ray = import_module("ray")
    if not ray.is_initialized():
        raise StateError("profwin.ray.collect", "connect to the cluster first, with ray.init(address=...)")
    if all_runs and run is not None:
        raise SettingError("run", run, "a run's name or all_runs, not both")
    seconds = checked_seconds(timeout, "timeout") or _SECONDS
    given, default = _source(source), os.path.abspath("outputs/profwin")
    if run is None and source is None and not all_runs:
        run = _run()
    from profwin.ray.collecting.gathering import gather
    from profwin.ray.collecting.giver import Giver
    from profwin.ray.collecting.source import Source
    from profwin.ray.nodes import nodes, pinned

    known = nodes(dead=True)
    living = [node for node in known if node.alive]
    handles = [pinned(Source, node) for node in living]
    try:
        givers = [Giver(str(node), handle, seconds) for node, handle in zip(living, handles, strict=True)]
        reports = {
            giver: os.path.join(node.session, "logs", "nsight") for giver, node in zip(givers, living, strict=True)
        }  # fmt: skip
        result = gather(
            os.fspath(directory), givers, source=given, default=default, run=run, every=all_runs,
            reports=reports if nsight else {}, progress=progress,
        )  # fmt: skip
    finally:
        for handle in handles:
            ray.kill(handle)
    _tell_of_dead(result, known)
    return result


def _tell_of_dead(result: Collected, known: Sequence[Node]) -> None:
    """Say which nodes cannot be asked; one that came back under its address has been."""
    addresses = {node.address for node in known if node.alive}
    for node in known:
        if not node.alive and node.address in addresses:
            result.notes.append(f"node {node} is dead; another node of its address was asked")
        elif not node.alive:
            result.missing[f"node {node}"] = "it is dead; its files stay there"


def _source(source: str | os.PathLike[str] | None) -> str | None:
    """Return the output directory as nodes are to find it; None: their own."""
    from profwin.configuration import current

    if source is None:
        session = current()
        given = os.environ.get("PROFWIN_OUTPUT") if session is None else session.settings.output
        return os.path.abspath(given) if given else None
    text = os.fspath(source)
    if not text or "\0" in text:
        raise SettingError("source", source, "a directory's path")
    return text if text.startswith(("~", "$")) else os.path.abspath(text)


def _run() -> str | None:
    from profwin.configuration import current

    session = current()
    return None if session is None else session.run.name
