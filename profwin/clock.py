"""The clock that wait budgets and ``max_seconds`` go by, in one place, so that a test can stand in for it."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["now"]

now: Callable[[], float] = time.monotonic
"""Seconds on a clock that never goes back. Read it as ``clock.now()``, never by importing the name."""
