"""The command line as a whole: which commands there are, and that each needs no other."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from profwin import cli

_LOADED = """
import sys
from profwin.cli import COMMANDS, main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*(name for name in COMMANDS if f"profwin.cli.{name.replace('-', '_')}" in sys.modules), file=sys.stderr)
"""


def _output(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out + captured.err


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_a_command_needs_no_other(command):
    """Only the module of the command that is named is imported, so that none waits for what it has no use for."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, command, "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith(f"usage: profwin {command} ")
    assert done.stderr.split() == [command]


def test_help_lists_all_commands(capsys):
    """Without a command, and with options before it, all are there with a line of help."""
    status, text = _output(capsys, "--help")
    assert status == 0
    listed = text.partition("commands:")[2]
    # What a long name has to say stands on the next line.
    assert set(cli.COMMANDS) == set(re.findall(r"^ {4}([\w-]+)(?=\s+\w)", listed, re.MULTILINE))


@pytest.mark.parametrize("arguments", [(), ("chec",), ("--bogus", "check"), ("check", "--bogus")])
def test_wrong_usage(capsys, arguments):
    """What is no command, or no option, is refused in the words of argparse, whichever parsers were made."""
    status, text = _output(capsys, *arguments)
    assert status == 2
    assert text.startswith("usage: profwin [-h] [--version] COMMAND ...")
    assert "profwin: error: " in text


def test_arguments_of_the_process(capsys, monkeypatch):
    """Without arguments those of the process count."""
    monkeypatch.setattr(sys, "argv", ["profwin", "locks", "--help"])
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().out.startswith("usage: profwin locks ")
