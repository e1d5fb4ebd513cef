"""Inference engines that are objects of this process: vLLM's ``LLM`` and ``AsyncLLM``, SGLang's ``Engine``.

They are told by their classes' modules and names, so neither package is imported. What is used of them was read in vLLM
0.32.0 and SGLang 0.5.23, and tests hold it against their source. vLLM's were run on a CPU, in one process and in
several; SGLang's was never run here.
"""

from __future__ import annotations

import os
import time
from weakref import WeakKeyDictionary

from profwin.engines.asked import new_token
from profwin.engines.objects import ObjectEngine
from profwin.errors import EngineRefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Iterable
    from typing import Any

__all__ = ["AsyncVLLMObject", "InferenceObject", "SGLangObject", "VLLMObject", "recognised"]

_OPEN: WeakKeyDictionary[object, str] = WeakKeyDictionary()
"""Which engines were told to record, for which window, and have not confirmed their stop."""


def recognised(engine: object) -> InferenceObject | None:
    """Return the adapter for an engine of a package known here; None for any other object."""
    for base in type(engine).__mro__:
        kind = _KINDS.get((base.__module__.partition(".")[0], base.__name__))
        if kind is not None:
            return kind(engine)
    return None


class InferenceObject(ObjectEngine):
    """What they share: files are named after the window where that can be, and moved into the step's folder.

    ``devices``, ``process_ids``, ``in_process`` and ``revocable`` of the object count, where somebody has set them.

    Args:
        engine: the object.
    """

    def __init__(self, engine: object) -> None:
        super().__init__(engine)
        self.in_process = self.in_process or self._records_here()
        self.revocable = self.revocable and not self.in_process
        self._token: str | None = None
        self._confirmed = 0
        # Looked up once: a window has an adapter of its own.
        self._processes: tuple[int, ...] | None = None
        self._devices: tuple[tuple[str, ...] | None] | None = None

    @property
    def devices(self) -> tuple[str, ...] | None:
        """The object's own ``devices``; else those that its processes use; None where that cannot be told."""
        said = super().devices
        elsewhere = [pid for pid in self.process_ids if pid != os.getpid()]
        if said is not None or (self.in_process and not elsewhere):
            return said  # what records here is on this process's devices
        if self._devices is None:
            from profwin.engines.processes import devices_of

            self._devices = (devices_of(elsewhere),)
        return self._devices[0]

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The object's own ``process_ids``; else its workers and all that they started, and this process if need be."""
        if self._processes is None:
            said = super().process_ids
            known = getattr(self.target, "process_ids", None)
            self._processes = said if known else (*said, *self._tree())
        return self._processes

    def _tree(self) -> tuple[int, ...]:
        from profwin.engines import procfs

        tops, family = [pid for pid in self._workers() if pid], procfs.parents()
        return tuple(dict.fromkeys(pid for top in tops if top in family for pid in procfs.within(top, family)))

    def start(self, directory: str, prefix: str, metadata: dict[str, Any]) -> None:  # noqa: ARG002  # not a safe name
        """Call ``start_profile``.

        Raises:
            EngineRefusedError: it has no profiler, or records for somebody else.
            Exception: it may record.
        """
        missing = self._missing()
        if missing is not None:
            raise EngineRefusedError(self.name, missing)
        self._token = new_token(metadata)
        earlier = _OPEN.get(self.target)
        _OPEN[self.target] = f"window {metadata.get('name')!r} of step {metadata.get('step')}"
        try:
            self._finished(self.target.start_profile(**self._keywords(directory, self._token)))
        except Exception as error:
            if not self._taken(error):
                raise
            if earlier is not None:
                raise RuntimeError(f"it still records {earlier}, whose stop it never confirmed") from error
            del _OPEN[self.target]
            raise EngineRefusedError(self.name, f"somebody else's session is open: {error}", foreign=True) from error

    def stop(self) -> list[str]:
        """Call ``stop_profile``; its return confirms that nothing records any more."""
        try:
            self._finished(self.target.stop_profile())
        except Exception as error:
            if not self._idle(error):
                raise
        _OPEN.pop(self.target, None)
        self._confirmed = time.time_ns()
        return []

    def export(self, directory: str, prefix: str) -> list[str]:
        """Move the window's files into the step's folder; return them, or where they are if they have no name for it.

        Raises:
            FileNotFoundError: there is none, so it has not recorded.
            OSError: they cannot be moved.
        """
        place = self._place(directory)
        if place is None or self._token is None:
            return []
        if "://" in place or not self._names_files():
            return [place]
        from profwin.engines.traces import bring

        return bring(place, self._token, directory, prefix, self._confirmed)

    def _records_here(self) -> bool:
        """Say whether it opens a profiler in this process."""
        return False

    def _workers(self) -> Iterable[int]:
        """Return the processes that it has started itself."""
        return ()

    def _missing(self) -> str | None:
        """Say what it lacks for profiling; None if nothing."""
        return None

    def _keywords(self, directory: str, token: str) -> dict[str, Any]:  # noqa: ARG002  # not all can be told it
        """Return what its ``start_profile`` is given."""
        return {"profile_prefix": token} if self._names_files() else {}

    def _names_files(self) -> bool:
        """Say whether its files can have the window's name."""
        return "profile_prefix" in self._accepted()

    def _taken(self, error: Exception) -> bool:
        """Say whether an error of ``start_profile`` means that a session is open already."""
        return "already" in str(error).lower()

    def _idle(self, error: Exception) -> bool:  # noqa: ARG002  # vLLM takes a stop of nothing
        """Say whether an error of ``stop_profile`` means that nothing records."""
        return False

    def _place(self, directory: str) -> str | None:
        """Return where it writes; None where it writes nothing."""
        raise NotImplementedError


class VLLMObject(InferenceObject):
    """vLLM's ``LLM``.

    With ``VLLM_ENABLE_V1_MULTIPROCESSING=0`` (also TRL's colocate mode) its core is in this process, and records here
    unless its executor has workers elsewhere. Older versions take no prefix, and their files stay where they are.
    """

    @property
    def _config(self) -> Any:
        owner = getattr(self.target, "llm_engine", self.target)
        return getattr(getattr(owner, "vllm_config", None), "profiler_config", None)

    @property
    def _client(self) -> Any:
        return getattr(getattr(self.target, "llm_engine", self.target), "engine_core", None)

    def _records_here(self) -> bool:
        core = getattr(self._client, "engine_core", None)
        executor = getattr(core, "model_executor", None)
        return any(base.__name__ == "UniProcExecutor" for base in type(executor).__mro__)

    def _workers(self) -> Iterable[int]:
        manager = getattr(getattr(self._client, "resources", None), "engine_manager", None)
        return [process.pid for process in getattr(manager, "processes", None) or ()]

    def _missing(self) -> str | None:
        config = self._config
        if config is None or getattr(config, "profiler", "") is not None:
            return None  # configured, or of a version that is configured by variables
        return "it has no profiler: make it with profiler_config={'profiler': 'torch', 'torch_profiler_dir': ...}"

    def _place(self, directory: str) -> str | None:  # noqa: ARG002  # vLLM cannot be told it
        config = self._config
        if config is None:
            return os.environ.get("VLLM_TORCH_PROFILER_DIR")
        kind = getattr(config, "profiler", None)
        return getattr(config, f"{kind}_profiler_dir", None) or None  # "cuda" writes nothing


class AsyncVLLMObject(VLLMObject):
    """vLLM's ``AsyncLLM``: its methods run in the event loop that it was made in, from wherever the window is opened.

    Its front end records in this process too unless ``ignore_frontend`` is set in its profiler's configuration.
    """

    _own = False

    def __init__(self, engine: object) -> None:
        super().__init__(engine)
        task = getattr(engine, "output_handler", None)
        if task is None:
            task = getattr(getattr(self._client, "resources", None), "output_queue_task", None)
        loop = task.get_loop() if task is not None else None
        if loop is not None:
            self._loop, self._own = loop, True
            self._thread = getattr(loop, "_thread_id", None) or 0  # which uvloop's do not have

    def attach(self, loop: AbstractEventLoop) -> None:
        """Use an event loop, where its own is not known yet: it has begun none."""
        if not self._own:
            super().attach(loop)

    def obstacle(self) -> str | None:
        """Say that its own event loop does not run, or in this very thread, so that nothing can wait for it here."""
        if self._own and self._loop is not None and not self._loop.is_running():
            return "its event loop does not run"
        return super().obstacle()

    def needs(self, thread: int) -> bool:
        """Say whether a thread, the calling one, runs its event loop."""
        from asyncio import get_running_loop

        try:
            return super().needs(thread) or get_running_loop() is self._loop
        except RuntimeError:
            return False

    def _records_here(self) -> bool:
        return bool(getattr(self._config, "should_profile_frontend", False))


class SGLangObject(InferenceObject):
    """SGLang's ``Engine``: it is told to write into the step's folder, and its files begin with the window's name."""

    def _workers(self) -> Iterable[int]:
        watchdog = getattr(getattr(self.target, "tokenizer_manager", None), "_subprocess_watchdog", None)
        return [process.pid for process in getattr(watchdog, "_processes", None) or ()]

    def _keywords(self, directory: str, token: str) -> dict[str, Any]:
        os.makedirs(directory, exist_ok=True)
        return {"output_dir": os.path.abspath(directory), "profile_id": token}

    def _names_files(self) -> bool:
        return True

    def _idle(self, error: Exception) -> bool:
        return "not in progress" in str(error).lower()

    def _place(self, directory: str) -> str | None:
        return os.path.abspath(directory)


_KINDS: dict[tuple[str, str], type[InferenceObject]] = {
    ("sglang", "Engine"): SGLangObject,
    ("vllm", "AsyncLLM"): AsyncVLLMObject,
    ("vllm", "LLM"): VLLMObject,
}
