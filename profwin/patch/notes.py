"""Notes: what a plan's user must know, said once in the log and written to the journal as soon as there is one."""

from __future__ import annotations

import sys
from weakref import WeakKeyDictionary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

    from profwin.session import Session

__all__ = ["PENDING", "forget", "note", "record", "uneven"]

PENDING: list[tuple[str, str]] = []
"""Codes and texts that no journal has yet: patched code may be loaded long before the session begins."""

_said: set[Hashable] = set()
_uneven: WeakKeyDictionary[Session, set[tuple[str, str]]] = WeakKeyDictionary()


def note(code: str, text: str, *, key: Hashable = None, quiet: bool = False) -> None:
    """Say something once.

    Args:
        code: of the finding: ``plan-target``, ``plan-path`` or ``plan-note``.
        text: the message.
        key: what is said once; default: this text.
        quiet: log it as information, not as a warning.
    """
    key = text if key is None else key
    if key in _said:
        return
    _said.add(key)
    PENDING.append((code, text))
    if quiet and "logging" not in sys.modules:
        return  # nobody can have asked for it
    import logging

    logging.getLogger("profwin").log(20 if quiet else 30, "profwin: %s", text)


def record(session: Session) -> None:
    """Write to the journal what is not there yet."""
    while PENDING:
        try:
            code, text = PENDING.pop(0)
        except IndexError:  # another thread was faster
            return
        session.journal.write("finding", code=code, detail=text)


def uneven(session: Session, what: str, name: str) -> None:
    """Write to the journal, once, that windows or stages of a name are not in every step by design.

    It is written where a selected step has one: a journal holds nothing of other steps.
    """
    said = _uneven.setdefault(session, set())
    if (what, name) not in said:
        said.add((what, name))
        session.journal.write("uneven", what=what, name=name)


def forget() -> None:
    """Say everything anew: the plans are gone."""
    _said.clear()
    PENDING.clear()
