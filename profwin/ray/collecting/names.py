"""The names of files that come from elsewhere: which may be made below a folder, and what else a file may be called."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DEEPEST", "MARKER", "PART", "beside", "checked"]

DEEPEST = 64
"""Folders in one path; as deep as `profwin check` looks."""
PART = ".part"
"""What the name of an unfinished file ends in."""
MARKER = ".profwin-collect-"
"""What the name of the file begins with that shows whether two folders are one."""
_LONGEST = 255


def checked(path: object) -> tuple[str, ...]:
    """Return the parts of a path that stays below the folder that it is made in.

    Args:
        path: relative, with slashes, as another machine says it; bytes that are no UTF-8 are surrogates.

    Raises:
        ValueError: it does not stay there, or is no name of a file; in words.
    """
    if not isinstance(path, str) or not path:
        raise ValueError("not a name")
    if "\0" in path:
        raise ValueError("it has a NUL in it")
    if path.startswith("/"):
        raise ValueError("it is absolute")
    parts = tuple(path.split("/"))
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError("it leaves the folder, or is not in its plain form")
    if len(parts) > DEEPEST:
        raise ValueError(f"it is more than {DEEPEST} folders deep")
    try:
        longest = max(len(os.fsencode(part)) for part in parts)
    except UnicodeEncodeError:
        raise ValueError("it cannot be written in this system's encoding") from None
    if longest > _LONGEST:
        raise ValueError(f"a part of it is longer than {_LONGEST} bytes")
    if parts[-1].endswith(PART):
        raise ValueError(f"names with {PART} at their end are those of unfinished files")
    return parts


def beside(name: str, tag: str) -> Iterator[str]:
    """Yield a file's name, and others for a file whose own is taken: ``a~host.jsonl``, ``a~host-2.jsonl``.

    Extensions stay, so that journals are still found.
    """
    yield name
    head, dot, tail = name[1:].partition(".")
    head = name[0] + head
    yield f"{head}~{tag}{dot}{tail}"
    number = 2
    while True:
        yield f"{head}~{tag}-{number}{dot}{tail}"
        number += 1
