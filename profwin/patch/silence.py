"""Silence: calls that are not made while profwin is on, such as those of a program's own profiler."""

from __future__ import annotations

from profwin.patch.regions import PatchRegion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.patch.value import Arguments, Keywords

__all__ = ["Silence"]


class Silence(PatchRegion):
    """What makes the calls of a silenced target, or does not: they return None then.

    ``when`` and ``unless`` say which calls are not made; where that cannot be found, the call is made.
    """

    def call(self, target: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
        """Make a call that is not silenced."""
        return None if self.block(args, kwargs) is not None else target(*args, **kwargs)

    async def acall(self, target: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
        """Make a call of a coroutine function that is not silenced."""
        return None if self.block(args, kwargs) is not None else await target(*args, **kwargs)

    def _open(self, args: Arguments, kwargs: Keywords) -> bool:  # noqa: ARG002  # nothing surrounds what is not made
        return True
