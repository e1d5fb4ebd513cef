"""One event of a JSON trace, as far as it matters here, and its numbers without a float in between."""

from __future__ import annotations

import re
from typing import Any  # msgspec needs it when it runs

import msgspec

__all__ = ["DECODER", "Arguments", "Event", "all_nanoseconds", "lenient", "nanoseconds", "plain"]

LONGEST = 40
"""Digits of a number that can still be a time."""
LARGEST = 1 << 62
"""About 146 years in nanoseconds; larger is no time."""

_USUAL = re.compile(rb"(?:\d{1,15}\.\d{3}\n)*")


class Arguments(msgspec.Struct, gc=False):
    """What is looked at of an event's ``args``, of any type: users put there what they like."""

    device: Any = None
    correlation: Any = None
    name: Any = None
    labels: Any = None


class Event(msgspec.Struct, gc=False):
    """One event; numbers and identifiers stay text, as in the file, since epoch times do not fit a float.

    Fields have the order in which they are written, as a rule: then none is searched for.
    """

    ph: str = ""
    id: msgspec.Raw = msgspec.Raw(b"")
    cat: str = ""
    name: str = ""
    pid: msgspec.Raw = msgspec.Raw(b"")
    tid: msgspec.Raw = msgspec.Raw(b"")
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")
    args: Arguments | None = None


DECODER = msgspec.json.Decoder(list[Event])


def lenient(text: bytes) -> Event | None:
    """Decode an event that has fields of other types than expected; None if it is no object at all."""
    value: Any = msgspec.json.decode(text)
    if not isinstance(value, dict):
        return None
    raw = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    event = Event()
    for name in ("ph", "cat", "name"):
        if isinstance(value.get(name), str):
            setattr(event, name, value[name])
    for name in ("ts", "dur", "pid", "tid", "id"):
        if name in raw:
            setattr(event, name, raw[name])
    arguments = value.get("args")
    if isinstance(arguments, dict):
        event.args = Arguments(**{name: arguments.get(name) for name in Arguments.__struct_fields__})
    return event


def nanoseconds(number: bytes) -> int:
    """Return microseconds, as a trace writes them, in whole nanoseconds; what is below a nanosecond is cut off.

    Raises:
        ValueError: it is no number.
        OverflowError: it is too large to be a time.
    """
    if number[:1] == b'"':
        number = number[1:-1].strip()  # some writers put times in quotes
    if len(number) > LONGEST:
        raise OverflowError(f"{len(number)} characters are no time")
    whole, _, fraction = number.partition(b".")
    try:
        if fraction.isdigit():
            value = int(whole + (fraction + b"00")[:3])
        elif not fraction and b"e" not in whole and b"E" not in whole:
            value = int(whole) * 1000
        else:
            value = _with_exponent(number)
    except ValueError:
        raise ValueError("a time is no number") from None
    if not -LARGEST < value < LARGEST:
        raise OverflowError("a time is too large")
    return value


def all_nanoseconds(numbers: list[msgspec.Raw]) -> list[int] | None:
    """Return what `nanoseconds` makes of each number, if all are as today's writers write them; else None."""
    joined = b"\n".join([*numbers, b""])
    if not _USUAL.fullmatch(joined):
        return None
    return [int(number) for number in joined.replace(b".", b"").split()]


def _with_exponent(number: bytes) -> int:
    mantissa, _, exponent = number.lower().partition(b"e")
    whole, _, fraction = mantissa.partition(b".")
    digits = int(whole + fraction)
    shift = int(exponent) - len(fraction) + 3
    if shift > LONGEST and digits:
        raise OverflowError("a time is too large")
    if shift >= 0:
        return digits * int(10 ** min(shift, LONGEST))
    size = abs(digits) // int(10 ** min(-shift, LONGEST))
    return -size if digits < 0 else size


def plain(raw: bytes) -> str:
    """Return an identifier (number or text in JSON) as text."""
    if raw[:1] == b'"':
        try:
            return str(msgspec.json.decode(raw))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    return raw.decode("utf-8", "replace")
