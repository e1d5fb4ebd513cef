"""Damage of one file, gathered while it is read: one finding a code, with the first places and how many there are."""

from __future__ import annotations

from dataclasses import dataclass, field

from profwin.evidence.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.finding import Code

__all__ = ["Damage"]

SHOWN = 10
"""Places that a finding names; damage that repeats must not fill memory."""


@dataclass
class _Kind:
    code: Code
    detail: str
    count: int = 0
    places: list[str] = field(default_factory=list)


class Damage:
    """What is wrong with one file.

    Args:
        path: relative to the checked directory, as findings name it.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._kinds: dict[str, _Kind] = {}

    def add(self, code: Code, detail: str, place: str = "") -> None:
        """Note damage. The first detail of a code is kept, and the first few places."""
        kind = self._kinds.setdefault(code.name, _Kind(code, detail))
        kind.count += 1
        if place and len(kind.places) < SHOWN:
            kind.places.append(place)

    def has(self, *codes: Code) -> bool:
        """Say whether one of these was noted."""
        return any(code.name in self._kinds for code in codes)

    def findings(self) -> list[Finding]:
        """Return what was noted, one finding a code, in the order in which it was first met."""
        found = []
        for kind in self._kinds.values():
            data = {"count": kind.count, "places": kind.places} if kind.count > 1 else {}
            detail = f"{kind.detail} ({kind.count} times)" if kind.count > 1 else kind.detail
            found.append(Finding(kind.code, detail, self.path, kind.places[0] if kind.places else "", data))
        return found
