"""``profwin collect``: a run's files from all nodes of a Ray cluster, in one folder."""

from __future__ import annotations

import sys
import time

from profwin.cli.printing import Progress, show, show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from profwin.ray.collecting.result import Collected

__all__ = ["add_parser", "run"]

_DESCRIPTION = """
Copy the journals, the manifest and the traces of a run from all nodes of a Ray cluster into DIR/RUN, for profwin
check, timeline and report. Nothing is changed on the nodes, no different file in DIR is overwritten, and what was
broken off goes on where it was when the command is given again.
"""
_EPILOG = """
exit status: 0 all is there; 1 something is missing, which is said; 2 wrong usage, or there is no cluster; 130 ended
by Ctrl-C
"""
MOST_LINES = 20
"""Of each kind; the rest is counted, and in the JSON."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``profwin``."""
    import argparse

    parser = subparsers.add_parser(
        "collect",
        help="copy a run's files from all nodes of a Ray cluster into one folder",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", metavar="DIR", help="the folder, which is made; not the one that runs write to")
    parser.add_argument(
        "--from", dest="source", metavar="OUTPUT",
        help="the output directory of the run, on each node; ~ and $NAME are the node's (default: PROFWIN_OUTPUT, here"
        " or on the node, else outputs/profwin below the working directory)",
    )  # fmt: skip
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--run", dest="name", metavar="RUN", help="the run (default: the one written to last)")
    which.add_argument("--all", action="store_true", help="every run in the output directory")
    parser.add_argument("--nsight", action="store_true", help="also nsys reports in the folders of Ray's session")
    parser.add_argument("--address", metavar="ADDRESS", help="the cluster's (default: RAY_ADDRESS, else this host's)")
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS",
        help="how long a node may take for an answer, of 4 MiB at most (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command.

    Returns:
        0; 1 where something is missing; 2 where nothing could be asked or written.
    """
    from profwin.errors import SettingError
    from profwin.evidence.escaping import printable
    from profwin.ray import collect
    from profwin.ray.connection import connection

    try:
        with connection(arguments.address), Progress("collect", "asking the nodes") as progress:
            result = collect(
                arguments.directory, arguments.source, arguments.name, all_runs=arguments.all, nsight=arguments.nsight,
                timeout=arguments.timeout, progress=_Rate(progress).tell,
            )  # fmt: skip
    except (SettingError, ConnectionError) as error:
        return _failed(printable(str(error)), 2)
    except OSError as error:
        where = f" {printable(str(error.filename))}:" if error.filename else ""
        what = (
            f"{where} {error.strerror or error}; what is in {printable(arguments.directory)} stays, and the next start"
        )
        return _failed(f"collecting ended:{what} goes on from there", 1)
    if arguments.json:
        show_json(result.as_json())
    else:
        show(_text(result))
    return 0 if result.whole else 1


class _Rate:
    """Say how far it has come, and how fast.

    Args:
        progress: that says it.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._begun: tuple[float, int] | None = None

    def tell(self, files: int, size: int, all_files: int, all_bytes: int) -> None:
        """Take how many files and bytes are there, and how many are to be."""
        now = time.monotonic()
        begun, first = self._begun = self._begun or (now, size)
        rate = (size - first) / max(now - begun, 1e-3)
        self._progress.state = (
            f"{files:,} of {all_files:,} files, {size / 1e6:,.1f} of {all_bytes / 1e6:,.1f} MB, {rate / 1e6:,.1f} MB/s"
        )


def _failed(why: str, status: int) -> int:
    print(f"profwin: {why}", file=sys.stderr)
    return status


def _text(result: Collected) -> str:
    from profwin.evidence.escaping import printable

    runs = ", ".join(map(printable, result.runs)) or "no run"
    rate = result.bytes / max(result.seconds, 1e-3) / 1e6
    there = f"there already: {result.already:,} files"
    lines = [
        f"{printable(result.directory)}: {runs}",
        f"fetched: {result.files:,} files, {result.bytes:,} bytes in {result.seconds:.1f} s ({rate:.1f} MB/s); {there}",
    ]
    lines += [f"node {printable(node)}: {size:,} bytes" for node, size in result.nodes.items()]
    lines += _some("kept under another name", {path: f"as {name}" for path, name in result.renamed.items()})
    lines += [f"note: {printable(note)}" for note in result.notes]
    lines += _some("missing", result.missing)
    return "\n".join(lines)


def _some(what: str, found: Mapping[str, str]) -> list[str]:
    from profwin.evidence.escaping import printable

    lines = [f"{what}: {printable(path, 300)}: {printable(why)}" for path, why in list(found.items())[:MOST_LINES]]
    if len(found) > MOST_LINES:
        lines.append(f"{what}: {len(found) - MOST_LINES} more; --json names them")
    return lines
