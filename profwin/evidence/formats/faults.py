"""What an error of the JSON decoder means."""

from __future__ import annotations

import re

from profwin.evidence import codes_files as codes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.finding import Code

__all__ = ["byte_of", "kind_of", "said"]

_BYTE = re.compile(r"\(byte (\d+)\)")
_NUMBER = re.compile(rb"[-+]?(?:nan|inf)", re.IGNORECASE)


def byte_of(error: Exception) -> int:
    """Return the byte that a decoder's error names; 0 if it names none."""
    match = _BYTE.search(str(error))
    return int(match[1]) if match else 0


def said(error: Exception) -> str:
    """Return a decoder's message without its byte, which counts from another place than findings do."""
    return _BYTE.sub("", str(error)).strip()


def kind_of(message: str, text: bytes, index: int) -> Code:
    """Return the code of an error at an index of a text."""
    if "UTF-8" in message:
        return codes.NOT_UTF8
    if "escape" in message or "truncated" in message:  # of a whole value: half of a character in two escapes
        return codes.INVALID_ESCAPE
    if "invalid number" in message or _NUMBER.match(text, max(index - 1, 0)) or _NUMBER.match(text, index):
        return codes.NOT_A_NUMBER
    if "invalid character" in message and 0 <= index < len(text) and text[index] < 0x20:
        return codes.CONTROL_CHARACTER
    return codes.MALFORMED
