"""The three calls that govern this process's session, and the one that finds it."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading

from profwin.session import Session
from profwin.settings import Settings
from profwin.switch import SWITCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping
    from typing import Any

    from profwin.selection import NamesLike, SelectionLike

__all__ = ["configure", "current", "environment", "shutdown"]

_session: Session | None = None
_lock = threading.RLock()
_exported: dict[str, str] = {}
_replaced: dict[str, str | None] = {}
_given: dict[tuple[str, int], dict[str, int]] = {}


def configure(
    steps: SelectionLike | None = None,
    backend: str | Iterable[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    *,
    collect: str | None = None,
    continuous: bool | None = None,
    ranks: SelectionLike | None = None,
    roles: NamesLike | None = None,
    stages: NamesLike | None = None,
    on_busy: str | None = None,
    wait_budget: float | None = None,
    finish_command: str | None = None,
    strict: bool | None = None,
    role: str | None = None,
    rank: int | None = None,
    devices: str | Iterable[str] | None = None,
    lock_dir: str | os.PathLike[str] | None = None,
    run: str | None = None,
    trace_format: str | None = None,
    torch_options: Mapping[str, bool] | None = None,
    npu_options: Mapping[str, Any] | None = None,
    memory_options: Mapping[str, Any] | None = None,
) -> None:
    """Set this process up for profiling; without a step selection, profwin stays off and touches no file.

    Each setting that is not given is taken from ``PROFWIN_<NAME>``, else from its default. A second call closes
    everything and begins a new run, or the next attempt of the run that is named. Processes that inherit
    ``environment()`` of another need no call: they configure themselves. ``PROFWIN_RUN``, ``PROFWIN_ATTEMPT`` and
    ``PROFWIN_PARENT`` are put into this process's environment until it is shut down, so that children belong to the
    same run, as long as the process that began it is there; a call in a child that outlives it begins a new run.

    Args:
        steps: which steps are recorded: ``"2,4-6,every:100"``, a number, numbers, a selection or a callable;
            ``"none"``: off.
        backend: ``"record"`` (default), ``"torch"``, or several names.
        output: directory below which each run gets its own; default ``outputs/profwin``.
        collect: ``"stage"`` (default) makes one recording a stage; ``"step"`` one of all stages of a step in this
            process, split where a window needs the device. A process whose windows are elsewhere must then use
            ``training_step``.
        continuous: with ``collect="step"``, join the recordings of consecutive selected steps where no window comes
            between.
        ranks: record only these ranks; an unknown rank passes.
        roles: record only these, as globs. Windows have the role ``rollout``; stages that of their decorator, else
            ``role``, else ``train``.
        stages: record only stages of these names, as globs.
        on_busy: ``"wait"`` (default) within the budget for a device that a rollout holds, or ``"skip"`` at once.
        wait_budget: seconds, 0 to 86400, that may be waited for one device in one step; default 30.
        finish_command: a shell command, run once, by the process that began the run, after the last selected step or at
            the end; ``PROFWIN_RUN_DIRECTORY`` tells it where the run's files are.
        strict: raise instead of running unprofiled.
        role: of this process.
        rank: of this process; default: the variable ``RANK``.
        devices: devices that this process records on: ``cuda:1``, ``npu:0``, a UUID, or ``pretend:NAME``; default:
            those where it has a context.
        lock_dir: directory of the device locks; default: see ``profwin locks``.
        run: the run's name; default: inherited, torchrun's, else made of time and chance.
        trace_format: ``"json.gz"`` (default) or ``"json"``.
        torch_options: for the torch backend: ``record_shapes``, ``profile_memory``, ``with_stack``, ``with_flops``,
            ``with_modules``.
        npu_options: for the torch_npu backend: :data:`profwin.options.NPU_OPTIONS`.
        memory_options: for the memory backend: :data:`profwin.options.MEMORY_OPTIONS`.

    Raises:
        SettingError: (a ValueError) naming the setting, the value and what is allowed. Nothing is changed then.
    """
    _begin(dict(locals()), asked=True)


def environment() -> dict[str, str]:
    """Return the variables that make another process of this run configure itself like this one.

    It does so when its first window or stage begins. Empty while profwin is off. Roles and ranks are its own.

    Raises:
        SettingError: the step selection is a callable, which cannot travel.
    """
    session = current()
    if session is None or session.settings.steps is None:
        return {}
    return {**session.settings.variables(), **session.run.exports()}


def shutdown() -> None:
    """Close whatever is open, write the run's manifest and turn profwin off; nothing where it is not configured."""
    _end("shutdown")


def current() -> Session | None:
    """Return this process's session; a process that inherits its settings gets it now. None if there is none."""
    if _session is None and SWITCH.on:
        with _lock:
            if _session is None:  # still, with the lock in hand
                try:
                    _begin({}, asked=False)
                except Exception as error:  # noqa: BLE001  # a variable must not break the training that inherits it
                    import logging

                    SWITCH.on = False
                    logging.getLogger("profwin").warning("profwin: off, since its environment is unusable: %s", error)
    return _session


def _begin(arguments: Mapping[str, object], *, asked: bool) -> None:
    """Make the session, in the place of the one that is there.

    Args:
        arguments: of ``configure``.
        asked: whether the user's code called it. A process that configures itself stays in the run that it inherits,
            even one that has ended.
    """
    global _session
    from profwin.launch import without_ended_run

    with _lock:
        environment = dict(os.environ)
        _take_back(environment)
        ended = without_ended_run(environment) if asked else None
        settings = Settings(arguments, environment)
        session = Session(settings, environment)
        if settings.steps is not None and settings.devices is not None:
            session.keys(None, None)  # raises here what would else be raised in the middle of the training
        shutdown()
        _session, run = session, session.run
        run.given = _given.setdefault((run.directory, run.attempt), run.given)
        exports = run.exports()
        _replaced.update({name: os.environ.get(name) for name in exports})
        _exported.update(exports)
        os.environ.update(exports)
        if run.launched:
            os.environ.pop("PROFWIN_LAUNCH", None)  # another session of this process is another run
        SWITCH.on = settings.steps is not None
        session.position.refresh()
        if SWITCH.on:
            session.position.attach()
            _say(session, ended)


def _say(session: Session, ended: str | None) -> None:
    run = session.run
    if ended is not None:
        session.log(
            f"the environment names the run {ended!r}, but the process that began it has ended: this is a new run, "
            f"{run.name!r}; unset PROFWIN_RUN, PROFWIN_ATTEMPT and PROFWIN_PARENT"
        )
    if run.orphaned:
        session.finding(
            "run-ended", f"the process that began the run {run.name!r} has ended: its manifest lacks what follows"
        )
    if run.rival is not None:
        session.finding(
            "run-in-use",
            f"process {run.rival} is still at work in the run {run.name!r}: both write to {run.directory}, this one as "
            f"attempt {run.attempt}",
        )


def _take_back(environment: MutableMapping[str, str]) -> None:
    """Undo in an environment what a session put there, but for what somebody changed since."""
    for name, value in _exported.items():
        if environment.get(name) == value:
            before = _replaced[name]
            if before is None:
                del environment[name]
            else:
                environment[name] = before


def _keep(session: Session) -> None:
    global _session
    with _lock:
        if _session is None:
            _session = session


def _end(reason: str) -> None:
    global _session
    with _lock:
        session, _session = _session, None
        SWITCH.on, SWITCH.word = False, ctypes.c_int64(1)
        _take_back(os.environ)
        _exported.clear()
        _replaced.clear()
    if session is not None:
        try:
            session.close(reason)
        except BaseException:
            # Ctrl-C: the next configure, shutdown or the exit closes the rest.
            _keep(session)
            raise


def at_exit() -> None:
    """Close the session because the interpreter ends."""
    if _session is not None:
        _end("exit")


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()
    if _session is not None:
        _session.forked()


atexit.register(at_exit)
os.register_at_fork(after_in_child=_after_fork)
