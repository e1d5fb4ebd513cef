"""Escaping: what files say is shown on terminals and written into JSON, and must not act there."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["jsonable", "printable"]


def printable(text: str, longest: int = 400) -> str:
    """Return a text in which nothing moves a cursor, hides or reverses text; cut in its middle where it is long."""
    if not text.isprintable():
        text = repr(text)[1:-1]
    if len(text) > longest:
        text = f"{text[: longest // 2]}…{text[-longest // 2 :]}"
    return text


def jsonable(value: Any) -> Any:
    """Return a JSON value that every reader takes: names that are not Unicode are escaped, no number is infinite."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {jsonable(str(key)): jsonable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(each) for each in value]
    return value if value is None or isinstance(value, int) else jsonable(str(value))
