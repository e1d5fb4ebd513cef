"""Which processes an HTTP server of this machine is: what listens there, and all that it has started.

Only ``/proc`` is read. What is found is what can be seen from here: in another container, or of another user, nothing.
"""

from __future__ import annotations

import os
from itertools import pairwise

from profwin.engines import listeners, procfs
from profwin.engines.occupancy import devices_of
from profwin.registry.process import ProcessIdentity, gone, identity

__all__ = ["devices_of", "environment_of", "server_arguments", "server_processes"]

_INTERPRETERS = ("python", "pypy")
_ROUTERS = ("sglang_router", "sglang-router", "vllm_router", "vllm-router", "litellm")
"""What listens for servers that run elsewhere."""
_TRACKER, _COMPILER = "from multiprocessing.resource_tracker import", "torch/_inductor/compile_worker/__main__.py"
"""In the command lines of what records nothing, and may outlive the server for a moment; there may be hundreds."""
_ACTOR = "ray::"
_SCHEDULER = "sglang::"
"""Title of a process that SGLang has started: with ``SGLANG_RUST_SERVER`` the first scheduler is what listens."""

_known: dict[str, list[tuple[ProcessIdentity, tuple[str, str]]]] = {}
"""Who listens, by URL: finding it takes long; looking whether it still does, does not."""


def server_processes(url: str) -> tuple[int, ...] | None:
    """Return the processes of the server at a URL: parents before children; the first is the one on top.

    That is what listens on the port, and the whole tree below it: of vLLM the server, its ``EngineCore`` and the
    ``VLLM::Worker`` processes under that, of SGLang the launcher, its schedulers and its detokenizer. Of several API
    servers that share a port it is the tree of the process above them all; where there is none, their trees together.
    Python's and torch's helper processes are left out. A worker may start late, so look anew at each start of a
    recording. The numbers are of this process namespace; turn them into identities
    (:func:`profwin.registry.process.identity`) at once, and expect that one has ended by then.

    Args:
        url: of the server, as its client uses it.

    Returns:
        None where the host is another machine, where nothing that listens there can be seen, and where what listens is
        not what records: a tunnel, a container's port forwarder or a web server (anything without a Python process), a
        router, or a server whose workers are Ray's (``--distributed-executor-backend ray``, ``--use-ray``): the end of
        the tree would then prove nothing. A proxy that is written in Python and not known here by name is taken for
        the server: name the processes yourself there.

    It never raises but for Ctrl-C.
    """
    tops = _tops(url)
    if tops is None:
        return None
    family = procfs.parents()
    roots = _roots([pid for pid in tops if pid in family], family)
    lines = {pid: procfs.arguments(pid) for root in roots for pid in procfs.within(root, family)}
    found = {pid: line for pid, line in lines.items() if not any(map(_helper, line))}
    return tuple(found) if _records(found) else None


def server_arguments(pids: tuple[int, ...] | list[int]) -> list[list[str]]:
    """Return the command lines of processes, in their order; empty lists for those that cannot be seen.

    They may hold tokens: never log them, never write them to a journal. A process can overwrite its own; see
    :func:`profwin.engines.procfs.arguments`.
    """
    return [procfs.arguments(pid) for pid in pids]


def environment_of(pid: int) -> dict[str, str] | None:
    """Return the variables that a process was started with; None where it is gone or this user may not read them.

    They may hold tokens: never log them, never write them to a journal.
    """
    return procfs.environment(pid)


def _tops(url: str) -> list[int] | None:
    """Return the processes that hold the listening sockets."""
    known = _known.get(url)
    if known is not None and all(listeners.holds(link) and not gone(process) for process, link in known):
        return [process.pid for process, _ in known]
    _known.pop(url, None)
    place = listeners.addresses(url)
    if place is None:
        return None
    found = []
    for pid, link in listeners.holders(listeners.inodes(*place)).items():
        try:
            found.append((identity(pid), link))
        except OSError:
            continue  # it has ended meanwhile
    if not found:
        return None
    _known[url] = found
    return [process.pid for process, _ in found]


def _roots(tops: list[int], family: dict[int, int]) -> list[int]:
    """Return the tops of the trees that hold some processes: the one above them all, where that is the server's."""
    lines = {pid: _line(pid, family) for pid in tops}
    own = set(_line(os.getpid(), family))
    highest = [pid for pid in tops if not any(above in lines for above in lines[pid][1:])]
    starters = {pid: _starter(lines[pid]) for pid in highest}
    if any(top != pid and not _serves(top, own) for pid, top in starters.items()):
        return []
    roots = list(dict.fromkeys(starters.values()))
    if len(roots) < 2:
        return roots
    shared = [pid for pid in _line(roots[0], family) if all(pid in _line(root, family) for root in roots[1:])]
    return shared[:1] if shared and _serves(shared[0], own) else sorted(roots)


def _starter(line: list[int]) -> int:
    """Return the process that has started the one that listens, where that is but a part of a server.

    Args:
        line: the one that listens, and those above it.
    """
    for pid in line:
        if not (procfs.arguments(pid) or [""])[0].startswith(_SCHEDULER):
            return pid
    return line[-1]


def _serves(pid: int, own: set[int]) -> bool:
    """Say whether a process above others can be their server: not a shell, a container's first, nor our own trainer."""
    return pid > 1 and pid not in own and _interpreter(pid)


def _line(pid: int, family: dict[int, int]) -> list[int]:
    """List a process and those above it, up to the first."""
    line = []
    while pid and pid not in line:
        line.append(pid)
        pid = family.get(pid, 0)
    return line


def _records(lines: dict[int, list[str]]) -> bool:
    """Say whether these can be the processes of an engine, all of them.

    Args:
        lines: their command lines.
    """
    if not any(map(_interpreter, lines)):
        return False
    if len(lines) == 1 and any(line and line[0].startswith(_ACTOR) for line in lines.values()):
        return False  # an actor that listens, while others work
    return not any(map(_elsewhere, lines.values()))


def _helper(part: str) -> bool:
    return part.startswith(_TRACKER) or part.endswith(_COMPILER)


def _interpreter(pid: int) -> bool:
    return procfs.program(pid).startswith(_INTERPRETERS)


def _elsewhere(line: list[str]) -> bool:
    """Say whether a command line is that of a router, or asks for workers that are Ray's actors."""
    if any(router in part for part in line[:3] for router in _ROUTERS):
        return True
    for part, following in pairwise([*line, ""]):
        option, _, value = part.replace("_", "-").partition("=")
        if option == "--use-ray":
            return True
        if option == "--distributed-executor-backend" and (value or following) == "ray":
            return True
    return False
