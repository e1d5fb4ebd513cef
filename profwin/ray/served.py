"""What runs in an agent's process for engines of its node: windows around them, and the end of what others left."""

from __future__ import annotations

import threading
import time

from profwin.engines import adapt
from profwin.engines.recording import DIED, catch_up
from profwin.errors import EngineError, RegistryError, SettingError
from profwin.registry.process import identities

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.engines import Engine
    from profwin.session import Session

__all__ = ["carried", "conclude"]

_KEPT = 64
_mutex = threading.Lock()
_engines: dict[bytes, Engine] = {}
"""Each as it came, so that one that is asked for again knows what it was told before."""


def carried(order: dict[str, Any]) -> Engine:
    """Return the engine that an order brings, the same object each time.

    Raises:
        SettingError: it cannot be made here.
    """
    import pickle

    data = order["engine"]
    with _mutex:
        engine = _engines.get(data)
        if engine is None:
            try:
                engine = adapt(pickle.loads(data))
            except Exception as error:
                allowed = f"one that can be made on its node ({type(error).__name__}: {error})"
                raise SettingError("engine", order["label"], allowed) from error
            if not hasattr(engine, "elsewhere"):
                # Others that are driven here, and have no devices either, have nothing to do with it.
                engine.elsewhere = (order["scope"],)  # type: ignore[attr-defined]  # only some engines have it
            _engines[data] = engine
            while len(_engines) > _KEPT:
                del _engines[next(iter(_engines))]
    return engine


def conclude(agent: Any, token: str, order: dict[str, Any]) -> dict[str, Any]:
    """Close the window that this process opened around an engine, and wait for the engine's answer.

    Where an agent before this one has opened it, and died, stop the engine and take the mark off.

    Args:
        agent: the instance.
        token: what the driver calls the window.
        order: as it was begun with, with ``patience``: seconds that the driver waits.

    Returns:
        ``known``: whether this process has opened it; ``died``: how the engine died, if it did, else empty;
        ``problem``: why nothing confirms its stop, else empty; ``stopped``: whether another agent's window was ended.
    """
    from profwin.configuration import current
    from profwin.ray.recorder import end

    session = current()
    if session is None:
        return {"known": False, "died": "", "problem": "", "stopped": False}
    deadline, engine = time.monotonic() + order["patience"], carried(order)
    mine = [each for each in session.owner.collections if each.engine is engine]
    answer = end(agent, token)
    found = {"known": answer["known"], "died": "", "problem": "", "stopped": False}
    if not answer["known"]:
        return {**found, **_left_over(session, engine, order)}
    for each in mine:
        if each.detached and not each.closed.wait(max(0.0, deadline - time.monotonic())):
            return {**found, "problem": "its stop is not confirmed in time"}
        failure = each.failure
        if isinstance(failure, EngineError) and failure.action == "stop":
            found["died" if failure.problem.startswith(DIED) else "problem"] = failure.problem
    return found


def _left_over(session: Session, engine: Engine, order: dict[str, Any]) -> dict[str, Any]:
    """Stop an engine that another agent has left recording."""
    if any(each.engine is engine for each in session.owner.collections):
        return {}  # another window records it here by now, which has ended what was left first
    try:
        keys = session.keys(None, engine)
        if not keys:
            engine.stop()
            return {"stopped": True}
        return {"stopped": _confirmed(session, engine, keys, order)}
    except Exception as error:  # noqa: BLE001  # whatever the engine raises, its driver is told
        return {"problem": f"the agent that started it has died, and {type(error).__name__}: {error}"}


def _confirmed(session: Session, engine: Engine, keys: tuple[str, ...], order: dict[str, Any]) -> bool:
    from profwin.registry.lock import Held

    registry, run, pids = session.registry(), session.run.name, engine.process_ids
    held = registry.acquire(
        keys, kind="rollout", run=run, name=order["name"], step=order["step"],
        owner_of_mark=frozenset(identities(pids)), seconds=session.budget.whole() if pids else 0.0,
    )  # fmt: skip
    if isinstance(held, Held):
        try:
            return catch_up(session, engine, held, keys)
        finally:
            held.release()
    ours = [state.key for state in registry.survey() if state.key in keys and state.mark is not None]
    if pids or held.reason != "unknown" or not ours:
        raise RegistryError(held.device, f"is held by {held.describe()}")
    # Nobody knows the processes, so the mark names none: the engine's own answer is what there is.
    engine.stop()
    for key in ours:
        registry.confirm(key)
    session.journal.write("confirmed", devices=ours, processes=[])
    return True
