"""Sets of non-negative integers as immutable values: the arithmetic behind `profwin.selection`.

Ranges are stored as ranges, so their length costs nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    Piece: TypeAlias = tuple[int, int, int]  # first, last (included), stride

__all__ = ["ENDLESS", "Call", "Ranges", "Selection", "Value", "make_ranges", "unite"]

ENDLESS = 2**63 - 1  # the step board holds steps in signed 64-bit words, so no step lies beyond
SHORT = 64  # a range with a stride and no more members than this is kept as single numbers
SEARCH = 10_000


class Value:
    """An immutable value that is equal to another of its class with equal parts, and pickles."""

    __slots__ = ("_parts",)
    _parts: tuple[object, ...]

    def __init__(self, *parts: object) -> None:
        object.__setattr__(self, "_parts", parts)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a selection cannot be changed (tried to set {name!r}): build another one")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and type(self) is type(other) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._parts))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._parts

    def __repr__(self) -> str:
        return f"steps({str(self)!r})"

    def text(self) -> str:
        """Return text that reads back as an equal value, for an environment variable or a file.

        Raises:
            ValueError: a callable is part of the selection.
        """
        for part in self._parts:
            if isinstance(part, Value):
                part.text()
        return str(self)


class Selection(Value):
    """A set of non-negative integers, with ``in``, ``|``, ``&``, ``~``, equality, hash and text.

    Two selections are equal if they reduce to the same parts: adjacent and overlapping ranges are joined,
    order and repetition do not matter, but ``every:2`` and ``every:4,2-/4`` stay different. A selection is
    false if it is known to be empty. Whatever is no integer is in none. Made with `steps`, `ranks`, `every`.
    """

    __slots__ = ()

    def __contains__(self, step: object) -> bool:
        try:
            return self._holds(index(step)) is True  # type: ignore[arg-type]  # its TypeError is the answer
        except TypeError:
            return False

    def _holds(self, step: int) -> bool | None:
        """Say whether `step` is selected; None if a callable failed, which must not select through ``~``."""
        raise NotImplementedError

    def __or__(self, other: Selection) -> Selection:
        if isinstance(other, Selection):
            return unite((self, other))
        return NotImplemented

    def __and__(self, other: Selection) -> Selection:
        if isinstance(other, Selection):
            return intersect((self, other))
        return NotImplemented

    def __invert__(self) -> Selection:
        return Complement(self)

    @property
    def last(self) -> int | None:
        """The largest selected number, or None: without end, empty, or not to be told (a callable, ``!``).

        A callable is never asked. An intersection is searched downwards over at most 10,000 numbers.
        """
        return None


class Ranges(Selection):
    """Parts: sorted disjoint intervals ``(first, last)``, sorted progressions ``(first, last, stride)``."""

    __slots__ = ()
    _parts: tuple[tuple[tuple[int, int], ...], tuple[Piece, ...]]

    def _holds(self, step: int) -> bool:
        intervals, progressions = self._parts
        place = bisect_right(intervals, (step, ENDLESS)) - 1
        if place >= 0 and step <= intervals[place][1]:
            return True
        return any(first <= step <= last and (step - first) % stride == 0 for first, last, stride in progressions)

    def __invert__(self) -> Selection:
        intervals, progressions = self._parts
        if progressions:
            return Complement(self)
        edges = [-1, *(edge for interval in intervals for edge in interval), ENDLESS + 1]
        gaps = zip(edges[::2], edges[1::2], strict=True)
        return make_ranges((low + 1, high - 1, 1) for low, high in gaps)

    def __bool__(self) -> bool:
        return self._parts != ((), ())

    def __str__(self) -> str:
        intervals, progressions = self._parts
        pieces = sorted([(first, last, 1) for first, last in intervals] + list(progressions))
        return ",".join(_write(*piece) for piece in pieces) or "none"

    @property
    def last(self) -> int | None:
        """The end of the last piece, unless that is open."""
        top = max((piece[1] for kind in self._parts for piece in kind), default=ENDLESS)
        return None if top == ENDLESS else top


class Call(Selection):
    """Parts: the callable, then a list which is no longer empty once its failure was reported."""

    __slots__ = ()
    _parts: tuple[Callable[[int], object], list[int]]

    def _holds(self, step: int) -> bool | None:
        function, reported = self._parts
        try:
            return bool(function(step))
        except Exception as error:  # noqa: BLE001  # a user's function must not end a training run
            if not reported:
                reported.append(step)
                import logging

                message = "selection %s failed for %d with %r: counted as not selected; said once"
                logging.getLogger("profwin").warning(message, self, step, error)
            return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and bool(self._parts[0] == other._parts[0])

    def __hash__(self) -> int:
        return hash("Call")  # the callable itself may be unhashable

    def __reduce__(self) -> tuple[object, ...]:
        return Call, (self._parts[0], [])

    def __str__(self) -> str:
        function = self._parts[0]
        return f"<{getattr(function, '__qualname__', type(function).__name__)}>"

    def text(self) -> str:
        """Raise ValueError, which says what to do instead."""
        raise ValueError(
            f"selection {self} is a callable, which cannot travel in an environment variable: write it as "
            "text such as '2,4-6,every:100', or call profwin.configure in each process"
        )


class Complement(Selection):
    """Part: what is not selected."""

    __slots__ = ()
    _parts: tuple[Selection]

    def _holds(self, step: int) -> bool | None:
        held = self._parts[0]._holds(step)
        return None if held is None else step >= 0 and not held

    def __invert__(self) -> Selection:
        return self._parts[0]

    def __str__(self) -> str:
        return "!" + _enclose(self._parts[0], ",&")


class Union(Selection):
    """Parts: two or more selections in the order of their text, at most one of them ranges."""

    __slots__ = ()
    _parts: tuple[Selection, ...]
    decisive, sign, enclosed = True, ",", ""

    def _holds(self, step: int) -> bool | None:
        held = [part._holds(step) for part in self._parts]
        return self.decisive if self.decisive in held else None if None in held else not self.decisive

    def __str__(self) -> str:
        return self.sign.join(_enclose(part, self.enclosed) for part in self._parts)

    @property
    def last(self) -> int | None:
        """The largest of the parts' largest, if each has one."""
        known = [last for part in self._parts if (last := part.last) is not None]
        return max(known) if len(known) == len(self._parts) else None


class Intersection(Union):
    """Parts: two or more selections in the order of their text."""

    __slots__ = ()
    decisive, sign, enclosed = False, "&", ","

    @property
    def last(self) -> int | None:
        """The largest number that all parts hold, searched downwards."""
        top = min((last for part in self._parts if (last := part.last) is not None), default=-1)
        try:
            self.text()
        except ValueError:
            return None
        return next((step for step in range(top, max(top - SEARCH, -1), -1) if step in self), None)


def make_ranges(pieces: Iterable[Piece]) -> Ranges:
    """Build ranges in their one reduced form; pieces whose last lies before their first are empty."""
    loose: list[tuple[int, int]] = []
    progressions: set[Piece] = set()
    for first, last, stride in pieces:
        members = (last - first) // stride + 1
        if stride == 1 and members > 0:
            loose.append((first, last))
        elif members <= SHORT:
            loose.extend((number, number) for number in range(first, last + 1, stride))
        else:
            progressions.add((first, last if last == ENDLESS else first + (members - 1) * stride, stride))
    intervals: list[tuple[int, int]] = []
    for first, last in sorted(loose):
        if intervals and first <= intervals[-1][1] + 1:
            intervals[-1] = intervals[-1][0], max(last, intervals[-1][1])
        else:
            intervals.append((first, last))
    return Ranges(tuple(intervals), tuple(sorted(progressions)))


def unite(selections: Iterable[Selection]) -> Selection:
    """Return what is in any of `selections`; in none, if there are none."""
    pieces: list[Piece] = []
    others: set[Selection] = set()
    for selection in selections:
        for part in selection._parts if type(selection) is Union else (selection,):
            if isinstance(part, Ranges):
                pieces += [(*interval, 1) for interval in part._parts[0]]
                pieces += part._parts[1]
            else:
                others.add(part)
    ranges = make_ranges(pieces)
    parts = sorted(others | ({ranges} if ranges else set()), key=str)
    return Union(*parts) if len(parts) > 1 else parts[0] if parts else ranges


def intersect(selections: Iterable[Selection]) -> Selection:
    """Return what is in each of `selections`, of which there is at least one."""
    parts: set[Selection] = set()
    for selection in selections:
        parts.update(selection._parts if isinstance(selection, Intersection) else (selection,))
    return Intersection(*sorted(parts, key=str)) if len(parts) > 1 else parts.pop()


def _enclose(selection: Selection, signs: str) -> str:
    text = str(selection)
    return f"({text})" if any(sign in text for sign in signs) else text


def _write(first: int, last: int, stride: int) -> str:
    if last == ENDLESS and first == 0:
        return "all" if stride == 1 else f"every:{stride}"
    if last == ENDLESS:
        return f"{first}-" if stride == 1 else f"{first}-/{stride}"
    return str(first) if first == last else f"{first}-{last}" if stride == 1 else f"{first}-{last}/{stride}"
