"""The finder of this process and its hooks, for the package: the one that boot has put in, if it has.

Both lie in the folder ``boot``, which needs nothing of the package, since it runs where that may not be importable.
"""

from __future__ import annotations

from profwin.patch.boot import profwin_boot as boot
from profwin.patch.boot.profwin_finder import FINDER, Finder

__all__ = ["FINDER", "Finder", "boot"]
