"""Which devices a window or a stage locks."""

from __future__ import annotations

from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from profwin.engines import Engine
    from profwin.session import Session

    Locate: TypeAlias = Callable[[Callable[[Engine], tuple[str, ...]]], tuple[str, ...]]

__all__ = ["DeviceKeys"]


class DeviceKeys:
    """Finds the keys of devices, for one session.

    Args:
        session: whose settings hold, and whose journal is written.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._said: set[str] = set()

    def of(self, names: Iterable[str] | None, engine: Engine | None) -> tuple[str, ...]:
        """Return the keys of the devices to lock.

        They are the engine's, else the given ones, else the settings', else those of this process's contexts; empty
        where the process itself stands for its device. An engine that records elsewhere and does not say where, with
        none given, has none: that is a finding, for nothing keeps other recordings off its devices. This process's
        contexts say nothing of it. Engines of a list are each somewhere else.

        Raises:
            SettingError: a device name is wrong.
        """
        locate: Locate | None = getattr(engine, "locate", None)
        if locate is not None:
            return locate(partial(self.of, names))
        said = engine.devices if engine is not None else None
        asked = said or names or self._session.settings.devices
        if asked is None:
            if said is not None:
                return ()  # it says that it uses none
            return self._unnamed(engine)
        asked = (asked,) if isinstance(asked, str) else tuple(asked)
        if asked not in self._found:
            from profwin.registry.device import keys_of

            self._found[asked] = keys_of(asked)
        return self._found[asked]

    def _unnamed(self, engine: Engine | None) -> tuple[str, ...]:
        """Return the keys of what nobody named."""
        if engine is not None and not _here(engine):
            if self._first(engine.name):
                what = (
                    f"which devices {engine.name} records on is not known, so nothing keeps other recordings off them"
                )
                self._session.finding("engine-unguarded", f"{what}: pass devices=...")
            return ()
        from profwin.registry.device import contexts, unguarded

        found = contexts()
        if not found and (problem := unguarded()) is not None and self._first(""):
            self._session.finding("unguarded", problem)
        return found

    def _first(self, about: str) -> bool:
        """Say whether this is the first time: a finding is written once in the session for each thing."""
        first = about not in self._said
        self._said.add(about)
        return first


def _here(engine: Engine) -> bool:
    """Say whether this process's contexts may be those of an engine: it records here, or is an object of any kind."""
    from profwin.engines import ObjectEngine

    return engine.in_process or type(engine) is ObjectEngine
