"""Kinds of objects that a target may name, and those that cannot be patched, with what to name instead."""

from __future__ import annotations

import functools
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["C_FUNCTION", "OBJECT", "is_a", "kind_of", "refusal"]

C_FUNCTION = "C function"
OBJECT = "callable object"
"""The two kinds that are no Python functions: a proxy is set in their place."""

_IN_C = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)
# Bits of type.__flags__ (CPython's object.h): classes that a `class` statement made, and those that none can change.
_HEAP, _IMMUTABLE = 1 << 9, 1 << 8
# The interpreter's code flags.
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200


def is_a(value: object, *kinds: type) -> bool:
    """Return whether an object is of one of these types; ``isinstance`` would ask a proxy for its ``__class__``."""
    return issubclass(type(value), kinds)


def kind_of(raw: Any) -> str:
    """Return what an object is, as it lies in a ``__dict__``.

    Returns:
        "function", "coroutine function", "generator function", "async generator function", "static method", "class
        method", "bound method", `C_FUNCTION` or `OBJECT`.
    """
    if is_a(raw, staticmethod):
        return "static method"
    if is_a(raw, classmethod):
        return "class method"
    if is_a(raw, MethodType):
        return "bound method"
    if is_a(raw, *_IN_C):
        return C_FUNCTION
    if not is_a(raw, FunctionType):
        return OBJECT
    flags = raw.__code__.co_flags
    if flags & (_COROUTINE | _ITERABLE_COROUTINE):
        return "coroutine function"
    if flags & _ASYNC_GENERATOR:
        return "async generator function"
    return "generator function" if flags & _GENERATOR else "function"


def refusal(raw: Any, holder: ModuleType | type, actor: type | None) -> tuple[str, str] | None:
    """Return why an object cannot be patched, and what to do instead; None where it can.

    Args:
        raw: the object, as it lies in a ``__dict__``.
        holder: on what a patch would be set.
        actor: the class that Ray ships, where *raw* is an actor's class.
    """
    if is_a(raw, type) or actor is not None:
        return "is a class", "name one of its methods, or its __init__"
    if is_a(raw, property, functools.cached_property):
        return "is a property", "name the function that it calls, or the one that reads it"
    if is_a(raw, GetSetDescriptorType, MemberDescriptorType):
        return "is an attribute of instances", "name the method that its instances call"
    if is_a(raw, ModuleType):
        return "is a module", f"write {raw.__name__}:… with what is in it"
    if isinstance(holder, type):
        if holder.__flags__ & _IMMUTABLE or not holder.__flags__ & _HEAP:
            return f"belongs to {holder.__name__}, a type written in C", "name the Python function that calls it"
        if is_a(raw, *_IN_C):
            return f"is a C function of class {holder.__name__}", "name a Python method that calls it"
    if any(base.__module__ == "ray.remote_function" for base in type(raw).__mro__):
        return "is a Ray task", "name the function that the task calls"
    if is_a(raw, staticmethod, classmethod):
        return None if callable(raw.__func__) else ("is no function", "name a function or method")
    if is_a(raw, functools.partialmethod) or callable(raw):
        return None
    return f"is no function but of type {type(raw).__name__}", "name a function or method"
