"""COMMAND, looked at before it runs: what of the plans cannot reach it, as far as that can be told from outside."""

from __future__ import annotations

import os

from profwin.patch.finder import boot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from profwin.patch.plan import Plan

__all__ = ["remarks"]


def remarks(command: Sequence[str], plans: Sequence[Plan]) -> list[str]:
    """Return what the user of ``profwin run`` must know of this COMMAND.

    Args:
        command: the program and its arguments.
        plans: the plans that are applied to it.
    """
    if not plans:
        return []
    name = os.path.basename(command[0])
    if not _is_python(command[0]):
        return [f"{name} is no Python program: only Python programs that it starts can be patched"]
    if "python" not in name:
        return []  # a script that names Python in its first line, as torchrun: its targets are in what it starts
    kind, path, place = boot.program(command)
    if letter := next((letter for letter in _letters(command[1:place]) if letter in "IES"), None):
        return [f"{name} -{letter} ignores what the environment says: neither it nor what it imports can be patched"]
    return _missing(path, plans) if kind == "script" else []


def _is_python(program: str) -> bool:
    """Say whether a program is Python, or a script that names Python in its first line; True if that is unknown."""
    import shutil

    path = shutil.which(program)
    if path is None or "python" in os.path.basename(os.path.realpath(path)) or "pypy" in os.path.basename(path):
        return True
    try:
        with open(path, "rb") as file:
            first = file.readline(256)
    except OSError:
        return True
    return first.startswith(b"#!") and b"python" in first


def _letters(options: Sequence[str]) -> list[str]:
    """Return the switches among Python's options."""
    letters = []
    for word in options:
        for letter in word[1:] if word[:1] == "-" != word[1:2] else "":
            if letter in "XWcm":
                break
            letters.append(letter)
    return letters


def _missing(path: str, plans: Sequence[Plan]) -> list[str]:
    """Say which targets in ``__main__`` a script does not define; one that it starts may."""
    targets = [patch for plan in plans for patch in plan.patches if patch.module == "__main__" and not patch.optional]
    if not targets:
        return []
    from profwin.patch.main import Target, names_of
    from profwin.patch.nearest import nearest

    try:
        with open(path, "rb") as file:
            names = names_of(file.read(), path)
    except (OSError, SyntaxError, ValueError):
        return []  # Python says it
    found = []
    for plan in plans:
        for patch in plan.patches:
            if patch in targets and not any(map(Target(plan, patch).matches, names)):
                remedy = nearest(patch.qualname, names)
                found.append(f"{path} itself defines no {patch.qualname}, a target of plan {plan.name}: {remedy}")
    return found
