"""Lines: a journal read line by line, into records, and never trusted."""

from __future__ import annotations

import msgspec

from profwin.evidence.file import open_regular
from profwin.evidence.records import Known, Record
from profwin.journal import FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LONGEST_LINE", "read_records"]

LONGEST_LINE = 1 << 20
"""Bytes of the longest line that is taken for a record; profwin writes none of a hundredth of that."""

_STRICT = msgspec.json.Decoder(Known)
_LOOSE = msgspec.json.Decoder()


def read_records(path: str, report: Callable[[str, int, str], None]) -> Iterator[tuple[int, int, Record]]:
    """Yield the number of each line, its length and its record, in file order and fixed memory.

    Args:
        path: of the file.
        report: called with a word, the number of the line, and what is wrong, for each line that is not yielded as it
            stands: ``"torn"`` (not JSON), ``"foreign"`` (JSON, but no record), ``"wrong"`` (a known kind with missing
            or wrong fields), ``"kind"`` and ``"field"`` (unknown ones: of a newer version), ``"cut"`` (the last line
            has no newline, as a killed process's may).

    Raises:
        OSError: the file cannot be read.
    """
    with open_regular(path) as file:
        number, skipping = 0, False
        while line := file.readline(LONGEST_LINE):
            number += not skipping
            whole = line.endswith(b"\n")
            if skipping or (not whole and len(line) == LONGEST_LINE):
                if not skipping:
                    report("torn", number, f"a line of over {LONGEST_LINE} bytes")
                skipping = not whole
                continue
            if not whole:
                report("cut", number, f"{len(line)} bytes without a newline at the end")
                return
            try:
                yield number, len(line), _STRICT.decode(line)
            except (msgspec.ValidationError, msgspec.DecodeError, UnicodeError, RecursionError):
                record = _again(line, number, report)
                if record is not None:
                    yield number, len(line), record


def _again(line: bytes, number: int, report: Callable[[str, int, str], None]) -> Record | None:
    """Say what is wrong with a line, and return what of it can be used."""
    try:
        value = _LOOSE.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        report("torn", number, str(error))
        return None
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        report("foreign", number, "no object with a kind")
        return None
    kind = value["kind"]
    if kind not in FIELDS:
        report("kind", number, kind)
        return None
    known = {"kind", "t", *FIELDS[kind]}
    unknown = [name for name in value if name not in known]
    try:
        # A field that is null counts as left out.
        record: Record = msgspec.convert({key: value[key] for key in known if value.get(key) is not None}, Known)
    except (msgspec.ValidationError, RecursionError) as error:
        report("wrong", number, f"{kind}: {error}")
        return None
    if unknown:
        report("field", number, f"{kind}: {', '.join(sorted(unknown)[:5])}")
    return record
