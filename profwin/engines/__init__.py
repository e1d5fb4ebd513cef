"""Engines: what generates, and records itself while it does, usually in processes of its own.

An engine is told to start and to stop; what its answers prove differs, so each kind has an adapter. Here is the one for
plain objects; HTTP servers and remote actors have the same seam.
"""

from __future__ import annotations

from profwin.engines.objects import ObjectEngine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Engine(Protocol):
        """An engine as a window sees it."""

        name: str

        @property
        def devices(self) -> tuple[str, ...] | None:
            """Names of the devices that it records on; None where the engine does not say."""

        @property
        def process_ids(self) -> tuple[int, ...]:
            """The processes that record; empty where unknown: then only a confirmed stop frees the devices."""

        def start(self, directory: str, prefix: str, metadata: dict[str, Any]) -> None:
            """Make the engine record. Returning does not prove that it does."""

        def stop(self) -> list[str]:
            """Make the engine stop; returning confirms that it did. Return the traces that it named, if any."""


__all__ = ["ObjectEngine", "adapt"]


def adapt(engine: object) -> Engine:
    """Return the adapter for what a user passed as ``engine=``.

    Raises:
        SettingError: it has no ``start_profile`` and ``stop_profile``.
    """
    return ObjectEngine(engine)
