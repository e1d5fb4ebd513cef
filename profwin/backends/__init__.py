"""Backends: what records. One module each, imported when first used and found by name in one table.

A backend is opened, never started: :meth:`Backend.open` returns a context manager, so no stop can lack its start.
"""

from __future__ import annotations

from functools import cached_property

from profwin.errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from profwin.settings import Settings

    class LastingRange(Protocol):
        """A named range that belongs to a window, stage or span, not to the recording that it began in."""

        @property
        def open(self) -> bool:
            """Whether it has not been ended."""

        def end(self) -> None:
            """End it. Called from any thread, any number of times; raises nothing."""

    class Recording(Protocol):
        """A backend's running profiler.

        A window, stage or span is *scoped* where it begins and ends in one thread, as a ``with`` does. Others, such as
        those of ``async with``, are marked only by a recording that has one of these methods as well:

        - ``loose_span(name)`` returns a named range inside the recording, like ``span``, that may end in another thread
          and in any order.
        - ``lasting_range(name, purpose, role, *, loose) -> LastingRange`` begins a range, and is then called instead
          of ``span`` for every window, stage and span; ``loose`` where it is not scoped. Of several such recordings the
          first is asked. Its attribute ``ranges_outlast_it`` says whether ranges go on when the recording is left.

        An attribute ``still_on``, where there is one, is read when leaving it failed: true says that it goes on, and
        its devices are then held until the process ends.
        """

        def span(self, name: str) -> AbstractContextManager[object]:
            """Return a named range inside the recording, for the calling thread."""

        def step(self) -> None:
            """Say that a training step ended inside the recording."""

        def export(self) -> list[str]:
            """Write what was recorded, once, after the recording was left; return the paths of the finished files.

            Raises:
                Exception: nothing usable was recorded, or it could not be written. No half file is left.
            """

    class Backend(Protocol):
        """Opens recordings. A process has one instance of each backend it uses.

        Two class methods are optional: ``unusable() -> str | None`` says, in words, why it cannot record on this
        machine, and may import its profiler for that; ``stand_in() -> tuple[str, str] | None`` names the backend that
        has to record in its place in this process, and why. A method is optional too: ``caution(finding)``, called once
        before the first recording, may call ``finding(code, detail)`` for what the user should know.
        """

        name: str
        exclusive: bool
        """Whether two recordings on one device disturb each other: then the device lock is taken for it."""
        thread_bound: bool
        """Whether a recording must be left in the thread that entered it."""
        ranges: bool
        """Whether its recordings show named ranges."""
        revocable: bool
        """Whether a recording may be ended from outside at any time, on another's request."""

        def __init__(self, settings: Settings) -> None: ...

        def foreign(self) -> str | None:
            """Say, in words, which profiler that is not ours keeps this backend from recording; None if none."""

        def open(self, request: Request) -> AbstractContextManager[Recording]:
            """Return a context manager that records from its entry to its exit."""


__all__ = ["Request", "available", "caution", "load", "stand_ins"]

_TABLE = {
    "memory": "profwin.backends.memory",
    "nsys": "profwin.backends.nsys",
    "nvtx": "profwin.backends.nvtx",
    "record": "profwin.backends.record",
    "testing": "profwin.testing.backend",
    "torch": "profwin.backends.torch",
    "torch_npu": "profwin.backends.torch_npu",
}
_NEEDS = {"memory": "torch", "nsys": "nvtx", "nvtx": "nvtx", "torch": "torch", "torch_npu": "torch_npu"}
_FROM = {"torch_npu": "install the torch_npu that fits your torch and CANN"}


class Request:
    """What a backend is asked to record.

    Args:
        make_stem: called when the path is first asked for.
        make_metadata: called when the metadata is first asked for.
    """

    def __init__(self, make_stem: Callable[[], str], make_metadata: Callable[[], dict[str, Any]]) -> None:
        self._make_stem, self._make_metadata = make_stem, make_metadata

    @cached_property
    def stem(self) -> str:
        """Absolute path of the trace, without extension; its directory may not exist yet."""
        return self._make_stem()

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """JSON values that the trace must carry under the key ``profwin``."""
        return self._make_metadata()


def available() -> dict[str, str | None]:
    """Return every known backend's name, with None if it can be used here and else the reason why not."""
    found = {name: _missing(name) for name in sorted(_TABLE)}
    for entry in _entry_points():
        found.setdefault(entry.name, None)
    return found


def load(name: str) -> type[Backend]:
    """Return a backend's class. Its module is imported; the profiler that it drives may not be until it opens.

    Raises:
        SettingError: the name is unknown or the backend cannot be used here; all names are listed with their reasons.
    """
    module = _TABLE.get(name)
    if module is None:
        for entry in _entry_points():
            if entry.name == name:
                try:
                    found: type[Backend] = entry.load()
                except Exception as error:
                    raise SettingError("backend", name, f"another: it failed to load ({error})") from error
                return found
    if module is None or _missing(name) is not None:
        listed = "; ".join(each + (f" (no: {reason})" if reason else "") for each, reason in available().items())
        raise SettingError("backend", name, f"one or several of: {listed}")
    from importlib import import_module

    built_in: type[Backend] = import_module(module).BACKEND
    return built_in


def stand_ins(kinds: Iterable[type[Backend]], say: Callable[[str], object]) -> list[type[Backend]]:
    """Return the classes that record in this process for those that were asked for, each once.

    Args:
        kinds: what was asked for.
        say: told, in words, which one cannot record here, and why, where another one stands in for it.
    """
    found: list[type[Backend]] = []
    for kind in kinds:
        look = getattr(kind, "stand_in", None)
        answer: tuple[str, str] | None = look() if look is not None else None
        chosen = kind if answer is None else load(answer[0])
        if answer is not None:
            say(f"{kind.name}: {answer[1]}")
        if chosen not in found:
            found.append(chosen)
    return found


def caution(backends: Iterable[Backend], finding: Callable[[str, str], object]) -> None:
    """Let each backend say what the user should know before it records, as findings: a code and a detail."""
    for backend in backends:
        say = getattr(backend, "caution", None)
        if say is not None:
            say(finding)


def _missing(name: str) -> str | None:
    need = _NEEDS.get(name)
    if need is None:
        return None
    from importlib.util import find_spec

    if find_spec(need) is not None:
        return None
    remedy = _FROM.get(name, f"pip install 'profwin[{need}]'")
    return f"no package {need!r} here: {remedy}"


def _entry_points() -> list[Any]:
    from importlib.metadata import entry_points

    return list(entry_points(group="profwin.backends"))
