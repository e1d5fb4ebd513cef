"""A backend whose every act can be made to fail, and that notes what it was asked to do."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

log: list[str] = []
faults: dict[str, BaseException] = {}


def reset() -> None:
    """Forget what happened and fail no more."""
    log.clear()
    faults.clear()


def _act(action: str) -> None:
    log.append(action)
    if action in faults:
        raise faults[action]


class _Recording:
    def __init__(self, request: Any) -> None:
        self._stem = request.stem

    def __enter__(self) -> _Recording:
        _act("open")
        return self

    def __exit__(self, *_: object) -> None:
        _act("close")

    def span(self, name: str) -> Any:
        _act("span")
        return nullcontext()

    def step(self) -> None:
        """Do nothing."""

    def export(self) -> list[str]:
        _act("export")
        path = self._stem + ".txt"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("whole")
        return [path]


class FaultyBackend:
    """Fail where ``faults`` says so; its keys are ``foreign``, ``open``, ``span``, ``close`` and ``export``."""

    name = "faulty"
    exclusive = True
    ranges = True
    thread_bound = False
    revocable = True

    def __init__(self, settings: object) -> None:
        """Take no settings."""

    def foreign(self) -> str | None:
        """Find none."""
        if "foreign" in faults:
            raise faults["foreign"]
        return None

    def open(self, request: object) -> _Recording:
        """Return a recording."""
        return _Recording(request)


BACKEND = FaultyBackend
