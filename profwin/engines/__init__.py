"""Engines: what generates, and records itself while it does, usually in processes of its own.

An engine is told to start and to stop; what its answers prove differs, so each kind has an adapter. Here is the one for
plain objects; HTTP servers and remote actors have the same seam.
"""

from __future__ import annotations

from profwin.engines.objects import ObjectEngine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Any, Protocol

    class Engine(Protocol):
        """An engine as a window sees it."""

        name: str
        revocable: bool
        """Whether :meth:`stop` may be called from any thread at any time, on another process's request."""
        in_process: bool
        """Whether it records in this process: it then keeps this process's own profilers from recording, and they it;
        both methods are called in one thread, unless they are coroutine functions."""

        @property
        def detached(self) -> bool:
            """Whether both methods may be called from any thread, which is then done beside the caller's."""

        def attach(self, loop: AbstractEventLoop) -> None:
            """Use an event loop, which the caller runs in, for methods that are coroutines."""

        def obstacle(self) -> str | None:
            """Say, in words, why it cannot even be asked to start from here; None if it can."""

        def needs(self, thread: int) -> bool:
            """Say whether starting and stopping needs the event loop of a thread, which must then not wait for them."""

        @property
        def devices(self) -> tuple[str, ...] | None:
            """Names of the devices that it records on; None where the engine does not say."""

        @property
        def process_ids(self) -> tuple[int, ...]:
            """The processes that record; empty where unknown: then only a confirmed stop frees the devices."""

        def start(self, directory: str, prefix: str, metadata: dict[str, Any]) -> None:
            """Make the engine record. Returning does not prove that it does.

            Raises:
                EngineRefusedError: it is certain that nothing of this window records; then :meth:`stop` is not called.
                Exception: it may record, and is told to stop.
            """

        def stop(self) -> list[str]:
            """Make the engine stop; returning confirms that it did. Return the traces that it named, if any."""

        def export(self, directory: str, prefix: str) -> list[str]:
            """Bring the traces into the window's directory, once, after a confirmed stop; its devices are free already.

            Args:
                directory, prefix: as for :meth:`start`.

            Returns:
                The paths of the finished files, wherever they are.

            Raises:
                FileNotFoundError: it left none, so it did not record.
                Exception: they cannot be had.
            """


__all__ = ["ObjectEngine", "adapt"]


def adapt(engine: object, patience: Callable[[], float] | None = None) -> Engine:
    """Return the adapter for what a user passed as ``engine=``.

    Args:
        engine: the object.
        patience: says how many seconds the start of several engines is waited for; None: as long as it takes.

    Raises:
        SettingError: it has no ``start_profile`` and ``stop_profile``, and no ``replicas`` either.
    """
    if not hasattr(engine, "start_profile") and hasattr(engine, "replicas"):
        from profwin.engines.replicas import Replicas

        several = ObjectEngine(Replicas(engine, patience))
        several.name = type(engine).__name__
        return several
    return ObjectEngine(engine)
