"""The run: which launch this process belongs to, and where its files go."""

from __future__ import annotations

import os
import re
import time

from profwin.registry.host import host_name, known_boot_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from profwin.settings import Settings

__all__ = ["Run", "new_name", "process_text", "safe_name", "start_time"]

_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


def start_time(pid: int | str = "self") -> int:
    """Return when a process started, in clock ticks since boot, or 0 where that cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


def new_name() -> str:
    """Make up the name of a run, of time and chance."""
    return time.strftime("%Y%m%d-%H%M%S-") + os.urandom(3).hex()


def process_text(pid: int, start: int, namespace: int, restarts: int, boot: str) -> str:
    """Describe a process as :class:`profwin.launch.Origin` reads it."""
    return f"{pid}-{start}-{namespace}-{restarts}-{boot}"


def safe_name(name: str) -> str:
    """Return a name as part of a path, another one for every name.

    All but ``A-Za-z0-9._+-`` becomes ``_``, leading dots and what follows the 80th character go. A name that this
    changes gets ``~`` and a checksum at its end, so that ``a/b`` and ``a_b`` are two paths.
    """
    safe = _UNSAFE.sub("_", name).lstrip(".")[:80]
    if safe == name != "":
        return safe
    from zlib import crc32

    return f"{safe or '_'}~{crc32(name.encode('utf-8', 'surrogatepass')):08x}"


class Run:
    """One launch, as this process knows it.

    All processes of a launch agree on ``name`` and ``attempt``: they inherit ``PROFWIN_RUN``, ``PROFWIN_ATTEMPT`` and
    ``PROFWIN_PARENT``, or ``PROFWIN_LAUNCH`` of ``profwin run``, or are ranks that one launcher started. A launch that
    is started again under the same name, by torchrun or by hand, gets the next attempt number.

    Args:
        settings: of this process. A name that is not the inherited one is another run: nothing is inherited then.
        environment: the variables of this process.

    Attributes:
        name: the run's id, also the name of its directory.
        attempt: 0, and one more for each restart.
        root: whether this process began the run: it writes the manifest and runs the finish command. Under
            ``profwin run`` that is the first that has a session, since the command itself may have none.
        launched: whether it is the run that ``profwin run`` began.
        board: what the step board is called: the same in all processes of the launch, another one for each launch. A
            torchrun that restarts its ranks below a process that goes on keeps that process's.
        directory: ``<output>/<name>``.
        process: this process in file names: its pid and four hexadecimal digits of the boot id, since containers and
            hosts that share a directory repeat pids.
        given: how often each path of a trace was given out; sessions of one process that are of the same attempt share
            it.
        rival: pid of a process that began an earlier launch of this name and is still at work; None if none is known.
        orphaned: whether the process that began the run is gone.
    """

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        from profwin.launch import Origin, attempt_of_launch, first_of_launch, launched

        self.rank, self.role = settings.rank, settings.role
        self.boot = known_boot_id()
        self.here()
        restart = environment.get("TORCHELASTIC_RESTART_COUNT", "")
        restarts = int(restart) if restart.isdigit() else 0
        inherits = environment.get("PROFWIN_RUN") in (None, "", settings.run)
        parent = environment.get("PROFWIN_PARENT") if inherits else None
        name = settings.run or _torchrun(environment)
        launch = None if name or parent else launched(environment)
        self.root = not parent and self.rank in (None, 0)
        self.name = name or (launch[0] if launch else new_name())
        self.directory = os.path.join(settings.output, self.name)
        self.given: dict[str, int] = {}
        self.rival: int | None = None
        first = (environment.get("PROFWIN_ATTEMPT") if inherits else None) or ""
        self._origin = Origin.parse(parent) if parent else Origin.here(restarts if not first.isdigit() else 0)
        self.launched = launch is not None and settings.steps is not None
        if launch is not None and self.launched:
            self._origin, self.root = launch[1], first_of_launch(self)
        if first.isdigit():
            self._first = int(first)
        elif name:
            self._first, self.rival = attempt_of_launch(self, restarts)
        else:
            self._first = 0
        self.attempt = self._first + max(0, restarts - self._origin.restarts)
        self.board = f"{safe_name(self.name)}.{self._first}"
        self.orphaned = bool(parent) and self._origin.gone()

    def here(self) -> None:
        """Take this process's pid and start time; a forked child calls it again."""
        self.pid, self.start = os.getpid(), start_time()
        self.process = f"p{self.pid}-{self.boot.replace('-', '')[:4] or '0000'}"

    def journal_path(self) -> str:
        """Return where this process's journal goes."""
        parts = (self._who(self.role or "process"), f"{self.process}_a{self.attempt}.jsonl")
        return os.path.join(self.directory, "journal", "_".join(parts))

    def trace_stem(self, purpose: str, step: int, name: str, role: str, occurrence: int, segment: int) -> str:
        """Return the path of a collection's trace without its extension: unique in the run, and never used before.

        Args:
            purpose: ``"rollout"`` or ``"training"``.
            step: the loop's step.
            name: the window's or stage's name; a rollout window has a directory of its name, a stage one below
                ``train``.
            role: the role in the file's name.
            occurrence: which window or stage of this name in the step, from 1.
            segment: which part of it, from 1, where it was split.
        """
        where = (safe_name(name),) if purpose == "rollout" else ("train", safe_name(name))
        part = f"n{occurrence}" + (f".{segment}" if segment > 1 else "")
        file = f"{self._who(role)}_{self.process}_{part}_a{self.attempt}"
        stem = os.path.join(self.directory, f"step_{step:06d}", *where, file)
        # A loop that counts its steps anew comes to a step again, long after what was counted of it was forgotten.
        self.given[stem] = given = self.given.get(stem, 0) + 1
        return stem if given == 1 else f"{stem}_again{given}"

    def header(self, settings: Settings, schema: int, world: str | None) -> dict[str, object]:
        """Return the fields of a journal's first record."""
        fields: dict[str, object] = {
            "schema": schema, "run": self.name, "attempt": self.attempt, "pid": self.pid, "start": self.start,
            "boot": self.boot, "host": host_name(), "uid": os.getuid(), "role": self.role, "rank": self.rank,
            "world": int(world) if world and world.isdigit() else None, "root": self.root,
            "settings": settings.describe(),
        }  # fmt: skip
        return fields

    def exports(self) -> dict[str, str]:
        """Return the variables that make child processes part of this run."""
        return {
            "PROFWIN_RUN": self.name,
            "PROFWIN_ATTEMPT": str(self._first),
            "PROFWIN_PARENT": self._origin.text,
        }

    def _who(self, role: str) -> str:
        return f"rank{self.rank}_{safe_name(role)}" if self.rank is not None else f"norank_{safe_name(role)}"


def _torchrun(environment: Mapping[str, str]) -> str | None:
    launch = environment.get("TORCHELASTIC_RUN_ID")
    if launch is None:
        return None
    if launch != "none":
        return safe_name(f"torchrun-{launch}")
    # Without --rdzv-id all launches are called "none"; the ranks of one share the agent that started them.
    parent = os.getppid()
    return f"torchrun-{known_boot_id().replace('-', '')[:4]}-{parent}-{start_time(parent)}"
