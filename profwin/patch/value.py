"""Values of a call: the paths of a plan, compiled once for a target and read when a call is made.

A path begins at a parameter of the target, or at ``return``, and goes on by attributes, keys of mappings and indices
of sequences. Nothing is ever evaluated. What is compiled here pickles, since wrappers travel to other processes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    from profwin.patch.plan import Condition, Value

    Arguments: TypeAlias = tuple[Any, ...]
    Keywords: TypeAlias = dict[str, Any]
    Reading: TypeAlias = tuple[int, str, Any]
    """Where an argument stands in a call: its position or -1, its keyword, its default or `MISSING`."""

__all__ = ["MISSING", "Check", "Parameters", "PathError", "Reader", "checks", "plain"]


class _Missing:
    __slots__ = ()

    def __reduce__(self) -> str:
        return "MISSING"


MISSING = _Missing()
"""Stands for no value, where None is one."""

# Positions that stand for the parameters that take what is left over.
_REST, _KEYWORDS = -2, -3


class PathError(LookupError):
    """A path leads nowhere in this call; the message says where it ended."""


class Parameters:
    """The parameters of a target: where its calls have the arguments that paths begin at.

    Args:
        target: the function that is called, as the class or module holds it, without a descriptor around it.
    """

    def __init__(self, target: Callable[..., Any]) -> None:
        import inspect

        self._found: dict[str, Reading] = {}
        self._open = False
        try:
            signature = inspect.signature(target)
        except (TypeError, ValueError):  # written in C, and it does not say
            self._open = True
            return
        for index, (name, parameter) in enumerate(signature.parameters.items()):
            default = MISSING if parameter.default is parameter.empty else parameter.default
            if parameter.kind is parameter.VAR_POSITIONAL:
                self._found[name] = (_REST, name, index)
            elif parameter.kind is parameter.VAR_KEYWORD:
                self._found[name] = (_KEYWORDS, name, frozenset(self._found))
                self._open = True
            else:
                self._found[name] = (-1 if parameter.kind is parameter.KEYWORD_ONLY else index, name, default)

    def reading(self, name: str) -> Reading:
        """Return where the argument of a name stands in a call; one that may only come by keyword has no position.

        Raises:
            PathError: the target has no such parameter.
        """
        found = self._found.get(name)
        if found is not None:
            return found
        if not self._open:
            raise PathError(f"there is no parameter {name!r}, only {', '.join(self._found) or 'none'}")
        return -1, name, MISSING


class Reader:
    """Reads one value of a plan from a call.

    Args:
        value: from the plan; a `Condition` has a path alone.
        parameters: of the target.

    Raises:
        PathError: the target has no such parameter.
    """

    __slots__ = ("_checks", "_default", "_fallback", "_index", "_map", "_name", "_parts", "_path", "_plus", "_prefix")

    def __init__(self, value: Value | Condition, parameters: Parameters) -> None:
        first, *parts = value.parts
        self._path, self._parts = value.path, tuple(parts)
        self._plus: int = getattr(value, "plus", 0)
        self._map: dict[str, Any] = dict(getattr(value, "map", ()))
        self._prefix: str = getattr(value, "prefix", "")
        self._fallback: object = getattr(value, "default", None)
        self._checks = checks(getattr(value, "when", ()), getattr(value, "unless", ()), parameters)
        self._index: int
        self._name: str
        self._default: Any
        self._index, self._name, self._default = parameters.reading(first) if first != "return" else (-1, first, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        for name, value in zip(self.__slots__, state, strict=True):
            setattr(self, name, value)

    @property
    def of_result(self) -> bool:
        """Whether the path begins at what the call returned."""
        return self._name == "return"

    def __call__(self, args: Arguments, kwargs: Keywords, result: object = MISSING) -> Any:
        """Return the value; None where its conditions do not hold; of a list that is mapped, what has an entry.

        Raises:
            PathError: the path leads nowhere in this call, or the value has no entry in the map or takes no ``plus``.
        """
        if self._checks and not all(check(args, kwargs, result) for check in self._checks):
            return None
        found = self._argument(args, kwargs, result)
        for part in self._parts:
            found = _part(found, part, self._path)
        if self._map or self._prefix or self._fallback is not None:
            return self._changed(plain(found))
        if not self._plus:
            return found
        try:
            return found + self._plus
        except Exception as error:
            raise PathError(f"{self._path} is {found!r}, to which {self._plus} cannot be added") from error

    def _changed(self, found: Any) -> Any:
        if found is None or (isinstance(found, list | tuple | str) and not found):
            return self._fallback
        if self._map:
            found = self._mapped(found)
        if not self._prefix:
            return found
        if isinstance(found, list | tuple):
            return [f"{self._prefix}{each}" for each in found]
        return f"{self._prefix}{found}"

    def _mapped(self, found: Any) -> Any:
        if isinstance(found, list | tuple):
            return [self._map[text] for each in found if (text := _text(each)) in self._map]
        text = _text(found)
        if text not in self._map:
            raise PathError(f"{self._path} is {found!r}, which has no entry in the map")
        return self._map[text]

    def _argument(self, args: Arguments, kwargs: Keywords, result: object) -> Any:
        index, name = self._index, self._name
        if 0 <= index < len(args):
            return args[index]
        if name == "return":
            found = result
        elif index == _REST:
            return args[self._default :]
        elif index == _KEYWORDS:
            return {key: value for key, value in kwargs.items() if key not in self._default}
        else:
            found = kwargs.get(name, self._default)
        if found is MISSING:
            raise PathError(f"{self._path}: the call has no {name!r}")
        return found


def _text(found: object) -> str:
    return str(found).lower() if isinstance(found, bool) else str(found)


def _part(found: Any, part: str, path: str) -> Any:
    """Return one part of an object: the entry of a mapping or sequence, else the attribute."""
    try:
        number = int(part) if part.isdecimal() else None
        if isinstance(found, Mapping):
            if part in found:
                return found[part]
            if number is not None:
                return found[number]
        elif number is not None:
            return found[number]
        return getattr(found, part)
    except Exception as error:  # a property or a lazy configuration may raise anything
        kind, reason = type(found).__name__, str(error).partition("\n")[0]
        raise PathError(f"{path}: {part!r} was not found in a {kind}: {type(error).__name__}: {reason}") from error


class Check:
    """Says whether a condition of a plan holds for a call.

    Args:
        condition: from the plan.
        parameters: of the target.
        wanted: False for a condition that must not hold.

    Raises:
        PathError: the target has no such parameter.
    """

    __slots__ = ("_among", "_wanted", "reader")

    def __init__(self, condition: Condition, parameters: Parameters, *, wanted: bool) -> None:
        self.reader = Reader(condition, parameters)
        self._among, self._wanted = condition.among, wanted

    def __getstate__(self) -> tuple[Any, ...]:
        return self._among, self._wanted, self.reader

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._among, self._wanted, self.reader = state

    def __call__(self, args: Arguments, kwargs: Keywords, result: object = MISSING) -> bool:
        """Return whether it is as wanted.

        Raises:
            PathError: the path leads nowhere in this call, or what it leads to is neither true nor false.
        """
        found = self.reader(args, kwargs, result)
        try:
            if self._among is None:
                held = bool(found)
            else:  # True is not the number 1 here
                held = any(isinstance(found, bool) is isinstance(each, bool) and found == each for each in self._among)
        except Exception as error:  # arrays and tensors raise
            raise PathError(f"{self.reader._path}: neither true nor false: {error}") from error
        return bool(held) is self._wanted


def checks(when: Iterable[Condition], unless: Iterable[Condition], parameters: Parameters) -> tuple[Check, ...]:
    """Return what must hold for a call, each compiled.

    Raises:
        PathError: the target lacks a parameter.
    """
    return (
        *(Check(condition, parameters, wanted=True) for condition in when),
        *(Check(condition, parameters, wanted=False) for condition in unless),
    )


def plain(found: Any) -> Any:
    """Return a value as plain Python: containers of OmegaConf, whose elements are containers again, become its own."""
    omegaconf = sys.modules.get("omegaconf")
    if omegaconf is not None and omegaconf.OmegaConf.is_config(found):
        return omegaconf.OmegaConf.to_container(found, resolve=True)
    return found
