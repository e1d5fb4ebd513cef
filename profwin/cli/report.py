"""``profwin report``: where the time of a run went, as a page for a browser and a table for a terminal."""

from __future__ import annotations

import os
import stat
import sys

from profwin.cli.printing import Progress, show, show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

__all__ = ["add_parser", "run"]

PAGE = "report.html"

_DESCRIPTION = """
Say where the time of each profiled step went, device by device: rollout, stages, handovers, weight syncs, idle time
and its causes; which rank was slowest and by how much; what profiling itself cost; and what profwin check found.

A table goes to standard output, and a page with a picture of each step into a file: one file, that needs no network.
Both are made of the journals of the runs at or below a directory.
"""

_EPILOG = """
Exit status: 0 the report was made, whatever it says; 2 there is no run, or the page could not be written.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    import argparse

    parser = commands.add_parser(
        "report",
        help="say where the time of each step went",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", metavar="DIR", help="of a run, or of several")
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help=f"the page's file (default: {PAGE} in the working directory; with --json none)",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace the page's file if it is there")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return 0 if the report was made, 2 if it could not be."""
    from profwin.evidence.escaping import printable

    output = arguments.output or (None if arguments.json else PAGE)
    try:
        if output is not None:
            _refuse(output, force=arguments.force)
        return _report(arguments.directory, output, force=arguments.force, as_json=arguments.json)
    except OSError as error:
        where = output if output is not None and error.filename == output else arguments.directory
        print(f"profwin report: error: {printable(where)}: {error.strerror or error}", file=sys.stderr)
        return 2


def _report(directory: str, output: str | None, *, force: bool, as_json: bool) -> int:
    from profwin.evidence.escaping import printable
    from profwin.evidence.report import as_json as report_as_json
    from profwin.evidence.report import gather
    from profwin.evidence.report_text import report_text

    with Progress("report", "looking at the files") as progress:
        report = gather(directory, progress.count)
    if not report.runs:
        print(
            f"profwin report: error: {printable(directory)}: no run with journals is here; profwin check says what is",
            file=sys.stderr,
        )
        return 2
    if output is not None:
        from profwin.evidence.page import page

        _write(output, page(report).encode("utf-8", "backslashreplace"), force=force)
    if as_json:
        show_json(report_as_json(report))
    else:
        show(report_text(report))
    if output is not None:
        print(f"profwin report: the page is in {printable(output)}", file=sys.stderr)
    return 0


def _refuse(output: str, *, force: bool) -> None:
    """Find out early what would be in the way of the page.

    Raises:
        OSError: something is.
    """
    try:
        mode = os.lstat(output).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise OSError(0, "it is there and no regular file", output)
    if not force:
        raise FileExistsError(17, "it is there; --force replaces it", output)


def _write(output: str, content: bytes, *, force: bool) -> None:
    """Write a file as a whole or not at all.

    Raises:
        OSError: it cannot be written, or is there and must not be replaced.
    """
    from profwin.evidence.target import Target

    try:
        with Target(output, force=force, packed=False) as target:
            target.write(content)
            _refuse(output, force=force)  # a link that has come meanwhile is not replaced either
            target.finish()
    except OSError as error:
        # Not by the name of the temporary file.
        raise OSError(error.errno, error.strerror, output) from error
