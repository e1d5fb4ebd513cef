"""The ``nvtx`` backend: windows, stages and spans as ranges of NVTX, for any tool that listens to them.

It records nothing by itself: Nsight Systems, Nsight Compute and others show the ranges beside what they record. Their
domain is ``profwin``, so that none of the program's own is ever ended and a tool can be asked for ours alone
(``--nvtx-domain-include=profwin``); their category is the purpose, their colour goes by the role.

- Whether a tool listens is asked when something is recorded, never when something is decorated: ``nvtx.annotate`` as a
  decorator returns the bare function for ever where no tool is attached at that time. NVTX itself decides at the first
  call of the process (``NVTX_INJECTION64_PATH``, read once), and ``NVTX_DISABLE`` turns the package off.
- A range belongs to its window, stage or span and not to the recording, so it ends where its block ends, in the thread
  of that block, also where the recording was closed before. See ``nvtx_ranges.py``.
- Code that runs in an event loop, and windows that are opened and closed by calls, get start/end ranges; other code
  gets push/pop ranges.
- A name is registered with NVTX once and kept by the package for good: name spans by what they are, not by numbers.

No tool of NVIDIA's was run here. The calls were checked as a library that NVTX loads itself receives them (0.2.17).
"""

from __future__ import annotations

import sys
import zlib
from functools import lru_cache

from profwin.backends.nvtx_ranges import NO_RANGE, PushedRange, StartedRange, end_lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.backends import Request
    from profwin.backends.nvtx_ranges import NoRange
    from profwin.settings import Settings

__all__ = ["BACKEND", "COLOURS", "DOMAIN", "NvtxRecording", "colour", "listener"]

DOMAIN = "profwin"
COLOURS = {
    "rollout": 0xFF4C9F70,
    "train": 0xFF3B6FB6,
    "actor": 0xFF3B6FB6,
    "critic": 0xFF8E5EA2,
    "ref": 0xFFB08D57,
    "reward": 0xFFD98E04,
    "teacher": 0xFFC8553D,
}
"""ARGB by role; other roles get one of `_OTHERS`, by a hash that is the same in every process."""
_OTHERS = (0xFF2A9D8F, 0xFF6D9DC5, 0xFF9C89B8, 0xFFE07A5F, 0xFF81B29A, 0xFFBC6C25, 0xFF5F6CAF, 0xFFA3B18A)
_MOST_KEPT = 1024


def colour(role: str) -> int:
    """Return the ARGB colour of a role."""
    return COLOURS.get(role) or _OTHERS[zlib.crc32(role.encode()) % len(_OTHERS)]


def listener() -> Any:
    """Return the domain of our ranges if a tool listens to it, else None.

    Raises:
        ImportError: there is no package ``nvtx``.
    """
    import nvtx  # type: ignore[import-untyped]  # it has no annotations

    if not nvtx.enabled():
        return None
    domain = nvtx.get_domain(DOMAIN)
    # The package's stand-in for a domain that nobody listens to knows no attributes.
    return domain if domain.get_event_attributes() is not None else None


@lru_cache(_MOST_KEPT)
def _attributes(domain: Any, name: str, purpose: str, role: str) -> Any:
    return domain.get_event_attributes(message=name, color=colour(role), category=purpose or None)


class NvtxRecording:
    """Marks what happens, from entry to exit and beyond: its ranges end when what they mark ends.

    Args:
        domain: from :func:`listener`.
    """

    ranges_outlast_it = True

    def __init__(self, domain: Any) -> None:
        self._domain = domain

    def __enter__(self) -> NvtxRecording:
        if self._domain is not None:
            end_lost(self._domain)
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def lasting_range(
        self, name: str, purpose: str = "", role: str = "", *, loose: bool
    ) -> PushedRange | StartedRange | NoRange:
        """Begin a range.

        Args:
            name: what the tool shows.
            purpose: its category; none by default.
            role: which colour it has.
            loose: whether it may end in another thread, or not in the order of its thread's other ranges.
        """
        domain = self._domain
        if domain is None:
            return NO_RANGE
        attributes = _attributes(domain, name, purpose, role)
        if loose or _in_event_loop():
            return StartedRange(domain, attributes)
        return PushedRange(domain, attributes)

    def span(self, name: str) -> _Span:
        """Return a range without category, as a context manager of the calling thread."""
        return _Span(self, name)

    def step(self) -> None:
        """Do nothing."""

    def export(self) -> list[str]:
        """Return no files: the tool that listens writes what it heard."""
        return []


class _Span:
    __slots__ = ("_name", "_range", "_recording")

    def __init__(self, recording: NvtxRecording, name: str) -> None:
        self._recording, self._name = recording, name
        self._range: PushedRange | StartedRange | NoRange | None = None

    def __enter__(self) -> None:
        self._range = self._recording.lasting_range(self._name, loose=False)

    def __exit__(self, *exception: object) -> None:
        if self._range is not None:
            self._range.end()


class NvtxBackend:
    """Mark windows, stages and spans for whatever tool listens."""

    name = "nvtx"
    exclusive = False  # a range takes nothing from anybody: the tool that listens records, or does not
    ranges = True  # it is nothing else
    thread_bound = False  # a range is ended in its own thread, whichever thread ends the recording
    revocable = True  # ending the recording leaves the ranges alone

    def __init__(self, settings: Settings) -> None:
        """Take no settings."""

    @classmethod
    def unusable(cls) -> str | None:
        """Say why it cannot mark anything here; imports nvtx."""
        try:
            import nvtx
        except ImportError as error:
            return f"the package nvtx cannot be imported ({error}): pip install 'profwin[nvtx]'"
        if not hasattr(nvtx, "get_domain"):
            return "the package nvtx is too old, it has no get_domain: pip install --upgrade nvtx"
        return None if nvtx.enabled() else "NVTX_DISABLE is set, which turns the package nvtx off: unset it"

    def foreign(self) -> None:
        """Nothing can be in the way."""
        return

    def open(self, request: Request) -> NvtxRecording:  # noqa: ARG002  # part of the protocol
        """Return a recording; whether a tool listens is asked now."""
        return NvtxRecording(listener())


def _in_event_loop() -> bool:
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


BACKEND = NvtxBackend
