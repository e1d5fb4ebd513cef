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
    from collections.abc import Iterable, Mapping

    from profwin.selection import NamesLike, SelectionLike

__all__ = ["configure", "current", "environment", "shutdown"]

_session: Session | None = None
_lock = threading.RLock()
_exported: dict[str, str] = {}


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
) -> None:
    """Set this process up for profiling; without a step selection, profwin stays off and touches no file.

    Each setting that is not given is taken from ``PROFWIN_<NAME>``, else from its default. A second call closes
    everything and begins a new run. Processes that inherit ``environment()`` of another need no call: they configure
    themselves. ``PROFWIN_RUN``, ``PROFWIN_ATTEMPT`` and ``PROFWIN_PARENT`` are put into this process's environment, so
    that children that configure themselves belong to the same run.

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

    Raises:
        SettingError: (a ValueError) naming the setting, the value and what is allowed. Nothing is changed then.
    """
    global _session
    arguments = dict(locals())
    with _lock:
        environment = {name: value for name, value in os.environ.items() if _exported.get(name) != value}
        settings = Settings(arguments, environment)
        session = Session(settings, environment)
        shutdown()
        _session = session
        _exported.update(session.run.exports())
        os.environ.update(_exported)
        SWITCH.on = settings.steps is not None
        session.position.refresh()
        if SWITCH.on:
            session.position.attach()


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
                    configure()
                except Exception as error:  # noqa: BLE001  # a variable must not break the training that inherits it
                    import logging

                    SWITCH.on = False
                    logging.getLogger("profwin").warning("profwin: off, since its environment is unusable: %s", error)
    return _session


def _end(reason: str) -> None:
    global _session
    with _lock:
        session, _session = _session, None
        SWITCH.on, SWITCH.word = False, ctypes.c_int64(1)
        for name, value in _exported.items():
            if os.environ.get(name) == value:
                del os.environ[name]
        _exported.clear()
    if session is not None:
        session.close(reason)


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
