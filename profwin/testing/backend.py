"""The backend ``testing``: no profiler, but it notes all that is asked of it, and fails where a test says so."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass

from profwin.testing.fault import Faults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from profwin.backends import Request
    from profwin.settings import Settings

__all__ = ["BACKEND", "Act", "Control", "control"]

ACTIONS = ("open", "enter", "span", "step", "exit", "export")


@dataclass(frozen=True)
class Act:
    """One thing that the backend did, or began to do: also what then failed is noted.

    Attributes:
        action: ``open``, ``enter``, ``span``, ``span_ends``, ``step``, ``exit`` or ``export``.
        purpose, name, step: of the collection; for spans, ``name`` is the span's.
        thread: identifier of the thread.
        time: nanoseconds, as in journals.
    """

    action: str
    purpose: str
    name: str
    step: int
    thread: int
    time: int


class Control(Faults):
    """What this process's ``testing`` backend did and is to do; there is one, :data:`control`.

    Attributes:
        acts: everything it did, in order.
        thread_bound: whether its recordings must be left in the thread that entered them; leaving one elsewhere raises.
        revocable: whether its recordings may be ended from outside at any time.
        foreign: what it says is in the way, in words; None for nothing.

    ``thread_bound`` and ``revocable`` count for the session whose first collection comes after they were set.
    """

    def __init__(self) -> None:
        super().__init__(*ACTIONS)
        self.reset()

    def reset(self) -> None:
        """Forget all, and behave well from now on."""
        self.heal()
        self.acts: list[Act] = []
        self.thread_bound = False
        self.revocable = True
        self.foreign: str | None = None


control = Control()
"""This process's."""


class _Span:
    def __init__(self, recording: _Recording, name: str) -> None:
        self._recording, self._name = recording, name

    def __enter__(self) -> _Span:
        self._recording.act("span", self._name)
        return self

    def __exit__(self, *exception: object) -> None:
        self._recording.act("span_ends", self._name)


class _Recording:
    def __init__(self, request: Request, *, thread_bound: bool) -> None:
        self._request, self._thread_bound = request, thread_bound
        self._thread = 0
        self._step = 0
        self.act("open")

    def act(self, action: str, name: str | None = None) -> None:
        metadata = self._request.metadata
        name = name or str(metadata["name"])
        control.acts.append(
            Act(action, metadata["purpose"], name, metadata["step"], threading.get_ident(), time.monotonic_ns())
        )
        control.happen(action, name)

    def __enter__(self) -> _Recording:
        self.act("enter")
        self._thread = threading.get_ident()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.act("exit")
        if self._thread_bound and threading.get_ident() != self._thread:
            raise RuntimeError("a recording that is bound to a thread was left in another one")

    def span(self, name: str) -> _Span:
        return _Span(self, name)

    def step(self) -> None:
        self._step += 1
        self.act("step")

    def export(self) -> list[str]:
        self.act("export")
        path = f"{self._request.stem}.testing.json"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        part = f"{path}.tmp"
        try:
            with open(part, "w", encoding="utf-8") as file:
                json.dump({"profwin": self._request.metadata, "steps": self._step}, file)
            os.rename(part, path)
        except OSError:
            os.unlink(part)
            raise
        return [path]


class TestingBackend:
    """Do as :data:`control` says."""

    __test__ = False  # pytest would take it for a class of tests

    name = "testing"
    exclusive = True  # so that the order of real profilers is enforced, and can be seen, without one
    thread_bound = False  # unless the test says so
    ranges = True  # so that spans are noted
    revocable = True  # unless the test says so

    def __init__(self, settings: Settings) -> None:  # noqa: ARG002  # part of the protocol
        self.thread_bound, self.revocable = control.thread_bound, control.revocable

    def foreign(self) -> str | None:
        """Say what the test says is in the way."""
        return control.foreign

    def open(self, request: Request) -> _Recording:
        """Return a context manager that notes what is asked of it."""
        return _Recording(request, thread_bound=self.thread_bound)


BACKEND = TestingBackend
