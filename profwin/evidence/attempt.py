"""One try at reading something: whatever goes wrong is an answer too."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = ["Failure", "attempt", "frugal", "resolve"]

_OBJECTS = 500_000
"""New objects before the garbage collector looks."""
_BLOCK = 8 << 20
"""Bytes: once a block of this size was freed, glibc keeps up to twice as many for what is made next."""


@dataclass(frozen=True)
class Failure:
    """Why something could not be read; ``killed`` if its process died over it."""

    reason: str
    killed: bool = False


def attempt(function: Callable[..., Any], job: tuple[Any, ...]) -> Any:
    """Return what a function makes of a job, or the `Failure` that it was: no file may end a check of many files."""
    try:
        return function(*job)
    except OSError as error:
        return Failure(f"{type(error).__name__}: {error.strerror or error}")
    except Exception as error:  # noqa: BLE001  # whatever the file has brought about: it becomes a finding
        return Failure(f"{type(error).__name__}: {error}"[:500])


def resolve(name: str) -> Callable[..., Any]:
    """Return the function ``module:name``."""
    module, _, attribute = name.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), attribute)
    return function


@contextmanager
def frugal() -> Iterator[None]:
    """Let as little time as possible go into memory.

    Events are made and dropped by the hundred thousand and hold no cycles: looking for some costs a tenth of reading.
    Another tenth goes where the C library hands back each freed piece of a file to the system, and asks for it again.
    """
    bytes(_BLOCK)
    before = gc.get_threshold()
    if before[0]:  # else it does not look at all
        gc.set_threshold(max(before[0], _OBJECTS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
