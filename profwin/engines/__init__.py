"""Engines: what generates, and records itself while it does, usually in processes of its own.

An engine is told to start and to stop; what its answers prove differs, so each kind has an adapter. Here is the one for
plain objects; HTTP servers and remote actors have the same seam.
"""

from __future__ import annotations

from profwin.engines.objects import ObjectEngine
from profwin.errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Container
    from typing import Any, Protocol

    from profwin.engines.sglang import SGLangServer
    from profwin.engines.vllm import VLLMServer

    class Engine(Protocol):
        """An engine as a window sees it.

        One that is asked by requests may have two more methods, so that many are asked before any is waited for:
        ``send_start``, with the arguments of :meth:`start`, and ``send_stop``. Each sends its request and returns it at
        once (:class:`profwin.engines.together.Asked`); it raises nothing. The ``start`` or ``stop`` that follows waits
        for the answer. Such an engine is told from any thread.
        """

        @property
        def name(self) -> str:
            """Its name, in words."""

        @property
        def revocable(self) -> bool:
            """Whether :meth:`stop` may be called from any thread at any time, on another process's request."""

        @property
        def in_process(self) -> bool:
            """Whether it records in this process, which has one session for it and for this process's own profilers.

            It is then told in one thread, unless its methods are coroutine functions.
            """

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
                directory: as for :meth:`start`.
                prefix: as for :meth:`start`.

            Returns:
                The paths of the finished files, wherever they are.

            Raises:
                FileNotFoundError: it left none, so it did not record.
                Exception: they cannot be had.
            """


__all__ = ["ObjectEngine", "SGLangServer", "VLLMServer", "adapt", "of_ranks"]

_LAZY = {"SGLangServer": "profwin.engines.sglang", "VLLMServer": "profwin.engines.vllm"}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(_LAZY[name]), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"{name} needs {error.name}: pip install 'profwin[engines]'", name=error.name) from error


_METHODS = ("attach", "obstacle", "needs", "start", "stop", "export")


def adapt(engine: object, patience: Callable[[], float] | None = None) -> Engine:
    """Return the adapter for what a user passed as ``engine=``.

    Args:
        engine: the object, or a list or tuple of them. One that is an :class:`Engine` already is used as it is. One
            with a method ``present`` stands for what that returns now: a list of engines, which may be empty.
        patience: says how many seconds the start of several engines is waited for; None: as long as it takes.

    Raises:
        SettingError: it has no ``start_profile`` and ``stop_profile``, and no ``replicas`` either; or a list is
            empty, or has one twice.
    """
    if isinstance(engine, (list, tuple)):
        from profwin.engines.several import Several

        if not engine or len({id(each) for each in engine}) < len(engine):
            raise SettingError("engine", engine, "one or several engines, each once")
        return Several(adapt(each, patience) for each in engine)
    if hasattr(type(engine), "present"):
        from profwin.engines.several import Several

        return Several(engine.present())  # type: ignore[attr-defined]  # as was just seen
    if all(hasattr(type(engine), method) for method in _METHODS):
        ready: Engine = engine  # type: ignore[assignment]  # nothing else has all these methods
        return ready
    from profwin.engines.inference import recognised

    known = recognised(engine)
    if known is not None:
        return known
    if not hasattr(engine, "start_profile") and hasattr(engine, "replicas"):
        from profwin.engines.replicas import Replicas

        several = ObjectEngine(Replicas(engine, patience))
        several.name = type(engine).__name__
        return several
    return ObjectEngine(engine)


def of_ranks(engine: object, ranks: Container[int] | None) -> tuple[object | None, bool]:
    """Choose from what a user passed as ``engine=`` what is to record where only some ranks are selected.

    An engine that says which devices it spans records if the rank of one of them is selected; the others of its
    devices are then recorded too.

    Args:
        engine: an engine or a list of them; None: this process.
        ranks: ranks of devices in the whole launch; None for all.

    Returns:
        What is left; None: nothing. And whether that was said by engines: else the rank of this process decides.
    """
    if ranks is None or engine is None:
        return engine, False
    from profwin.engines.several import spans

    if not isinstance(engine, (list, tuple)):
        spanned = spans(engine)
        return engine if spanned is None or any(rank in ranks for rank in spanned) else None, spanned is not None
    answers = [of_ranks(each, ranks) for each in engine]
    left = [chosen for chosen, _ in answers if chosen is not None]
    return left or None, any(said for _, said in answers)
