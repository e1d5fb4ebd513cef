"""The rules of the house that no other tool checks: sizes, import directions, docstrings, reasons, words."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 300
LEAVES = {"errors", "loop", "numberset", "options", "selection", "settings", "switch", "interval", "board", "journal"}
"""Modules that may import nothing of the project but each other's like and `errors`."""
ROOMS = {"backends", "registry", "engines"}
UPPER = {"window", "stage", "spans", "owner", "collection", "session", "configuration", "hooks", "passage", "position"}
FRONT = {"cli", "demo", "doctor", "testing"}


@functools.cache
def _modules(*rooms: str) -> list[Path]:
    return sorted(path for room in rooms for path in (ROOT / room).rglob("*.py") if path.stat().st_size)


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _known(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def _imports(path: Path) -> set[str]:
    """Return the modules of the project that a module imports when it runs, anywhere in it, without ``profwin.``."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from profwin.cli import locks` imports a module, `from profwin.errors import X` does not.
            deep = (ROOT / node.module.replace(".", "/")).is_dir()
            names = [f"{node.module}.{alias.name}" for alias in node.names] if deep else [node.module]
        found.update(name.removeprefix("profwin.") for name in names if name.startswith("profwin."))
    return found


def _room(module: str) -> str:
    return module.removeprefix("profwin.").partition(".")[0]


def _runtime() -> list[Path]:
    return [path for path in _modules("profwin") if _room(_name(path)) not in FRONT | {"__main__", "profwin"}]


def test_size():
    """No module is longer than what a reader holds in mind."""
    lines = {_known(path): path.read_text().count("\n") for path in _modules("profwin", "tests", "benchmarks")}
    assert not {name: count for name, count in lines.items() if count > LONGEST}


def test_leaves_import_nothing_else():
    """The pure modules at the bottom import nothing of the project but one another."""
    for name in LEAVES:
        imported = {_room(module) for module in _imports(ROOT / "profwin" / f"{name}.py")}
        assert imported <= {"errors", "numberset", "options", "selection"}, name


def test_evidence_reads_files_only():
    """What judges a run needs nothing of what made it but the journal's schema and the selections."""
    allowed = {"evidence", "journal", "errors", "selection", "numberset"}
    for path in _modules("profwin/evidence"):
        assert {_room(module) for module in _imports(path)} <= allowed, path


def test_rooms_do_not_know_the_house():
    """Backends, engines and the registry import neither windows nor stages nor what owns collections."""
    wrong = {
        _name(path): found
        for path in _runtime()
        if _room(_name(path)) in ROOMS and (found := {_room(module) for module in _imports(path)} & (UPPER | FRONT))
    }
    assert not wrong


def test_registry_stands_alone():
    """The registry imports the errors and itself, so that its exclusion can be read and tested alone."""
    wrong = {
        _name(path): found
        for path in _modules("profwin/registry")
        if (found := {_room(module) for module in _imports(path)} - {"registry", "errors"})
    }
    assert not wrong


def test_runtime_does_not_know_the_front():
    """No module that runs in a training process imports the command line, the demo or what is for tests."""
    wrong = {_name(path): found for path in _runtime() if (found := {_room(m) for m in _imports(path)} & FRONT)}
    assert not wrong


def test_ray_stands_above():
    """What is for Ray uses windows, engines, and some of wrapping; nothing uses it but the loops of plans."""
    allowed = {"ray", "window", "stage", "step", "engines", "registry", "configuration", "settings", "errors"}
    allowed |= {"manifest"}  # which is gathered anew from what was collected
    for path in _modules("profwin/ray"):
        found = {module for module in _imports(path) if module not in ("patch.rayhook", "backends.nsys_options")}
        assert {_room(module) for module in found} <= allowed, path
    users = {_name(path) for path in _runtime() if any(_room(module) == "ray" for module in _imports(path))}
    assert {_room(user) for user in users - {"profwin.patch.events"}} <= {"ray"}


def test_only_the_command_line_starts_the_demo():
    """Nobody in the package but the command line imports the demo."""
    users = {
        _name(path)
        for path in _modules("profwin")
        if _room(_name(path)) != "demo" and any(_room(module) == "demo" for module in _imports(path))
    }
    assert {_room(user) for user in users} <= {"cli"}


def test_windows_and_stages_take_no_locks_themselves():
    """User-facing modules reach the registry through the session and the owner alone."""
    for name in ("window", "stage", "spans", "pause", "step", "hooks"):
        rooms = {_room(module) for module in _imports(ROOT / "profwin" / f"{name}.py")}
        assert not rooms & {"registry", "backends"}, name


def _public(tree: ast.Module) -> list[ast.AST]:
    """Return the public functions and classes of a module, and the public members of those classes."""
    found: list[ast.AST] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            found.append(node)
            if isinstance(node, ast.ClassDef):
                members = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
                found += [each for each in members if not each.name.startswith("_")]
    return found


def test_docstrings():
    """Every module, public class, function and method says what it promises."""
    trees = {path: ast.parse(path.read_text()) for path in _modules("profwin", "benchmarks")}
    assert not [_known(path) for path, tree in trees.items() if not ast.get_docstring(tree)]
    silent = {
        _known(path): [node.name for node in _public(tree) if not ast.get_docstring(node)]
        for path, tree in trees.items()
    }
    assert not {name: found for name, found in silent.items() if found}


def test_tests_say_what_must_hold():
    """Every test function has a docstring."""
    silent = [
        f"{_known(path)}: {node.name}"
        for path in _modules("tests")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.name.startswith("test_") and not ast.get_docstring(node)
    ]
    assert not silent


_IGNORE = re.compile(r"#\s*(noqa|type:\s*ignore)(:\s*[A-Z0-9, ]+|\[[^\]]*\])?(?P<reason>.*)")


def test_ignores_have_reasons():
    """Whoever silences a check says what is silenced and why, on the same line."""
    bare = []
    for path in _modules("profwin", "tests", "benchmarks"):
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                found = _IGNORE.search(token.string) if token.type == tokenize.COMMENT else None
                if found and (not found[2] or len(found["reason"].strip(" #-")) < 8):
                    bare.append(f"{_known(path)}:{token.start[0]}: {token.string}")
    assert not bare


def test_no_machine_in_the_files():
    """No file names a machine, a home, a scratch directory or a package index of those who wrote it."""
    # Written in parts, so that this file does not hold what it looks for.
    words = ["/wo_rk/", "/tm_p/v", "/ro_ot/", "/op_t/", "find_-links", "index_-url"]
    words = [word.replace("_", "") for word in words]
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    wrong = []
    for name in listing.stdout.splitlines():
        try:
            text = (ROOT / name).read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        wrong += [f"{name}: {word}" for word in words if word in text]
    assert not wrong
