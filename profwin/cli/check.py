"""``profwin check``: is the data that was asked for there, whole and unmixed?"""

from __future__ import annotations

import sys

from profwin.cli.printing import Progress, show, show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import NoReturn

    from profwin.evidence.check import Options

__all__ = ["add_parser", "run"]

_DESCRIPTION = """
Read everything below a directory, profwin's journals and profilers' own output, and say whether the data that was
asked for is there, whole and unmixed. Nothing is changed, and no file is trusted.

What was asked for is known from the run's journals and manifest; where there are none, from the options. With
journals, the options narrow what is looked at.
"""

_EPILOG = """
Exit status: 0 clean; 1 findings at or above the threshold, as in every empty directory; 2 the directory could not
be checked. All codes: profwin check --list-codes.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    import argparse

    parser = commands.add_parser(
        "check",
        help="say whether a profile is there, whole and unmixed",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", nargs="?", metavar="DIR", help="of a run, of several, or of any profiler's output")
    parser.add_argument("--steps", metavar="STEPS", help="steps that must be there, such as 2,4-6")
    parser.add_argument("--stages", metavar="NAMES", help="stages that must be there in each step, such as 'actor_*'")
    parser.add_argument("--ranks", metavar="RANKS", help="ranks that must be there in each step, such as 0-7")
    parser.add_argument("--roles", metavar="NAMES", help="roles that must be there in each step")
    parser.add_argument("--format", metavar="NAME", help="of which format there must be recordings, such as nsys")
    parser.add_argument(
        "--group-timeout", metavar="SECONDS",
        help="of the process group, for journals that do not say it (default: 600, torch's for NCCL): a stop with its"
        " export should take no more than a quarter of it",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a listing")
    parser.add_argument(
        "--fail-on", choices=("remark", "warning", "error"), default="warning",
        help="the mildest finding that makes the exit status 1 (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--list-codes", action="store_true", help="list all codes of findings, and end")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return 0 if clean, 1 if there are findings, 2 if it could not run."""
    if arguments.list_codes:
        return _list_codes(as_json=arguments.json)
    options = _options(arguments)
    from profwin.evidence.check import check

    try:
        with Progress("check", "looking at the files") as progress:
            result = check(arguments.directory, options, progress.count)
    except OSError as error:
        from profwin.evidence.escaping import printable

        reason = f"{printable(arguments.directory)}: {error.strerror or error}"
        print(f"profwin check: error: {reason}", file=sys.stderr)
        return 2
    if arguments.json:
        show_json(result.as_json(arguments.fail_on))
    else:
        from profwin.evidence.listing import result_text

        show(result_text(result, arguments.fail_on))
    return 0 if result.clean(arguments.fail_on) else 1


def _options(arguments: argparse.Namespace) -> Options:
    from profwin.errors import SettingError
    from profwin.evidence.check import make_options

    usage: Callable[[str], NoReturn] = arguments.parser.error
    if arguments.directory is None:
        usage("the following arguments are required: DIR")
    try:
        return make_options(
            steps=arguments.steps, stages=arguments.stages, ranks=arguments.ranks, roles=arguments.roles,
            format=arguments.format, group_timeout=arguments.group_timeout,
        )  # fmt: skip
    except SettingError as error:
        usage(str(error))


def _list_codes(*, as_json: bool) -> int:
    from profwin.evidence.codes import CODES

    if as_json:
        show_json(
            {
                code.name: {"severity": code.severity, "meaning": code.meaning, "remedy": code.remedy}
                for code in CODES.values()
            }
        )
    else:
        from profwin.evidence.listing import codes_text

        show(codes_text(CODES.values()))
    return 0
