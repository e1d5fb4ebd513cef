"""The documentation does what it says: its commands and programs run, its tables match the code, its links lead.

How a page marks what it shows:

- ``console``: lines that begin with ``$`` are run by bash, in the page's order and in the page's own empty directory;
  the other lines are what standard output must show, in that order, ``…`` standing for anything.
- ``python`` with a first line ``# name.py``, and ``toml`` with ``# name.toml``: is written to that file, for the
  commands after it.
- ``python`` without: is run as a program of its own.
- any other mark, such as ``text`` or ``sh``: is not run, and the page says why.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import profwin
from profwin import errors, settings
from profwin.journal import FIELDS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md"])
_BLOCK = re.compile(r"^```(\S+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.(?:py|toml))\n")
_LINK = re.compile(r"\]\(([^)#\s]+)?(?:#([^)\s]+))?\)")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _blocks(path: Path) -> list[tuple[str, str]]:
    return [(found[1], found[2]) for found in _BLOCK.finditer(path.read_text())]


def _read(page: str) -> str:
    return (DOCS / page).read_text()


@pytest.fixture
def shell(tmp_path, locks):
    """Return a function that runs a command as a reader would, and gives its standard output."""
    programs = tmp_path / "bin"
    programs.mkdir()
    modules = {"python": "", "profwin": "-m profwin", "pytest": "-m pytest", "torchrun": "-m torch.distributed.run"}
    for name, module in modules.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (programs / name).chmod(0o755)
    folder = tmp_path / "page"
    folder.mkdir()
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PROFWIN_", "COVERAGE_"))}
    variables |= {
        "PATH": f"{programs}{os.pathsep}{variables['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PROFWIN_LOCK_DIR": locks,
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "80",
    }

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=110)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    run.folder = folder
    return run


@pytest.mark.parametrize(
    "page", [page for page in PAGES if {"console", "python"} & {mark for mark, _ in _blocks(page)}], ids=_name
)
def test_what_a_page_shows_works(page, shell):
    """Every command and program of a page runs, in the page's order, and prints what the page shows."""
    for mark, text in _blocks(page):
        file = _FILE.match(text)
        if file and mark in ("python", "toml"):
            (shell.folder / file[1]).write_text(text)
        elif mark == "python":
            shell("python", "-c", text)
        elif mark == "console":
            _run_session(text, shell)


def _run_session(text: str, shell) -> None:
    commands = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert not commands[0].strip(), "a session begins with a command"
    for part in commands[1:]:
        command, _, shown = part.partition("\n")
        printed = shell("bash", "-eu", "-c", command)
        at = 0
        for piece in [piece for line in shown.splitlines() for piece in line.strip().split("…") if piece]:
            found = printed.find(piece, at)
            assert found >= 0, f"$ {command}\nshown:\n{shown}\nprinted:\n{printed}\nmissing: {piece}"
            at = found + len(piece)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page):
    """Every link inside the project leads to a file that exists, and to a heading of it."""
    for target, anchor in _LINK.findall(page.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{target}#{anchor}"


def test_every_page_is_in_the_index():
    """A reader who starts at the index finds every page."""
    listed = {(DOCS / target).resolve() for target, _ in _LINK.findall(_read("index.md")) if target}
    assert {page for page in DOCS.rglob("*.md") if page.name != "index.md"} <= listed


def _rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without its head."""
    part = re.split(rf"^#+ {re.escape(heading)}$", _read(page), maxsplit=1, flags=re.MULTILINE)[1]
    table = re.search(r"^\|.*?(?=^[^|]|\Z)", part, re.MULTILINE | re.DOTALL)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[0].strip().splitlines()[2:]]


def test_journal_page_lists_every_kind_and_field():
    """The page on the journal has exactly the kinds and fields that the code may write."""
    listed = {
        row[0].strip("`"): tuple(re.findall(r"`(\w+)`", row[1])) for row in _rows("reference/journal.md", "Kinds")
    }
    assert listed == FIELDS


def _literals(pattern: str) -> set[str]:
    """Return the string literals that follow a pattern, all over the package."""
    sources = [path.read_text() for path in (ROOT / "profwin").rglob("*.py") if "demo" not in path.parts]
    return {text for source in sources for text in re.findall(pattern + r'\s*"([a-z-]+)"', source)}


def test_journal_page_lists_every_finding():
    """The page on the journal explains each finding that the code may write."""
    listed = {row[0].strip("`") for row in _rows("reference/journal.md", "Findings")}
    assert listed == _literals(r"\b(?:finding|note)\(")


def test_journal_page_lists_every_reason():
    """The page on the journal explains each reason for a skip and for the end of a collection."""
    from profwin.skip import skip

    skips = {row[0].strip("`") for row in _rows("reference/journal.md", "Reasons to run unrecorded")}
    documented = re.search(r"reason: (.*?)\.\n", skip.__doc__, re.DOTALL)
    assert skips == set(re.findall(r"``(\w+)``", documented[1]))
    ends = {row[0].strip("`") for row in _rows("reference/journal.md", "Reasons why a collection ends")}
    assert ends >= _literals(r"self\.close\(collection,") | _literals(r"owner\.end_step\([^\"]*?") | {"end", "failure"}


def test_settings_page_lists_every_setting():
    """The page on settings has each argument of `configure` with its variable and its default."""
    rows = {row[0].strip("`"): row for row in _rows("reference/settings.md", "Settings")}
    assert list(rows) == [name for name, _parse, _default in settings._TABLE]
    for name, _parse, default in settings._TABLE:
        assert rows[name][1] == f"`PROFWIN_{name.upper()}`"
        if default is not None:
            shown = default[0] if isinstance(default, tuple) else default
            assert rows[name][2] == f"`{shown!r}`".replace("'", '"')


def test_errors_page_lists_every_error():
    """The page on errors has each error and the attributes that it carries."""
    rows = {row[0].strip("`"): row for row in _rows("reference/errors.md", "Errors")}
    assert set(rows) == set(errors.__all__)
    for name, row in rows.items():
        parameters = [] if name == "ProfwinError" else _parameters(getattr(errors, name).__init__)
        assert re.findall(r"`(\w+)`", row[2]) == parameters


def _parameters(function) -> list[str]:
    code = function.__code__
    return [name for name in code.co_varnames[: code.co_argcount] if name != "self"]


def test_api_page_lists_every_name():
    """The page on the interface has a heading for each public name, and shows the parameters that it has."""
    page = _read("reference/api.md")
    headings = set(re.findall(r"^### `(\w+)", page, re.MULTILINE))
    assert headings == {name for name in profwin.__all__ if name not in {*errors.__all__, "__version__"}}
    signatures = {
        node.name: [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        for mark, text in _blocks(DOCS / "reference/api.md")
        if mark == "text"
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }
    functions = {name: getattr(profwin, name) for name in headings - {"Loop", "steps", "ranks", "names"}}
    for name, function in {**functions, "Loop": profwin.Loop.__init__}.items():
        code = function.__code__
        expected = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        assert signatures[name] == [each for each in expected if each != "self"], name


@pytest.mark.parametrize(
    "command",
    [
        "profwin",
        *(
            f"profwin {name}"
            for name in ("check", "demo", "doctor", "locks", "nsys-options", "plan", "report", "run", "timeline")
        ),
        *(f"profwin plan {name}" for name in ("list", "show", "check")),
    ],
)
def test_command_line_page_shows_the_help(command, shell):
    """The page on the command line has every word of each command's help, in order."""
    printed = shell("bash", "-c", f"{command} --help").split()
    shown = [text.split() for mark, text in _blocks(DOCS / "reference/command-line.md") if mark == "text"]
    if sys.version_info[:2] == (3, 11):  # others wrap and name things differently
        assert printed in shown
    options = {word for word in printed if word.startswith("--")}
    assert any(options <= set(words) for words in shown)
