"""The command ``profwin``: one module a subcommand, imported when it is chosen.

Exit codes: 0 ok; 1 what was to be verified did not hold, or profwin raised an error; 2 wrong usage, or
what was named could not be read; 130 ended by Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

import profwin
from profwin.errors import ProfwinError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

INTERRUPTED = 130
COMMANDS = ("check", "collect", "demo", "doctor", "locks", "nsys-options", "plan", "report", "run", "timeline")
"""Each is a module of this package, with ``add_parser``; a hyphen is an underscore there."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: without the program's name; default: this process's.

    Returns:
        The exit code. Wrong usage, ``--help`` and ``--version`` raise SystemExit, as argparse does.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    parsed = _parser(*arguments[:1]).parse_args(arguments)
    try:
        return int(parsed.run(parsed))
    except ProfwinError as error:
        print(f"profwin: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("profwin: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser(first: str = "") -> argparse.ArgumentParser:
    """Return the parser; where the first argument names a command, of that alone: the others would never be asked."""
    parser = argparse.ArgumentParser(
        prog="profwin",
        description="Profile rollout and training on shared devices without overlap, and prove it.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {profwin.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (first,) if first in COMMANDS else COMMANDS:
        import_module(f"profwin.cli.{command.replace('-', '_')}").add_parser(commands)
    return parser
