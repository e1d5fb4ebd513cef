"""The start of a Python process that ``profwin run`` reaches: what it is, whether it is meant, and what is watched.

Imports nothing that ``site`` has not imported (but ``__future__``), and nothing of profwin until a module with targets
has been loaded.

Variables, all set by :mod:`profwin.patch.environment`:
    PROFWIN_PATCH_MODULES: names of the modules that have targets, separated by commas.
    PROFWIN_PATCH_MAIN: the targets in ``__main__``, separated by commas.
    PROFWIN_PATCH_CHILDREN: ``all``, ``none`` or patterns; see `chosen`.
    PROFWIN_PATCH_COMMAND: which process is COMMAND itself: its pid and start time.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import CodeType, ModuleType
    from typing import Any

__all__ = ["chosen", "identity", "matches", "mentions", "package", "program", "start"]

HERE = os.path.dirname(os.path.abspath(__file__))
RUNNER = os.path.join(HERE, "profwin_script.py")


def start() -> None:
    """Do what is to be done before the program; a script with targets of its own is started again, by the runner."""
    modules = os.environ.get("PROFWIN_PATCH_MODULES", "")
    if not modules:
        return
    rule = os.environ.get("PROFWIN_PATCH_CHILDREN") or "all"
    if not chosen(rule, sys.orig_argv, os.environ):
        return
    from profwin_finder import FINDER  # type: ignore[import-not-found]  # it is on PYTHONPATH

    FINDER.compiler = _compiled
    names = modules.split(",")
    if "__main__" in names:
        _follow_main(os.environ.get("PROFWIN_PATCH_MAIN", "").split(","))
    FINDER.watch([name for name in names if name != "__main__"], _patch)
    FINDER.watch(["ray"], _patch_ray)
    if rule != "all":
        os.register_at_fork(after_in_child=_forked)


def program(argv: Sequence[str]) -> tuple[str, str, int]:
    """Say what a command line of Python runs.

    Args:
        argv: as in ``sys.orig_argv``.

    Returns:
        ``"script"``, ``"-m"``, ``"-c"`` or ``""`` (standard input); its path, module or code; and its place in *argv*.
        The runner is not a program, but what it runs is.
    """
    place = 1
    while place < len(argv):
        word = argv[place]
        if word == "--":
            place += 1
            break
        if word == "-" or not word.startswith("-"):
            break
        if word.startswith("--"):
            place += 1 + (word == "--check-hash-based-pycs")
            continue
        for at, letter in enumerate(word[1:], 2):
            if letter in "cm":
                inside = word[at:]
                place += not inside
                return f"-{letter}", inside or "".join(argv[place : place + 1]), place
            if letter in "WX":
                place += not word[at:]
                break
        place += 1
    if argv[place : place + 1] == [RUNNER]:
        place += 1
    path = "".join(argv[place : place + 1])
    return ("", "", place) if path in ("", "-") else ("script", path, place)


def chosen(rule: str, argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Say whether a process is to be patched.

    Args:
        rule: ``all``; ``none``: only COMMAND itself; or patterns, separated by commas: COMMAND, and each child that one
            of them matches. A pattern after ``!`` takes a child out; are there only such, all others are in.
        argv: its command line. It is known by its script's path and file name, or the module after ``-m``; by ``-c``
            and the module that such a program begins by importing from (``multiprocessing.spawn``); and by the path and
            name of its interpreter.
        environ: its variables.
    """
    if rule == "all" or environ.get("PROFWIN_PATCH_COMMAND") == identity():
        return True
    if rule == "none":
        return False
    kind, what, _place = program(argv)
    names = [argv[0], os.path.basename(argv[0])] if argv else []
    if kind == "script":
        names += [what, os.path.basename(what)]
    elif kind == "-m":
        names.append(what)
    elif kind == "-c":
        words = what.split(None, 2)
        names += ["-c", words[1]] if words[:1] == ["from"] else ["-c"]
    patterns = rule.split(",")
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    refused = [pattern[1:] for pattern in patterns if pattern.startswith("!")]

    def among(patterns: list[str]) -> bool:
        return any(matches(pattern, name) for pattern in patterns for name in names)

    return (not wanted or among(wanted)) and not among(refused)


def matches(pattern: str, text: str) -> bool:
    """Say whether a text matches a pattern of ``*`` and ``?``; fnmatch would be an import, of re at that."""
    place = at = back = 0
    star = -1
    while at < len(text):
        if place < len(pattern) and pattern[place] == "*":
            star, back = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("?", text[at]):
            place += 1
            at += 1
        elif star >= 0:
            back += 1
            place, at = star + 1, back
        else:
            return False
    return not pattern[place:].strip("*")


def identity() -> str:
    """Return this process's pid and start time; an exec changes neither."""
    try:
        with open("/proc/self/stat", "rb") as file:
            started = file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        started = ""
    return f"{os.getpid()}:{started}"


def mentions(path: str, targets: Sequence[str]) -> bool:
    """Say whether a file may define one of these names; only then is it worth starting the interpreter again."""
    try:
        if path.endswith(".pyc") or not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            text = file.read()
    except OSError:
        return False
    if b"\0" in text:  # a zip file, which Python runs too
        return False
    names = [target.rpartition(".")[2] for target in targets]
    return any(b"def " in text if "*" in name or "?" in name else name.encode() in text for name in names)


def package() -> None:
    """Make ``profwin`` importable: as this interpreter has it, else from where this file is."""
    try:
        import profwin  # noqa: F401  # whether it is there
    except ImportError:
        from importlib.util import module_from_spec, spec_from_file_location

        root = os.path.dirname(os.path.dirname(HERE))
        spec = spec_from_file_location("profwin", os.path.join(root, "__init__.py"), submodule_search_locations=[root])
        if spec is None or spec.loader is None:
            raise
        sys.modules["profwin"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


def _follow_main(targets: list[str]) -> None:
    from profwin_finder import FINDER

    kind, what, place = program(sys.orig_argv)
    if kind == "-m":
        FINDER.watch([what, f"{what}.__main__"])
    elif kind == "script" and sys.orig_argv[place - 1] != RUNNER and mentions(what, targets) and _interpreter():
        os.execv(sys.executable, [*sys.orig_argv[:place], RUNNER, *sys.orig_argv[place:]])
    FINDER.watch(["multiprocessing.spawn"], _patch_spawn)


def _interpreter() -> bool:
    """Say whether this process is ``sys.executable``, and no other program that has Python in it."""
    try:
        return os.path.samefile("/proc/self/exe", sys.executable)
    except (OSError, ValueError):
        return False


def _compiled(loader: Any, name: str) -> CodeType | None:
    package()
    from profwin.patch.main import module_code

    return module_code(loader, name)


def _patch(module: ModuleType) -> None:
    package()
    from profwin.patch.installation import module_loaded

    module_loaded(module)


def _patch_ray(module: ModuleType) -> None:
    package()
    from profwin.patch.rayhook import follow

    follow(module)


def _patch_spawn(module: ModuleType) -> None:
    package()
    from profwin.patch.main import follow_spawn

    follow_spawn(module)


def _forked() -> None:
    """In a forked child that is not meant: no more patches, and those that it inherited are off."""
    if chosen(os.environ.get("PROFWIN_PATCH_CHILDREN") or "all", sys.orig_argv, os.environ):
        return
    from profwin_finder import FINDER

    FINDER.unwatch()
    switch = sys.modules.get("profwin.switch")
    if switch is not None:
        switch.SWITCH.on = False
