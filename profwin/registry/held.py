"""Devices that are held, and the answer that they are not."""

from __future__ import annotations

from profwin.errors import StateError
from profwin.registry.holder import own_record
from profwin.registry.process import within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from profwin.registry.attempt import Attempt
    from profwin.registry.file import LockFile
    from profwin.registry.holder import Holder, Mark
    from profwin.registry.process import ProcessIdentity
    from profwin.registry.request import Inbox

    What = tuple[str, str, str, int | None]  # run, kind, name, step
    Further = Callable[[What, Iterable[str]], Attempt]

__all__ = ["Busy", "Held", "hold_all", "lock_all"]


class Busy:
    """Why a device was not taken.

    Attributes:
        device: the key of the first device, in their order, that could not be had.
        holder: what its holder wrote; None where nobody is known to hold it.
        reason: ``"busy"`` held by another process; ``"peer"`` held by another process for training, and the
            caller did not want to wait for that; ``"self"`` held by this process; ``"unknown"`` nobody is
            known to hold it, or an engine may be recording on it.
        waited: seconds from the first try to this answer.
        mark: the mark of the engine that may be recording; None where there is none.
    """

    __slots__ = ("device", "holder", "mark", "reason", "waited")

    def __init__(
        self, device: str, holder: Holder | None, reason: str, waited: float = 0.0, mark: Mark | None = None
    ) -> None:
        self.device, self.holder, self.reason, self.waited, self.mark = device, holder, reason, waited, mark

    def describe(self) -> str:
        """Name who has the device, in words; safe to print."""
        if self.holder is not None:
            return self.holder.describe()
        if self.mark is not None:
            return self.mark.describe()
        return "an unknown holder"

    def __repr__(self) -> str:
        return f"Busy({self.device!r}, {self.reason!r}, {self.describe()})"


class Held:
    """The exclusive right to collect on some devices, until :meth:`release` or the process's death.

    May be released from any thread, and from a signal handler. In a forked child it is inert: the parent goes
    on holding. One that is dropped without a release is released.

    Attributes:
        keys: the devices, sorted; empty once released.
    """

    __slots__ = ("_before_release", "_files", "_further", "_what")

    def __init__(self, files: list[LockFile], what: What, further: Further) -> None:
        self._files, self._what, self._further = files, what, further
        self._before_release: Callable[[], None] | None = None

    @property
    def mark(self) -> Mark | None:
        """The first device's mark that is there: one that was found, or was set since.

        One is found where the caller said that it is the mark's owner: confirm the engine's stop before anything else
        starts to record there, then :meth:`clear_mark`.
        """
        return next((file.mark for file in self._files if file.mark is not None), None)

    @property
    def keys(self) -> tuple[str, ...]:
        """The devices held now."""
        return tuple(file.key for file in self._files if file.held)

    def release(self) -> None:
        """Release all devices; the first waiter of each is woken. May be called again. Never raises.

        Who listens for requests to release stops first: the next holder reads its requests from the same FIFO.
        """
        try:
            if self._before_release is not None:
                self._before_release()
        finally:
            for file in self._files:
                file.close()
            self._files = []
            self._before_release = None

    def extend(self, keys: Iterable[str]) -> Busy | None:
        """Take further devices in one try, all or none, without waiting, since a wait could deadlock.

        Args:
            keys: those that are held already are left alone.

        Returns:
            None if all are held now, else why not.

        Raises:
            RegistryError: see :meth:`Attempt.step`.
            StateError: nothing is held any more.
        """
        held = self.keys
        if not held:
            raise StateError("these devices are released", "take them anew")
        attempt = self._further(self._what, [key for key in keys if key not in held])
        try:
            result = attempt.step()
            if isinstance(result, Busy):
                return result
            if result is not None:
                self._files, result._files = sorted(self._files + result._files, key=_key), []
            return None
        finally:
            attempt.close()

    def shrink(self, keys: Iterable[str]) -> None:
        """Release some of the devices, and go on holding the others. Never raises."""
        keys = set(keys)
        for file in self._files:
            if file.key in keys:
                file.close()
        self._files = [file for file in self._files if file.key not in keys]

    def inboxes(self, before_release: Callable[[], None]) -> list[Inbox]:
        """Give the inbox of each device held now, not yet open, through which others may ask for it.

        Earlier ones are closed.

        Args:
            before_release: closes them. Called by each :meth:`release` before anything is let go, and when this is
                dropped; from any thread and from a signal handler, perhaps several times. It neither raises nor waits.
        """
        from profwin.registry.request import Inbox

        if self._before_release is not None:
            self._before_release()
        self._before_release = before_release
        return [Inbox(file, self._what) for file in self._files if file.held]

    def lost(self) -> list[str]:
        """Name the devices whose lock file was deleted or replaced: others may have taken them meanwhile."""
        return [file.key for file in self._files if file.lost()]

    def marks(self) -> dict[str, Mark]:
        """Return the marks that are there, by device: those that were found, and those set since."""
        return {file.key: file.mark for file in self._files if file.mark is not None}

    def dead(self) -> dict[str, Mark]:
        """Return, by device, the marks that were found and taken off, because their processes are proven gone."""
        return {file.key: file.dead for file in self._files if file.dead is not None}

    def set_mark(self, mark: Mark, keys: tuple[str, ...] | None = None) -> None:
        """Mark devices as perhaps recorded on by other processes, *before* these are asked to start.

        The mark outlives this process. It ends with :meth:`clear_mark`, proof that its processes are gone, or
        ``profwin locks --confirm``.

        Args:
            mark: replaces the one that is there.
            keys: some of the devices held; None for all.

        Raises:
            RegistryError: it cannot be written, or nothing is held: do not start the engine.
            ValueError: the mark names too many processes.
        """
        files = self._some(keys)
        try:
            for file in files:
                file.write_mark(mark)
        except BaseException:
            # No engine will be asked to start, so nothing may stay marked.
            for file in files:
                if file.mark is mark:
                    file.clear_mark()
            raise

    def clear_mark(self, keys: tuple[str, ...] | None = None) -> None:
        """Remove the mark from devices, after the engine has confirmed its stop.

        Args:
            keys: some of the devices held; None for all.

        Raises:
            RegistryError: it cannot be removed.
        """
        for file in self._some(keys):
            file.clear_mark()

    def _some(self, keys: tuple[str, ...] | None) -> list[LockFile]:
        return self._files if keys is None else [file for file in self._files if file.key in keys]

    def __del__(self) -> None:
        if getattr(self, "_before_release", None) is not None:  # missing where a Ctrl-C came in __init__
            self.release()
        for file in getattr(self, "_files", ()):
            if file.numbers:
                file.close()


def _key(file: LockFile) -> str:
    return file.key


def lock_all(files: list[LockFile], owner: frozenset[ProcessIdentity]) -> LockFile | None:
    """Lock every file, or none, and then give the one in the way: locked by somebody, or marked by others."""
    for file in files:
        if file.lock():
            if file.mark is None or within(file.mark.processes, owner):
                continue
            file.close()
        for other in files:
            if other is file:
                break
            other.close()
        return file
    return None


def hold_all(files: list[LockFile], what: What, further: Further) -> Held:
    """Write the records of files that are all locked."""
    record = own_record(*what)
    for file in files:
        file.hold(record)
    return Held(files, what, further)
