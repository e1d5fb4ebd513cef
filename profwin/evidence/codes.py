"""All codes of findings, gathered from the modules ``codes_*`` where each part of the evidence defines its own."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from profwin.evidence.finding import SEVERITIES, Code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

__all__ = ["CODES", "merge"]

_PACKAGES = ("profwin.evidence", "profwin.evidence.formats")
_PREFIX = "codes_"


def merge(modules: Iterable[ModuleType]) -> dict[str, Code]:
    """Return the codes that modules hold as constants, by their names in alphabetical order.

    Raises:
        ValueError: two codes have one name, or a severity is unknown.
    """
    codes: dict[str, Code] = {}
    for module in modules:
        for code in vars(module).values():
            if not isinstance(code, Code):
                continue
            if code.severity not in SEVERITIES:
                raise ValueError(f"{module.__name__}: {code.name}: the severity {code.severity!r} is unknown")
            # The same constant may be imported from one module into another; two constants are a mistake.
            if codes.setdefault(code.name, code) is not code:
                raise ValueError(f"{module.__name__}: {code.name}: there is another code of this name")
    return {name: codes[name] for name in sorted(codes)}


def _modules() -> Iterable[ModuleType]:
    for package in _PACKAGES:
        for found in iter_modules(import_module(package).__path__):
            if found.name.startswith(_PREFIX):
                yield import_module(f"{package}.{found.name}")


CODES: dict[str, Code] = merge(_modules())
"""Every code by its name."""
