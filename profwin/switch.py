"""The one word that a decorated call reads to learn whether there is anything to do.

Decorated functions find the switch by reference: it pickles as its own name, so a function that travels to another
process by value uses that process's switch, not a copy (a copied flag can never be switched on there; measured).
"""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["SWITCH", "Switch", "compiling"]


class Switch:
    """Whether profwin is on in this process, and whether the step at hand is selected.

    Attributes:
        on: False until this process is configured with a step selection, or was started with ``PROFWIN_STEPS``.
        word: an 8-byte integer; non-zero if stages of the step at hand may have to be recorded. It lies in the step
            board, or in this process's own memory where the process knows its step itself. A ctypes word and not a
            memoryview: Dynamo traces its ``value`` and guards on it, and cannot subscript a memoryview (torch 2.13).
    """

    __slots__ = ("on", "word")

    on: bool
    word: ctypes.c_int64

    def __reduce__(self) -> str:
        return "SWITCH"


SWITCH = Switch()
# A process that inherits its settings is armed from the start: its first call reads them and sets the real word.
SWITCH.on = bool(os.environ.get("PROFWIN_STEPS"))
SWITCH.word = ctypes.c_int64(1)


def compiling() -> bool:
    """Say whether Dynamo is tracing this call; it then takes the undecorated path. Never imports torch."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "compiler") and bool(torch.compiler.is_compiling())
