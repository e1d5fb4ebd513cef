"""The marks of one window's engines: each device's mark names the processes of all that may record on it."""

from __future__ import annotations

import threading

from profwin.registry.holder import Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from profwin.registry.holder import ProcessIdentity
    from profwin.registry.lock import Held

__all__ = ["Marks"]


class Marks:
    """The marks on devices that are held, for engines that start and stop apart from each other; safe from any thread.

    Args:
        held: the devices, perhaps with marks of an earlier window whose engines did not confirm their stop; None where
            no device is known, and nothing is marked.
    """

    def __init__(self, held: Held | None) -> None:
        self._held = held
        self._mutex = threading.Lock()
        # Each by its device; what was left over stays until its engine is stopped.
        self._on: dict[str, list[Mark]] = {} if held is None else {key: [mark] for key, mark in held.marks().items()}

    @property
    def given_back(self) -> bool:
        """Whether the devices were held, and are not any more."""
        return self._held is not None and not self._held.keys

    def left_over(self, keys: Iterable[str], processes: list[ProcessIdentity]) -> bool:
        """Say whether one of the devices has a mark that names one of these processes."""
        return any(process in mark.processes for key in keys for mark in self._on.get(key, ()) for process in processes)

    def add(self, keys: tuple[str, ...], mark: Mark) -> None:
        """Mark devices, before an engine is asked to start.

        Raises:
            RegistryError: that cannot be written: do not start it.
            ValueError: there are too many processes.
        """
        with self._mutex:
            for key in keys:
                self._on.setdefault(key, []).append(mark)
            try:
                self._write(keys)
            except BaseException:
                self._drop(keys, mark.processes, mark)
                raise

    def remove(self, keys: tuple[str, ...], processes: list[ProcessIdentity], mark: Mark | None) -> None:
        """Take an engine off the marks of devices, after it has stopped, also where it was left over.

        Raises:
            RegistryError: that cannot be written.
        """
        with self._mutex:
            self._drop(keys, processes, mark)

    def _drop(self, keys: tuple[str, ...], processes: list[ProcessIdentity], mark: Mark | None) -> None:
        for key in keys:
            kept = []
            for each in self._on.get(key, ()):
                others = [process for process in each.processes if process not in processes]
                if each is not mark and (others or not each.processes):
                    kept.append(Mark(others, each.run, each.name, each.step))
            self._on[key] = kept
        self._write(keys)

    def _write(self, keys: tuple[str, ...]) -> None:
        if self._held is None:
            return
        for key in keys:
            marks = self._on.get(key)
            if not marks:
                self._held.clear_mark((key,))
                continue
            # Of an engine whose processes nobody knows death is no proof; so it is none for all of them.
            known = all(mark.processes for mark in marks)
            processes = dict.fromkeys(process for mark in marks for process in mark.processes) if known else ()
            last = marks[-1]
            self._held.set_mark(Mark(list(processes), last.run, last.name, last.step), (key,))
