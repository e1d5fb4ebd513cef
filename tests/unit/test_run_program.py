"""What boot makes of command lines, and which children the rule of ``--children`` means."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profwin.errors import SettingError
from profwin.patch.children import parse_children
from profwin.patch.environment import FOLDER, python_path
from profwin.patch.finder import boot

SPAWN = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)"


@pytest.mark.parametrize(
    ("words", "program"),
    [
        ("a.py -c x", ("script", "a.py", 1)),
        ("-u a.py", ("script", "a.py", 2)),
        ("-X utf8 -Werror -W ignore -OO a.py -m b", ("script", "a.py", 7)),
        ("-Xfaulthandler a.py", ("script", "a.py", 2)),
        ("-m a.b -x", ("-m", "a.b", 2)),
        ("-Bum a", ("-m", "a", 2)),
        ("-Bma", ("-m", "a", 1)),
        ("-cpass", ("-c", "pass", 1)),
        ("-c pass -m x", ("-c", "pass", 2)),
        ("--check-hash-based-pycs always a.py", ("script", "a.py", 3)),
        ("-- a.py", ("script", "a.py", 2)),
        ("-", ("", "", 1)),
        ("-i", ("", "", 2)),
        ("", ("", "", 1)),
        ("-m", ("-m", "", 2)),
    ],
)
def test_program(words, program):
    """A command line of Python is read as Python reads it."""
    assert boot.program(["python", *words.split()]) == program


def test_program_behind_the_runner():
    """The runner of scripts is not the program."""
    assert boot.program(["python", "-u", boot.RUNNER, "a.py"]) == ("script", "a.py", 3)


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=10))
def test_matches(pattern, text):
    """Patterns of stars and question marks mean what the standard library's mean."""
    assert boot.matches(pattern, text) == fnmatch.fnmatchcase(text, pattern)


@pytest.mark.parametrize(
    ("rule", "argv", "meant"),
    [
        ("all", ["python", "/x/a.py"], True),
        ("none", ["python", "/x/a.py"], False),
        ("a.py", ["python", "/x/a.py"], True),
        ("/x/*", ["python", "/x/a.py"], True),
        ("b*.py", ["python", "/x/a.py", "b.py"], False),
        ("train.*", ["python", "-m", "train.main"], True),
        ("a*,default_worker.py", ["python", "/r/default_worker.py"], True),
        ("multiprocessing.spawn", ["python", "-c", SPAWN, "--multiprocessing-fork"], True),
        ("-c", ["python", "-c", "pass"], True),
        ("python3*", ["/usr/bin/python3.11", "x.py"], True),
        ("!sandbox*", ["python", "/x/sandbox_1.py"], False),
        ("!sandbox*", ["python", "/x/a.py"], True),
        ("*.py,!sandbox*", ["python", "sandbox.py"], False),
        ("*.py,!sandbox*", ["python", "-m", "a"], False),
    ],
)
def test_chosen(rule, argv, meant):
    """A child is meant by its script, module, program name, or what its code begins by importing from."""
    assert boot.chosen(rule, argv, {}) is meant
    assert boot.chosen(rule, argv, {"PROFWIN_PATCH_COMMAND": boot.identity()}) is True  # COMMAND always is


@pytest.mark.parametrize("text", ["", "a,", "!", "a,,b", "all,b*", "none,none"])
def test_wrong_rules(text):
    """A rule that means nothing is refused, with what may be given."""
    with pytest.raises(SettingError, match="children"):
        parse_children(text)


@pytest.mark.parametrize("text", ["all", "none", "a*,!b"])
def test_rules(text):
    """What is allowed is passed on."""
    assert parse_children(text) == text
    assert parse_children(text.replace(",", " , ")) == text


@pytest.mark.parametrize(
    ("given", "expected"),
    [("", FOLDER), ("/a:/b", f"{FOLDER}:/a:/b"), (f"/a:{FOLDER}", f"{FOLDER}:/a"), (":/a", f"{FOLDER}::/a")],
)
def test_python_path(given, expected):
    """Our folder is first, once; all else stays, also the empty entry that means the current directory."""
    assert python_path(given) == expected


def test_help_of_settings():
    """``profwin run`` offers each setting there is, and no other."""
    from profwin.cli.run import SETTINGS
    from profwin.settings import _TABLE

    assert list(SETTINGS) == [name for name, _parse, _default in _TABLE]
