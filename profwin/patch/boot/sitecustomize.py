"""What Python's ``site`` imports at the start of a process: first profwin's boot, then the user's own sitecustomize.

In this order, because an error in theirs would else cost us our start (measured). ``site`` itself imports theirs, as if
ours were not there: what it prints, and what it lets pass, is what it prints and lets pass without us.
"""

from __future__ import annotations

import sys

__all__: list[str] = []


def _chain() -> None:
    """Have ``site`` import the sitecustomize that this one stands in front of; it takes this one's place."""
    own = sys.modules[__name__]
    folder = __file__.rpartition("/")[0]
    if folder not in sys.path:
        return
    index = sys.path.index(folder)
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    del sys.modules[__name__]
    try:
        sys.modules["site"].execsitecustomize()
    finally:
        sys.path.insert(min(index, len(sys.path)), folder)
        sys.modules.setdefault(__name__, own)


if __name__ == "sitecustomize" and not hasattr(sys, "_profwin_boot"):
    sys._profwin_boot = True  # type: ignore[attr-defined]  # once a process, whatever else chains to us
    try:
        from profwin_boot import start  # type: ignore[import-not-found]  # it is on PYTHONPATH

        start()
    except Exception:  # noqa: BLE001  # the program starts, whatever is wrong with us; nothing can be said yet
        pass
    _chain()
