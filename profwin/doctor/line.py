"""What is said of one thing: whether it works, why not, and what to do."""

from __future__ import annotations

import msgspec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["NO", "NOTE", "OK", "STATES", "UNKNOWN", "WARNING", "Line"]

OK, NO, WARNING, NOTE, UNKNOWN = "ok", "no", "warning", "note", "unknown"
STATES = {
    OK: "it is there and works, as far as can be seen without recording",
    NO: "it cannot be used here",
    WARNING: "it can disturb a recording, or mislead",
    NOTE: "good to know",
    UNKNOWN: "looking at it failed, or cannot tell",
}
"""Every state that a line can have, and what it means."""


class Line(msgspec.Struct, frozen=True):
    """One thing that was looked at.

    Attributes:
        name: of the thing.
        state: one of ``STATES``.
        detail: in words.
        remedy: what to do about it, in words; None where there is nothing to do.
        data: the same for programs: JSON values by name.
    """

    name: str
    state: str
    detail: str = ""
    remedy: str | None = None
    data: dict[str, Any] = {}
