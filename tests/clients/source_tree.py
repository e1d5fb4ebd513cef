"""A source tree that is read and never imported: what a plan's target names there, and which parameters that takes."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
    Found: TypeAlias = tuple["Module", Function | ast.ClassDef]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class MissingError(LookupError):
    """The tree has no such thing."""


@dataclass(frozen=True)
class Signature:
    """What a function of the tree takes.

    Attributes:
        home: ``module:qualname`` of its definition.
        parameters: their names, those with stars included, without the stars.
        decorators: of the function, as they are written, without their arguments.
    """

    home: str
    parameters: tuple[str, ...]
    decorators: tuple[str, ...]


class Module:
    """One module of a tree.

    Args:
        tree: that it is in.
        name: with dots.
        path: of its file.
    """

    def __init__(self, tree: SourceTree, name: str, path: Path) -> None:
        self.tree, self.name = tree, name
        self._is_package = path.name == "__init__.py"
        self._body = ast.parse(path.read_text()).body

    @cached_property
    def _names(self) -> dict[str, ast.AST]:
        """What each name is bound to at last, at the module's top level or inside of its ``if`` and ``try``."""
        found: dict[str, ast.AST] = {}
        for node in _statements(self._body):
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                found[node.name] = node
            elif isinstance(node, ast.ImportFrom):
                found.update({alias.asname or alias.name: node for alias in node.names})
        return found

    def find(self, name: str) -> Found:
        """Return the function or class that a name is, and the module that defines it."""
        node = self._names.get(name)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return self, node
        if isinstance(node, ast.ImportFrom):
            original = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
            return self.tree.module(self._origin(node)).find(original)
        raise MissingError(f"{self.name} defines and imports no {name!r}")

    def _origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parents = self.name.split(".")[: None if self._is_package and node.level == 1 else -node.level]
        if self._is_package and node.level > 1:
            parents = self.name.split(".")[: 1 - node.level]
        return ".".join([*parents, *([node.module] if node.module else [])])


class SourceTree:
    """A checkout.

    Args:
        root: the folder that would be on the module search path.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: dict[str, Module] = {}

    def module(self, name: str) -> Module:
        """Return a module by its name.

        Raises:
            MissingError: the tree has no such file.
        """
        if name not in self._modules:
            base = self.root.joinpath(*name.split("."))
            files = [path for path in (base.with_name(f"{base.name}.py"), base / "__init__.py") if path.is_file()]
            if not files:
                raise MissingError(f"there is no module {name}")
            self._modules[name] = Module(self, name, files[0])
        return self._modules[name]

    def signatures(self, target: str) -> dict[str, Signature]:
        """Return what a plan's target names: one function, or all that match its wildcards, by ``module:qualname``.

        Raises:
            MissingError: nothing.
        """
        module, _colon, qualname = target.partition(":")
        *holders, last = qualname.split(".")
        if not holders:
            return {target: self._signature(*self.module(module).find(last), "")}
        owner = self.module(module).find(holders[0])
        if len(holders) > 1 or not isinstance(owner[1], ast.ClassDef):
            raise MissingError(f"{module}:{'.'.join(holders)} is no class of a module")
        found: dict[str, Signature] = {}
        for home, kind in self._bases(owner):
            for node in kind.body:
                if isinstance(node, FUNCTIONS) and fnmatchcase(node.name, last):
                    name = f"{module}:{holders[0]}.{node.name}"
                    found.setdefault(name, self._signature(home, node, f"{kind.name}."))
        if not found:
            raise MissingError(f"{target}: neither {holders[0]} nor its bases have it")
        return found

    def attributes(self, target: str) -> set[str]:
        """Return the names that a method's instances have: set on ``self`` somewhere, or defined in the class."""
        module, _colon, qualname = target.partition(":")
        found: set[str] = set()
        for _home, kind in self._bases(self.module(module).find(qualname.partition(".")[0])):
            for node in ast.walk(kind):
                if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                    found.add(node.name)
                elif (
                    isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _name(node.value) == "self"
                ):
                    found.add(node.attr)
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    found.add(node.target.id)
        return found

    def _bases(self, found: Found) -> Iterator[tuple[Module, ast.ClassDef]]:
        """Yield a class and those of its bases that the tree has, nearest first."""
        module, kind = found
        if not isinstance(kind, ast.ClassDef):
            return
        yield module, kind
        for base in kind.bases:
            try:
                yield from self._bases(module.find(_name(base)))
            except MissingError:  # it is of another package
                continue

    def _signature(self, module: Module, node: Function | ast.ClassDef, holder: str) -> Signature:
        if isinstance(node, ast.ClassDef):
            raise MissingError(f"{module.name}:{node.name} is a class")
        args = node.args
        stars = [each for each in (args.vararg, args.kwarg) if each is not None]
        parameters = [each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs, *stars)]
        decorators = [_name(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list]
        return Signature(f"{module.name}:{holder}{node.name}", tuple(parameters), tuple(decorators))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _statements([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _statements([*node.body, *(each for handler in node.handlers for each in handler.body)])


def _name(node: ast.AST) -> str:
    """Return a name with dots; of a class with parameters in brackets, that of the class."""
    return _name(node.value) if isinstance(node, ast.Subscript) else ast.unparse(node)
