"""Post-import hooks: functions that are called with a module whenever it has been loaded.

Imports nothing (but ``__future__``). The one finder stands first on ``sys.meta_path``, as long as there are hooks; it
finds a module that is watched through all the others, and puts a proxy around its loader. The proxy passes every
attribute through, and is gone from the module before its body runs.
"""

from __future__ import annotations

import sys
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any, TypeAlias

    Hook: TypeAlias = Callable[[ModuleType], object]
    Compiler: TypeAlias = Callable[[Any, str], CodeType | None]

__all__ = ["FINDER", "Finder"]


class Finder:
    """A meta path finder for the modules that are watched.

    Attributes:
        compiler: called with the loader and the name of a watched module that is to run as ``__main__`` (what runpy
            does, and nothing that imports); returns its code, or None for the one that the loader has.
    """

    def __init__(self) -> None:
        self.compiler: Compiler | None = None
        self._hooks: dict[str, list[Hook]] = {}
        self._finding: set[tuple[str, int]] = set()

    def watch(self, names: Iterable[str], hook: Hook | None = None) -> None:
        """Call a hook with each of these modules when it has been loaded, again when it is reloaded, or now.

        The hook runs in the thread that imports, after the module's body and before the ``import`` returns. What it
        raises is logged and the import stands, but for profwin's own errors (those are raised under ``strict`` only).

        Args:
            names: absolute names of modules.
            hook: None: the module is only to run through `compiler`, should it be ``__main__``.
        """
        names = list(names)
        for name in names:
            hooks = self._hooks.setdefault(name, [])
            if hook is not None and hook not in hooks:
                hooks.append(hook)
        if names and self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        for name in names:
            module = sys.modules.get(name)
            if hook is not None and module is not None:
                _call(hook, name, module)

    def unwatch(self, hook: Hook | None = None) -> None:
        """Forget a hook on all modules, or all hooks; without any, the finder leaves ``sys.meta_path``."""
        for name, hooks in list(self._hooks.items()):
            if hook is None or hooks == [hook]:
                del self._hooks[name]
            elif hook in hooks:
                hooks.remove(hook)
        if not self._hooks and self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a watched module through the other finders; None for any other module."""
        if name not in self._hooks:
            return None
        finding = (name, get_ident())
        if finding in self._finding:  # another tool's finder asks all finders, us too, while we ask it
            return None
        self._finding.add(finding)
        try:
            spec = self._find(name, path, target)
        finally:
            self._finding.discard(finding)
        # A namespace package has no loader and no code that could hold a target.
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            proxy: Any = _Loader(self, spec, spec.loader, name)
            spec.loader = proxy
        return spec

    def loaded(self, name: str, module: ModuleType) -> None:
        """Call the hooks of a module that has just been loaded."""
        for hook in list(self._hooks.get(name, ())):
            _call(hook, name, module)

    def code(self, loader: Any, name: str) -> CodeType | None:
        """Return the code of a module that is to run as ``__main__``."""
        if self.compiler is not None and name in self._hooks:
            try:
                code = self.compiler(loader, name)
            except Exception as error:
                if _raised_on_purpose(error):
                    raise
                _said(name, error)
            else:
                if code is not None:
                    return code
        plain: CodeType | None = loader.get_code(name)
        return plain

    def _find(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None:
                spec: ModuleSpec | None = find(name, path, target)
                if spec is not None:
                    return spec
        return None


class _Loader:
    """A loader as it is, but for what follows the execution of its module, and for the code that runpy asks it for."""

    def __init__(self, finder: Finder, spec: ModuleSpec, loader: Any, name: str) -> None:
        self._profwin = (finder, spec, loader, name)

    @property  # type: ignore[misc]  # isinstance() and __class__ tell what they tell of the loader
    def __class__(self) -> type:
        return type(self._profwin[2])

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._profwin[2], attribute)

    def exec_module(self, module: ModuleType) -> None:
        finder, spec, loader, name = self._profwin
        spec.loader = loader
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = loader
        loader.exec_module(module)
        finder.loaded(name, sys.modules.get(name, module))

    def get_code(self, name: str) -> CodeType | None:
        finder, spec, loader, _name = self._profwin
        spec.loader = loader  # runpy puts it into __main__ next
        return finder.code(loader, name)


def _call(hook: Hook, name: str, module: ModuleType) -> None:
    try:
        hook(module)
    except Exception as error:
        if _raised_on_purpose(error):
            raise
        _said(name, error)


def _raised_on_purpose(error: Exception) -> bool:
    return type(error).__module__ == "profwin.errors"  # under strict only


def _said(name: str, error: Exception) -> None:
    import logging

    logging.getLogger("profwin").warning(
        "profwin: %s is not patched, the program goes on: %s: %s", name, type(error).__name__, error
    )


FINDER = Finder()
"""The finder of this process."""
