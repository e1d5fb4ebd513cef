"""The registry: the host's device locks.

One never-unlinked file per device, locked with ``flock`` on a descriptor of its own. The kernel alone says who
holds a device: it takes the lock away when the holder dies, and no record in a file can give or keep it. Beside
each lock file is a FIFO whose write end the holder keeps, so that its closing, or the holder's death, wakes
those who wait.
"""

from __future__ import annotations

import os
import time

from profwin.errors import RegistryError, SettingError
from profwin.registry import directory as folder
from profwin.registry.attempt import Attempt
from profwin.registry.file import LockFile
from profwin.registry.held import Busy, Held, hold_all, lock_all
from profwin.registry.holder import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from profwin.registry.held import What
    from profwin.registry.holder import Holder
    from profwin.registry.process import ProcessIdentity
    from profwin.registry.survey import DeviceState

__all__ = ["Attempt", "Busy", "Held", "Registry"]

_NOBODY: frozenset[ProcessIdentity] = frozenset()
_NAME_SIZE = 200
_SLOW = 1.0


class Registry:
    """The device locks in one directory. Cheap to keep, safe to use from any thread and in forked children.

    Args:
        directory: an absolute path; None for ``PROFWIN_LOCK_DIR``, else one in the host's shared memory or
            ``/tmp`` (see :func:`profwin.registry.directory.choose`). Made if missing, with mode 1777.

    Attributes:
        directory: its path.
        choice: a sentence that says which it is and why.

    Raises:
        SettingError: the directory given is no absolute path.
        RegistryError: it cannot be used. No other is tried.
    """

    __slots__ = ("_places", "choice", "directory")

    def __init__(self, directory: str | None = None) -> None:
        self.directory, self.choice = folder.choose(directory)
        self._places: dict[tuple[str, ...], list[tuple[str, str, tuple[bytes], tuple[bytes]]]] = {}
        folder.prepare(self.directory)

    @property
    def private(self) -> bool:
        """A guess whether only this container sees it: :func:`profwin.registry.directory.private`."""
        return folder.private(self.directory)

    def path(self, key: str) -> str:
        """Name the lock file of a device.

        All but letters, digits, ``-``, ``_``, ``.`` and ``~`` is percent-encoded.

        Raises:
            SettingError: the key is empty, or too long for a file name.
        """
        from urllib.parse import quote

        name = quote(key, safe="", errors="surrogatepass")
        if not 0 < len(name) <= _NAME_SIZE:
            raise SettingError("devices", key, f"device keys of 1 to {_NAME_SIZE} plain characters")
        return f"{self.directory}/{name}.lock"

    def _files(self, keys: Iterable[str]) -> list[LockFile]:
        keys = tuple(keys)
        places = self._places.get(keys)
        if places is None:
            places = self._places[keys] = [self._place(key) for key in sorted(set(keys))]
        return [LockFile(*place) for place in places]

    def _place(self, key: str) -> tuple[str, str, tuple[bytes], tuple[bytes]]:
        path = self.path(key)
        lock = os.fsencode(path)
        return key, path, (lock,), (lock[:-4] + b"fifo",)

    def _further(self, what: What, keys: Iterable[str]) -> Attempt:
        return Attempt(self._further, self._files(keys), what, _nobody, _NOBODY)

    def attempt(
        self,
        keys: Iterable[str],
        *,
        kind: str,
        run: str = "",
        name: str = "",
        step: int | None = None,
        wait_for: Callable[[Holder | None], bool] | None = None,
        owner_of_mark: frozenset[ProcessIdentity] = _NOBODY,
    ) -> Attempt:
        """Begin to take devices. Nothing is opened before the first :meth:`Attempt.step`.

        Args:
            keys: of the devices; doubled ones count once. They are taken in sorted order, all or none.
            kind: ``"rollout"`` or ``"training"``.
            run: id of the run.
            name: of the window or stage.
            step: the step, or None.
            wait_for: called on every failed try with the holder, or None where nobody is known to hold the
                device; says whether it is worth waiting for. None waits for anybody but this process itself.
            owner_of_mark: a mark whose processes are all among these does not keep the devices away; see
                :attr:`Held.mark`.

        Raises:
            SettingError: a key cannot be used.
        """
        files, what = self._files(keys), (run, kind, name, step)
        return Attempt(self._further, files, what, wait_for or _anybody, owner_of_mark)

    def take(
        self,
        keys: Iterable[str],
        *,
        kind: str,
        run: str = "",
        name: str = "",
        step: int | None = None,
        owner_of_mark: frozenset[ProcessIdentity] = _NOBODY,
    ) -> Held | None:
        """Take devices if they are free this moment, else give None: the short way, for what nearly always is so.

        Args:
            keys: see :meth:`attempt`, as for those that follow.
            kind: ``"rollout"`` or ``"training"``.
            run: id of the run.
            name: of the window or stage.
            step: the step, or None.
            owner_of_mark: processes whose mark does not keep the devices away.

        Raises:
            RegistryError: a lock file cannot be used or trusted.
        """
        files = self._files(keys)
        try:
            blocked = lock_all(files, owner_of_mark)
            if blocked is None:
                return hold_all(files, (run, kind, name, step), self._further)
            blocked.close()
            return None
        except BaseException:
            for file in files:
                file.close()
            raise

    def acquire(
        self,
        keys: Iterable[str],
        *,
        kind: str,
        run: str = "",
        name: str = "",
        step: int | None = None,
        wait_for: Callable[[Holder | None], bool] | None = None,
        owner_of_mark: frozenset[ProcessIdentity] = _NOBODY,
        seconds: float = 0.0,
        on_slow: Callable[[Busy], None] | None = None,
    ) -> Held | Busy:
        """Take devices, waiting for them at most ``seconds``; Ctrl-C ends the wait and leaves nothing open.

        Args:
            keys: see :meth:`attempt`, as for those that follow.
            kind: ``"rollout"`` or ``"training"``.
            run: id of the run.
            name: of the window or stage.
            step: the step, or None.
            wait_for: says whether a holder is worth waiting for.
            owner_of_mark: processes whose mark does not keep the devices away.
            seconds: the longest wait; 0 tries once.
            on_slow: called once, when the wait has lasted for a second.

        Raises:
            RegistryError: a lock file cannot be used or trusted.
        """
        keys = tuple(keys)
        held = self.take(keys, kind=kind, run=run, name=name, step=step, owner_of_mark=owner_of_mark)
        if held is not None:
            return held
        attempt = self.attempt(
            keys, kind=kind, run=run, name=name, step=step, wait_for=wait_for, owner_of_mark=owner_of_mark
        )
        try:
            result = attempt.step()
            return _wait(attempt, seconds, on_slow) if result is None else result
        finally:
            attempt.close()

    def ask(self, busy: Busy, *, run: str, purpose: str, name: str, step: int | None) -> bool:
        """Ask who holds a device to release it. Does not wait for an answer: the release itself is the answer.

        Only a holder of the same run and the same user is asked, and only one that said by a lease that it can be;
        nothing else of its record is trusted. Ask once for each ``busy.holder.lease``: it is served once.

        Args:
            busy: who holds it.
            run: id of this run.
            purpose: what the device is wanted for: ``"rollout"`` or ``"training"``.
            name: of the window or stage.
            step: the step, or None.

        Returns:
            True if the request was sent; the holder may still die or fail before it releases. False at once where
            it cannot be asked or does not listen. Never raises, but for Ctrl-C.
        """
        from profwin.registry.request import send

        try:
            return send(self.path(busy.device), busy.holder, run=run, purpose=purpose, name=name, step=step)
        except SettingError:
            return False

    def confirm(self, key: str) -> bool:
        """Remove the mark of a device that nobody holds: a human says that its engine records no more.

        Returns:
            False where there is no mark, or where somebody holds the device.

        Raises:
            RegistryError: the lock file cannot be used or trusted.
        """
        file = LockFile(*self._place(key))
        if not os.path.lexists(file.path):
            return False
        try:
            marked = file.lock() and file.mark is not None
            if marked:
                file.clear_mark()
            return marked
        finally:
            file.close()

    def survey(self) -> list[DeviceState]:
        """Say who holds what, without disturbing anybody: see :func:`profwin.registry.survey.survey`.

        Raises:
            RegistryError: the directory cannot be read.
        """
        from profwin.registry.survey import survey

        return survey(self.directory)

    def __repr__(self) -> str:
        return f"Registry({printable(self.directory)!r})"


def _nobody(_: Holder | None) -> bool:
    return False


def _anybody(_: Holder | None) -> bool:
    return True


def _wait(attempt: Attempt, seconds: float, on_slow: Callable[[Busy], None] | None) -> Held | Busy:
    begun = time.monotonic()
    slow = begun + _SLOW
    result: Held | Busy | None = None
    while result is None:
        now = time.monotonic()
        busy = attempt.busy
        if busy is None:
            raise RegistryError("attempt", "waits for nobody")
        if now >= begun + seconds:
            busy.waited = now - begun
            return busy
        if on_slow is not None and now >= slow:
            on_slow(busy)
            on_slow = None
        attempt.wait(min(begun + seconds, slow if on_slow is not None else begun + seconds) - now)
        result = attempt.step()
    return result
