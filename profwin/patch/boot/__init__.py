"""The folder that ``profwin run`` puts first on PYTHONPATH: what a Python process runs before its own program.

Its modules import nothing of profwin until a module with targets is loaded, since profwin may not be importable there.
All programs of the environment can import them, so they have names of their own. They are one module each, whichever of
its two names (``profwin_finder``, ``profwin.patch.boot.profwin_finder``) it was imported by first.
"""

from __future__ import annotations

import sys
from importlib import import_module

__all__: list[str] = []

for _name in ("profwin_finder", "profwin_boot"):
    _module = sys.modules.get(_name)
    if _module is None:
        _module = sys.modules[_name] = import_module(f"{__name__}.{_name}")
    sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _module
