"""The nearest: what a wrong name was probably meant to be."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["nearest"]


def nearest(word: object, known: Iterable[object]) -> str:
    """Return, in words, the known name that is nearest to *word*, else the first few of them.

    Args:
        word: what was written.
        known: the names that exist, of which those that are no text are left out.
    """
    import difflib

    names = sorted({name for name in known if isinstance(name, str) and name.isprintable()})
    if not names:
        return "there is nothing to choose from"
    text = str(word)[:200] if isinstance(word, str) else ""
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(text, names, 1, 0.6)
    if not close:
        close = [folded[name] for name in difflib.get_close_matches(text.casefold(), folded, 1, 0.6)]
    if close:
        return f"the nearest is {close[0]!r}"
    few = ", ".join(names[:12])
    return f"use one of {few}" if len(names) <= 12 else f"there are {few} and {len(names) - 12} more"
