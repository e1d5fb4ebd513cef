"""Which steps, ranks, roles and stages are recorded: values, written as text or built in code.

Steps and ranks share one small grammar (blanks around items are ignored)::

    selection = term { "," term }          any of them
    term      = factor { "&" factor }      all of them
    factor    = "!" factor | "(" selection ")" | item
    item      = N | N-M | N- | N-M/K | N-/K | every:K | all | none

``4-6`` includes both ends, ``7-`` has no end, ``10-100/30`` is 10, 40, 70, 100; ``every:100`` is ``0-/100``.
Names (roles, stages) are selected by globs instead; see `names`.
"""

from __future__ import annotations

from operator import index

from profwin.errors import SettingError
from profwin.numberset import ENDLESS, Call, Selection, Value, intersect, make_ranges, unite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias

    SelectionLike: TypeAlias = "Selection | str | int | Iterable[int] | Callable[[int], object]"
    NamesLike: TypeAlias = "Names | str | Iterable[str]"

__all__ = [
    "Names",
    "Selection",
    "every",
    "names",
    "parse_names",
    "parse_ranks",
    "parse_steps",
    "ranks",
    "steps",
]

LONGEST_ITERABLE = 1_000_000
DEEPEST = 50
ALLOWED = "numbers and ranges such as '2,4-6,every:100' (also '7-', '10-100/30', '!5', '&', '()', 'all', 'none')"


class Names(Value):
    """A set of names; parts: sorted globs, those that exclude beginning with ``!``. Made with `names`."""

    __slots__ = ()
    _parts: tuple[str, ...]

    def __contains__(self, name: object) -> bool:
        from fnmatch import fnmatchcase

        if not isinstance(name, str):
            return False
        wanted = [glob for glob in self._parts if glob[0] != "!"] or ["*"]
        excluded = [glob[1:] for glob in self._parts if glob[0] == "!"]
        return any(fnmatchcase(name, glob) for glob in wanted) and not any(fnmatchcase(name, glob) for glob in excluded)

    def __str__(self) -> str:
        return ",".join(self._parts)

    def __repr__(self) -> str:
        return f"names({str(self)!r})"


def steps(*values: SelectionLike) -> Selection:
    """Select steps: any of `values`: each a text, a number, an iterable of numbers, a callable, a selection.

    A callable is asked with the step, in whichever thread begins it. One that raises counts as not selected,
    also under ``~``, and is reported once, as a warning of the logger "profwin".

    Raises:
        SettingError: a value is malformed; it names the value and what is allowed.
    """
    return unite([_read_numbers(value, "steps") for value in values])


def ranks(*values: SelectionLike) -> Selection:
    """Select ranks; as `steps`."""
    return unite([_read_numbers(value, "ranks") for value in values])


def every(interval: int, start: int = 0) -> Selection:
    """Select `start` (0 or more) and each `interval`-th (1 or more) step after it, without end.

    Raises:
        SettingError: a value is no integer, or out of range.
    """
    return _read_numbers(f"{start}-/{interval}", "every")


def names(*patterns: NamesLike) -> Names:
    """Select names by globs (``*``, ``?``, ``[...]``; case counts), in one text with commas or in several.

    A name is selected if a pattern matches it (or all patterns exclude), and no pattern after a ``!`` does.

    Raises:
        SettingError: there is no pattern, or an empty one.
    """
    return _read_names(patterns, "names")


def parse_steps(value: SelectionLike | None, setting: str = "steps") -> Selection | None:
    """Read a setting; None and blank text are None, which is off. Raises SettingError naming `setting`."""
    return None if value is None or _blank(value) else _read_numbers(value, setting)


def parse_ranks(value: SelectionLike | None, setting: str = "ranks") -> Selection:
    """Read a setting; None and blank text are every rank. Raises SettingError naming `setting`."""
    return _read_numbers("all" if value is None or _blank(value) else value, setting)


def parse_names(value: NamesLike | None, setting: str = "names") -> Names:
    """Read a setting; None and blank text are every name. Raises SettingError naming `setting`."""
    return _read_names(("*" if value is None or _blank(value) else value,), setting)


def _blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()


def _read_names(values: Iterable[NamesLike], setting: str) -> Names:
    globs: set[str] = set()
    try:
        for value in values:
            given = value._parts if isinstance(value, Names) else (value,) if isinstance(value, str) else value
            pieces = [piece.strip() for text in given for piece in text.split(",")]
            globs.update("!" + piece[1:].strip() if piece.startswith("!") else piece for piece in pieces)
    except (TypeError, AttributeError):  # a number, or an iterable of something that is no text
        globs.clear()
    if not globs or {"", "!"} & globs:
        raise SettingError(setting, values, "names or globs such as 'actor_*,!actor_init', none of them empty")
    return Names(*sorted(globs))


def _read_numbers(value: object, setting: str) -> Selection:
    if isinstance(value, Selection):
        return value
    try:
        if isinstance(value, str):
            return _parse(value)
        if isinstance(value, range):
            ends = value if value.step > 0 else value[::-1]
            return make_ranges([(_check(ends[0]), _check(ends[-1]), ends.step)] if ends else [])
        if hasattr(value, "__iter__") and not _is_number(value):
            return make_ranges((number, number, 1) for number in _take(value.__iter__()))
        if callable(value):
            return Call(value, [])
        number = _check(value)
        return make_ranges([(number, number, 1)])
    except ValueError as error:
        raise SettingError(setting, value, f"{ALLOWED}: {error}") from None


def _take(values: Iterator[object]) -> Iterator[int]:
    for count, value in enumerate(values):
        if count == LONGEST_ITERABLE:
            raise ValueError(f"it holds more than {LONGEST_ITERABLE} numbers: give a range or a callable")
        yield _check(value)


def _is_number(value: object) -> bool:
    try:
        index(value)  # type: ignore[arg-type]  # its TypeError is the answer; arrays have the method and refuse
    except TypeError:
        return False
    return True


def _check(value: object) -> int:
    if isinstance(value, bool) or not _is_number(value):
        raise ValueError(f"{value!r} is no integer")
    number = index(value)  # type: ignore[arg-type]  # checked above
    if not 0 <= number <= ENDLESS:
        raise ValueError(f"{number} is below 0" if number < 0 else f"{number} is beyond 2**63 - 1")
    return number


def _parse(text: str) -> Selection:
    spaced = text
    for sign in ",&!()":
        spaced = spaced.replace(sign, f"\n{sign}\n")
    tokens = [token for piece in reversed(spaced.split("\n")) if (token := piece.strip())]
    selection = _any_of(tokens, 0)
    if tokens:
        raise ValueError(f"{tokens[-1]!r} is out of place")
    return selection


def _any_of(tokens: list[str], depth: int) -> Selection:
    terms = [_all_of(tokens, depth)]
    while tokens and tokens[-1] == ",":
        tokens.pop()
        terms.append(_all_of(tokens, depth))
    return unite(terms)


def _all_of(tokens: list[str], depth: int) -> Selection:
    factors = [_factor(tokens, depth)]
    while tokens and tokens[-1] == "&":
        tokens.pop()
        factors.append(_factor(tokens, depth))
    return intersect(factors)


def _factor(tokens: list[str], depth: int) -> Selection:
    if depth > DEEPEST:
        raise ValueError(f"it is nested more than {DEEPEST} deep")
    token = tokens.pop() if tokens else ""
    if token == "!":
        return ~_factor(tokens, depth + 1)
    if token == "(":
        selection = _any_of(tokens, depth + 1)
        if not tokens or tokens.pop() != ")":
            raise ValueError("a ')' is missing")
        return selection
    return _item(token)


def _item(token: str) -> Selection:
    if token in ("", ",", "&", ")"):
        raise ValueError("an item is empty")
    if token in ("all", "none"):
        return make_ranges([(0, ENDLESS, 1)] if token == "all" else [])
    if token.startswith("every:"):
        token = "0-/" + token.removeprefix("every:").strip()
    bounds, slash, interval = token.partition("/")
    low, dash, high = bounds.partition("-")
    if slash and not dash:
        raise ValueError(f"{token!r} needs a range before its '/'")
    if dash and not low.strip():
        raise ValueError(f"{token!r} is negative")
    first = _number(low)
    last = first if not dash else _number(high) if high.strip() else ENDLESS
    stride = _number(interval) if slash else 1
    if last < first:
        raise ValueError(f"{token!r} runs backwards")
    if stride == 0:
        raise ValueError("an interval of 0")
    return make_ranges([(first, last, stride)])


def _number(text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise ValueError(f"{digits!r} is no number from 0 to 2**63 - 1")
    return _check(int(digits))
