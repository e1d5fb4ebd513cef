"""The session: what is set up in this process, and the small services that its parts share."""

from __future__ import annotations

import sys
from functools import partial

from profwin.errors import BackendError, ProfwinError, RegistryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from profwin.backends import Backend
    from profwin.engines import Engine
    from profwin.interval import Interval
    from profwin.listener import Listener
    from profwin.registry.holder import Holder, ProcessIdentity
    from profwin.registry.lock import Attempt, Held, Registry
    from profwin.settings import Settings
    from profwin.sync import Boundary

__all__ = ["Session"]

_WARNING = 30
_NOBODY: frozenset[ProcessIdentity] = frozenset()


class Session:
    """What :func:`configure` makes; there is one at a time, and its parts are used from any thread.

    Args:
        settings: validated settings.
        environment: variables that say which run this process belongs to.

    Attributes:
        exclusive: whether recordings of this process may disturb others on their device: then it takes device locks.
        syncs: what ``weight_sync`` keeps, by name and by whether there are windows.
        endings: are called with it at its end, when nothing records any more; may raise under Ctrl-C alone.
    """

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        from profwin.backends import load
        from profwin.budget import WaitBudget
        from profwin.devices import DeviceKeys
        from profwin.entrance import Entrance
        from profwin.finish import FinishCommand
        from profwin.journal import SCHEMA, Journal
        from profwin.owner import Owner
        from profwin.position import Position
        from profwin.run import Run

        self.settings = settings
        self.run = Run(settings, environment)
        self._world = environment.get("WORLD_SIZE")
        self._backend_classes = [load(name) for name in settings.backend]
        self.exclusive = any(kind.exclusive for kind in self._backend_classes)
        self._backends: list[Backend] | None = None
        self.journal = Journal(self.run.journal_path(), self.run.header(settings, SCHEMA, self._world))
        self._registry: Registry | None = None
        self._unusable: RegistryError | None = None
        self._device_keys = DeviceKeys(self)
        self._mount_known: tuple[str, ...] = ()
        self._said: set[str] = set()
        self._inherited: list[Any] = []
        self._listener: Listener | None = None
        self.syncs: dict[tuple[str, bool], Boundary] = {}
        self.endings: list[Callable[[Session], None]] = []
        self._exit_hooked = False
        self.owner = Owner(self)
        self.entrance, self.budget = Entrance(self), WaitBudget(self)
        self._finish = FinishCommand(self)
        self.position = Position(self)

    def backends(self) -> list[Backend]:
        """Return this process's backends; made when first asked for."""
        if self._backends is None:
            from profwin.backends import caution, stand_ins

            kinds = stand_ins(self._backend_classes, partial(self.finding, "backend-replaced"))
            self._backends = [kind(self.settings) for kind in kinds]
            caution(self._backends, self.finding)
        return self._backends

    def keys(self, names: Iterable[str] | None, engine: Engine | None) -> tuple[str, ...]:
        """Return the keys of the devices to lock; see :meth:`profwin.devices.DeviceKeys.of`.

        Raises:
            SettingError: a device name is wrong.
        """
        return self._device_keys.of(names, engine)

    def attempt(self, interval: Interval, wait_for: Callable[[Holder | None], bool]) -> Attempt:
        """Begin to ask for an interval's devices.

        Raises:
            RegistryError: this host's registry cannot be used.
        """
        return self.registry().attempt(
            interval.keys, kind=interval.purpose, run=self.run.name, name=interval.name, step=interval.step,
            wait_for=wait_for, owner_of_mark=_processes(interval.engine),
        )  # fmt: skip

    def fellow(self, holder: Holder) -> bool:
        """Say whether a device's holder is another rank of the group that this process is a rank of."""
        from profwin.launch import fellow_rank

        ranks = self._world is not None and self._world.isdigit() and int(self._world) > 1
        return ranks and self.run.rank is not None and fellow_rank(self.run, holder)

    def take(self, interval: Interval) -> Held | None:
        """Take an interval's devices if all are free this moment.

        Raises:
            RegistryError: this host's registry cannot be used.
        """
        if interval.keys is not self._mount_known:
            self._check_mount(interval.keys)
        return self.registry().take(
            interval.keys, kind=interval.purpose, run=self.run.name, name=interval.name, step=interval.step,
            owner_of_mark=_processes(interval.engine),
        )  # fmt: skip

    def _check_mount(self, keys: tuple[str, ...]) -> None:
        self._mount_known = keys
        # Pretend devices belong to those who named them; a real one may be shared with other containers.
        if "private-locks" in self._said or all(key.startswith("pretend-") for key in keys):
            return
        if self.registry().private:
            directory = self.registry().directory
            advice = "share it between the containers, or set PROFWIN_LOCK_DIR to a directory that they share"
            self.finding("private-locks", f"only this container seems to see {directory}: {advice}")

    def registry(self) -> Registry:
        """Return the host's registry.

        Raises:
            RegistryError: it cannot be used; that is remembered and raised each time.
        """
        if self._unusable is not None:
            raise self._unusable
        if self._registry is None:
            from profwin.registry.lock import Registry

            try:
                self._registry = Registry(self.settings.lock_dir)
            except RegistryError as error:
                self._unusable = error
                raise
            self.log(self._registry.choice, level=20)
        return self._registry

    def obstacle(self, interval: Interval) -> tuple[str, str, ProfwinError | None] | None:
        """Say why this process's own profilers cannot record an interval now: reason, detail, error; None: they can."""
        if interval.engine is not None:
            return None
        while self._inherited:
            # A forked child inherits running profilers; they must be stopped here before ours can start.
            self._leave(self._inherited.pop())
        for backend in self.backends():
            try:
                foreign = backend.foreign()
            except Exception as error:  # noqa: BLE001  # whatever a profiler raises, the training goes on
                problem = f"{type(error).__name__}: {error}"
                return "backend", problem, BackendError(backend.name, "open", problem)
            if foreign is not None:
                return "foreign", foreign, BackendError(backend.name, "open", foreign)
        return None

    def complain(self, error: ProfwinError, *, raising: bool) -> None:
        """Report a failure: raise it under ``strict`` where the caller allows, else warn once for its kind."""
        if self.settings.strict and raising:
            raise error
        self.warn(f"{type(error).__name__} {getattr(error, 'device', '')}", str(error))

    def finding(self, code: str, detail: str) -> None:
        """Write a finding to the journal and warn of it once."""
        self.note(code, detail)
        self.warn(code, detail)

    def note(self, code: str, detail: str) -> None:
        """Write a finding to the journal, of which something else warns."""
        self.journal.write("finding", code=code, detail=detail)

    def warn(self, key: str, message: str) -> None:
        """Log a warning, once for each key."""
        if key not in self._said:
            self._said.add(key)
            self.log(message)

    def log(self, message: str, *, level: int = _WARNING) -> None:
        """Log to the logger ``profwin``; 30 is a warning, 20 information."""
        if level < _WARNING and "logging" not in sys.modules:
            return  # nobody can have asked for it, and importing it costs milliseconds
        import logging

        logging.getLogger("profwin").log(level, "profwin: %s", message)

    def finish(self) -> None:
        """Take note that the last selected step is done."""
        self._finish.start()

    def listener(self) -> Listener:
        """Return what hears requests to release, and keeps time; made when first needed."""
        from profwin.listener import Listener

        with self.owner.mutex:
            if self._listener is None:
                self._listener = Listener()
            return self._listener

    def hook_exit(self) -> None:
        """See to it that nothing records when this process ends, however it was started."""
        if self._exit_hooked:
            return
        self._exit_hooked = True
        from profwin.configuration import at_exit

        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            # A forked child of multiprocessing ends without running atexit.
            util.Finalize(None, at_exit, exitpriority=1000)

    def close(self, reason: str) -> None:
        """End the session: close what is open, write what the run needs at its end. Never raises but under Ctrl-C."""
        self.owner.end(reason)
        for boundary in list(self.syncs.values()):
            if boundary.window is not None:
                boundary.window.close()  # its recording has ended; this says that it has
        if self._listener is not None:
            self._listener.close()
        while self._inherited:
            self._leave(self._inherited.pop())
        while self.endings:
            self.endings.pop()(self)
        self.position.close()
        if self.settings.steps is not None:
            self.finish()
            self._finish.wait()
            if self.run.root:
                from profwin.manifest import conclude

                conclude(self, reason)
        if self.journal.started:
            self.journal.write("end", reason=reason, dropped=self.journal.dropped or None)
        self.journal.close()

    def forked(self) -> None:
        """Become the session of a forked child: same run, own journal, none of the parent's collections."""
        from profwin.budget import WaitBudget
        from profwin.entrance import Entrance
        from profwin.journal import SCHEMA, Journal
        from profwin.owner import Owner

        files = sys.modules.get("profwin.registry.file")
        if files is not None:
            # Before anything else is dropped here: what is dropped unlocks, and the locks are the parent's.
            files.forget()
        self._inherited.extend(self.owner.abandon())
        depth = self.owner.pauses.depth
        # A new one: the locks of the old may be held by threads that do not exist here.
        self.owner, self.entrance, self.budget = Owner(self), Entrance(self), WaitBudget(self)
        self.owner.pauses.depth = depth  # the child is inside the same blocks
        self.journal.close()
        self._exit_hooked = False
        self._listener, self.syncs, self.endings = None, {}, []
        self.run.here()
        self.run.root = False
        self.journal = Journal(self.run.journal_path(), self.run.header(self.settings, SCHEMA, self._world))
        self.position.refresh()

    def _leave(self, manager: Any) -> None:
        try:
            manager.__exit__(None, None, None)
        except Exception as error:  # noqa: BLE001  # its data is the parent's and was recorded there
            self.warn("inherited", f"a profiler inherited by fork could not be stopped: {error}")


def _processes(engine: Engine | None) -> frozenset[ProcessIdentity]:
    if engine is None:
        return _NOBODY
    from profwin.registry.holder import identity

    found = set()
    for pid in engine.process_ids:
        try:
            found.add(identity(pid))
        except ProcessLookupError:
            pass  # it owns no mark any more; its start says that it is gone
    return frozenset(found)
