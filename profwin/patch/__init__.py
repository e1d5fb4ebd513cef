"""profwin.patch: follow a plan that says what the callables of a program are, without an edit of the program.

::

    import profwin.patch

    profwin.patch.install("trl")
    ...
    profwin.patch.uninstall()

``profwin run --plan trl -- COMMAND`` does the same to a command and its children. Importing this package imports
nothing else: each name is loaded when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.patch.installation import install, uninstall
    from profwin.patch.plan import Plan
    from profwin.patch.reading import read_plan, shipped

_HOMES = {
    "Plan": "plan",
    "install": "installation",
    "read_plan": "reading",
    "shipped": "reading",
    "uninstall": "installation",
}

__all__ = ["Plan", "install", "read_plan", "shipped", "uninstall"]

if not TYPE_CHECKING:  # a type checker sees the imports above, and that nothing else exists

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'profwin.patch' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"profwin.patch.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
