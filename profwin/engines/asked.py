"""What a server was asked to record."""

from __future__ import annotations

import os
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["Asked", "new_token"]


@dataclass
class Asked:
    """One window that a server was asked to record.

    Attributes:
        token: what the names of its files contain, and no other file's.
        window: which window it is, in words.
        directory: where the server writes; None where that is not known.
        leaves_files: whether it writes traces; not where its profiler is one for Nsight Systems, which writes them.
        alone: whether nothing else is in that directory, which is then removed in the end.
        processes: the server's; empty where they cannot be seen from here.
        confirmed: wall clock in nanoseconds when its stop was confirmed; 0: it was not.
    """

    token: str
    window: str
    directory: str | None
    processes: tuple[int, ...]
    confirmed: int = 0
    alone: bool = False
    leaves_files: bool = True

    def tidy(self) -> None:
        """Remove the directory that was made for this window alone, if nothing is left in it."""
        if self.alone and self.directory is not None:
            try:
                os.rmdir(self.directory)
            except OSError:
                pass  # something is left in it


def new_token(metadata: Mapping[str, Any]) -> str:
    """Return what the names of a window's files are to contain: step and name, in plain characters, and chance."""
    plain = "".join(char if char.isascii() and char.isalnum() else "_" for char in str(metadata.get("name")))[:40]
    return f"step{metadata.get('step')}_{plain}_{os.urandom(4).hex()}"
