"""Every exception that profwin raises on purpose.

::

    ProfwinError
    ├── SettingError (ValueError)          a setting or argument is wrong; raised at once, always
    ├── StateError (RuntimeError)          an object was used twice or out of order; raised at once, always
    ├── WindowOverlapError (RuntimeError)  a stage began inside an open window of its device   (strict)
    ├── DeviceBusyError (TimeoutError)     the device stayed held beyond the wait budget       (strict)
    ├── RegistryError (OSError)            no device lock can be had from this lock directory  (strict)
    ├── BackendError (RuntimeError)        a profiler failed to start, stop or export          (strict)
    ├── EngineError (RuntimeError)         an engine failed to start or to confirm its stop    (strict)
    │   └── EngineRefusedError (RuntimeError)  it refused to start, and does not record        (strict)
    └── PlanError (ValueError)             a plan is wrong, at once; or does not fit the code  (strict)

Outside ``strict`` those marked so are never raised: the block runs unprofiled, the journal has a record, and one
warning is logged. Each error carries its data as attributes, pickles with them, and says what to do.
"""

from __future__ import annotations

__all__ = [
    "BackendError",
    "DeviceBusyError",
    "EngineError",
    "EngineRefusedError",
    "PlanError",
    "ProfwinError",
    "RegistryError",
    "SettingError",
    "StateError",
    "WindowOverlapError",
]


class ProfwinError(Exception):
    """Base of all profwin errors; carries its constructor arguments as attributes."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), str(self), self.__dict__)


def _rebuild(kind: type[ProfwinError], message: str, data: dict[str, object]) -> ProfwinError:
    error = kind.__new__(kind)
    error.args = (message,)
    error.__dict__.update(data)
    return error


class SettingError(ProfwinError, ValueError):
    """A setting has a value that is not allowed.

    Attributes:
        setting: name of the setting.
        value: what was given.
        allowed: in words, what may be given.
    """

    def __init__(self, setting: str, value: object, allowed: str) -> None:
        super().__init__(f"{setting}={value!r} is not allowed: use {allowed}")
        self.setting, self.value, self.allowed = setting, value, allowed


class StateError(ProfwinError, RuntimeError):
    """An object was used twice, or out of order.

    Attributes:
        what: the object, in words.
        advice: what to do instead.
    """

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what}: {advice}")
        self.what, self.advice = what, advice


class WindowOverlapError(ProfwinError, RuntimeError):
    """A training stage began while a rollout window of this process was open on its device.

    Attributes:
        stage, window: the names of both.
        stage_site, window_site: ``file:line`` where each was opened.
    """

    def __init__(self, stage: str, stage_site: str, window: str, window_site: str) -> None:
        super().__init__(
            f"stage {stage!r} (at {stage_site}) began inside the open window {window!r} (opened at {window_site}): "
            "leave the window before training starts"
        )
        self.stage, self.stage_site, self.window, self.window_site = stage, stage_site, window, window_site


class DeviceBusyError(ProfwinError, TimeoutError):
    """A device stayed held by someone else.

    Attributes:
        device: the device key.
        holder: who holds it, in words.
        waited: seconds waited.
    """

    def __init__(self, device: str, holder: str, waited: float) -> None:
        super().__init__(
            f"device {device} is held by {holder} (waited {waited:.3f} s): close the window there before this "
            "block starts, or raise wait_budget; `profwin locks` shows all holders"
        )
        self.device, self.holder, self.waited = device, holder, waited


class RegistryError(ProfwinError, OSError):
    """The lock directory, or a file in it, cannot be trusted or used.

    Attributes:
        path: the file or directory.
        problem: what is wrong with it.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}; set PROFWIN_LOCK_DIR to a local directory that all users can write")
        self.path, self.problem = path, problem


class BackendError(ProfwinError, RuntimeError):
    """A profiler failed.

    Attributes:
        backend: its name.
        action: ``"open"``, ``"close"`` or ``"export"``.
        problem: what it said.
    """

    def __init__(self, backend: str, action: str, problem: str) -> None:
        super().__init__(f"backend {backend!r} failed to {action}: {problem}; the block itself ran")
        self.backend, self.action, self.problem = backend, action, problem


class EngineError(ProfwinError, RuntimeError):
    """An engine failed to start its profiler, or did not confirm that it stopped.

    Attributes:
        engine: the engine, in words.
        action: ``"start"`` or ``"stop"``.
        problem: what it said.
    """

    def __init__(self, engine: str, action: str, problem: str) -> None:
        super().__init__(
            f"{engine} failed to {action} its profiler: {problem}; its devices are unknown unless it is gone"
        )
        self.engine, self.action, self.problem = engine, action, problem


class EngineRefusedError(EngineError):
    """An engine refused to start its profiler, and nothing of this window records: its devices are free.

    Attributes:
        engine, action, problem: as in :class:`EngineError`.
        foreign: whether it refused because somebody else's session records already.
    """

    def __init__(self, engine: str, problem: str, *, foreign: bool = False) -> None:
        ProfwinError.__init__(self, f"{engine} refused to start its profiler: {problem}")
        self.engine, self.action, self.problem, self.foreign = engine, "start", problem, foreign


class PlanError(ProfwinError, ValueError):
    """A plan is no plan, or does not fit the code that it is for.

    Attributes:
        plan: its name, or the file.
        place: where in it, as ``patch[0].target``; empty: the whole.
        value: what stands there.
        problem: what is wrong with it.
        remedy: what to do instead.
        missing: whether the only problem is that the target does not exist.
    """

    def __init__(self, plan: str, place: str, value: object, problem: str, remedy: str, missing: bool = False) -> None:
        where = f"{place}={_shown(value)}" if place else _shown(value)
        message = f"plan {_shown(plan)}: {where} {problem}: {remedy}"
        # What files and modules call things must not act on a terminal.
        super().__init__(message if message.isprintable() else ascii(message)[1:-1])
        self.plan, self.place, self.value = plan, place, value
        self.problem, self.remedy, self.missing = problem, remedy, missing


def _shown(value: object) -> str:
    """Return a value, of whatever type and size, as a short text."""
    import reprlib

    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = 120
    return short.repr(value)
