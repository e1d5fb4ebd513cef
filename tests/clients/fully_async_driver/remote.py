"""What stands for Ray: handles of actors that live in one thread, each call of which gives a reference."""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from unittest.mock import patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from concurrent.futures import Future
    from typing import Any

__all__ = ["Actors", "Handle", "Reference", "get", "shipped"]


class Reference:
    """What a remote call returns: it can be awaited, and has ``future()``, as Ray's ``ObjectRef``."""

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def future(self) -> Future[Any]:
        """Return the future of the call."""
        return self._future

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self._future).__await__()


def get(references: Any, timeout: float | None = None) -> Any:
    """Stand for ``ray.get``."""
    if isinstance(references, list):
        return [get(each) for each in references]
    return references.future().result(timeout)


def shipped(actor_class: Any) -> Any:
    """Return a class that is decorated with ``ray.remote`` as Ray makes it anew in the actor's process."""
    from ray.cloudpickle import cloudpickle

    pickled = cloudpickle.dumps(actor_class.__ray_metadata__.modified_class)
    # Another process does not know it yet; this one would be given the very same class.
    with (
        patch.object(cloudpickle, "_DYNAMIC_CLASS_TRACKER_BY_CLASS", weakref.WeakKeyDictionary()),
        patch.object(cloudpickle, "_DYNAMIC_CLASS_TRACKER_BY_ID", weakref.WeakValueDictionary()),
    ):
        return cloudpickle.loads(pickled)


class Actors:
    """The event loop that all actors live in, in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="actors", daemon=True)
        self._thread.start()

    def call(self, method: Any, *args: Any, **kwargs: Any) -> Reference:
        """Call a method there, whether or not it is a coroutine function."""

        async def body() -> Any:
            found = method(*args, **kwargs)
            return await found if inspect.isawaitable(found) else found

        return Reference(asyncio.run_coroutine_threadsafe(body(), self.loop))

    def close(self) -> None:
        """End the thread; what still hangs in it is cancelled."""

        async def cancel() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(cancel(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


class Handle:
    """The handle of an actor: ``handle.method.remote(...)``. It has no other methods than the actor."""

    def __init__(self, actors: Actors, actor: object, identifier: str = "actor") -> None:
        self._actors, self._actor, self._actor_id = actors, actor, identifier

    def __getattr__(self, name: str) -> Any:
        return _Method(self._actors, getattr(self._actor, name))


class _Method:
    def __init__(self, actors: Actors, method: Any) -> None:
        self._actors, self._method = actors, method

    def remote(self, *args: Any, **kwargs: Any) -> Reference:
        return self._actors.call(self._method, *args, **kwargs)
