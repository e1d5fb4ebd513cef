"""Markup: text, figures and tables of the report's page. Whatever comes from a file is escaped here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from profwin.evidence.escaping import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["NONE", "Unit", "counted", "percent", "seconds", "table", "text"]

SPACE = "\N{NO-BREAK SPACE}"
NONE = "\N{EN DASH}"
"""What stands for nothing and for what is not known."""


def text(value: object, longest: int = 120) -> str:
    """Return a text as HTML, safe in an element and in a quoted attribute."""
    return escape(printable(str(value), longest), quote=True)


def percent(share: float) -> str:
    """Return a share as text: whole per cent, and none as a dash."""
    if share <= 0:
        return NONE
    return f"&lt;1{SPACE}%" if share < 0.01 else f"{share * 100:.0f}{SPACE}%"


def seconds(time: int) -> str:
    """Return nanoseconds as text, in three figures or so."""
    if not time:
        return "0"
    if abs(time) >= 10**13:
        return f"{time / 3.6e12:.1f}{SPACE}h"
    for size, digits, unit in ((10**11, 0, "s"), (10**10, 1, "s"), (10**9, 2, "s"), (10**7, 0, "ms"), (0, 1, "ms")):
        if abs(time) >= size:
            return f"{time / (1e9 if unit == 's' else 1e6):.{digits}f}{SPACE}{unit}"
    raise AssertionError(time)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class Unit:
    """A unit in which the times of one table are shown, so that its columns can be compared.

    Attributes:
        name: ``"s"`` or ``"ms"``.
        size: in nanoseconds.
        digits: after the point.
    """

    name: str
    size: float
    digits: int

    @classmethod
    def of(cls, times: Iterable[int]) -> Unit:
        """Return the unit that suits the longest time."""
        longest = max((abs(time) for time in times), default=0)
        if longest < 10**9:
            return cls("ms", 1e6, 1)
        return cls("s", 1e9, 2 if longest < 10**11 else 1)

    def show(self, time: int | None) -> str:
        """Return a time in this unit; none and nothing as a dash."""
        if not time:
            return NONE
        least = 10**-self.digits
        return (
            f"{time / self.size:.{self.digits}f}"
            if abs(time) / self.size >= least / 2
            else f"&lt;{least:.{self.digits}f}"
        )


def table(caption: str, headers: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[int] = ()) -> str:
    """Return a table; the first cell of a row is its heading.

    Args:
        caption: HTML, like all cells.
        headers: of the columns.
        rows: of cells.
        words: columns of text beside the first; the others are figures and stand to the right.
    """
    left = {0, *words}
    kinds = ["" if index in left else ' class="n"' for index in range(len(headers))]
    head = "".join(f'<th scope="col"{kind}>{header}</th>' for kind, header in zip(kinds, headers, strict=True))
    lines = []
    for row in rows:
        cells = "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds[1:], row[1:], strict=True))
        lines.append(f'<tr><th scope="row">{row[0]}</th>{cells}</tr>')
    return (
        f'<div class="wide" tabindex="0" role="group" aria-label="{_plain(caption)}"><table>'
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>\n"
        + "\n".join(lines)
        + "\n</tbody></table></div>\n"
    )


def _plain(caption: str) -> str:
    """Return a caption without its tags, for an attribute."""
    return re.sub(r"<[^>]*>", "", caption)
