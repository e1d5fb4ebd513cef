"""``profwin timeline``: runs and what profilers recorded, on one time axis."""

from __future__ import annotations

import sys

from profwin.cli.printing import Progress, show, show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from profwin.evidence.timeline import Timeline

__all__ = ["add_parser", "run"]

_DESCRIPTION = """
Write one file for Perfetto (https://ui.perfetto.dev) with everything below a directory: for each device who held
its lock; for each process its windows, stages, spans, waits and skips; below them the events of its traces.
Events that overlap on one row get rows of their own, so that none is dropped.
"""

_EPILOG = """
exit status: 0 written; 2 not written: nothing to draw, the file is there, no room
"""
MOST_LINES = 20
"""Of files that are left out; the rest is counted."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``profwin``."""
    import argparse

    parser = subparsers.add_parser(
        "timeline",
        help="put a run and its traces on one timeline, for Perfetto",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", metavar="DIR", help="a run, or anything above it; traces need no run")
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="the file to write; with .gz at its end it is compressed"
    )
    parser.add_argument("--step", type=int, metavar="N", help="only what belongs to this step")
    parser.add_argument("--no-traces", action="store_true", help="only what the journals say")
    parser.add_argument(
        "--format", choices=("protobuf", "json"), default="protobuf",
        help="protobuf is Perfetto's own; json is for programs that read Chrome's format alone (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace FILE if it is there")
    parser.add_argument("--json", action="store_true", help="say what was written as one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return 0 if the file was written, else 2."""
    from profwin.evidence.escaping import printable
    from profwin.evidence.timeline import draw_timeline

    try:
        with Progress("timeline", "reading the journals") as progress:
            timeline = draw_timeline(
                arguments.directory,
                arguments.output,
                step=arguments.step,
                traces=not arguments.no_traces,
                kind=arguments.format,
                force=arguments.force,
                progress=progress.read,
            )
    except FileExistsError:
        return _failed(f"{printable(arguments.output)} is there already, or is no file; --force replaces a file")
    except OSError as error:
        where = f" {printable(str(error.filename))}:" if error.filename else ""
        return _failed(f"nothing was written:{where} {error.strerror or error}")
    except ValueError as error:
        return _failed(f"nothing was written: {printable(str(error))}")
    if arguments.json:
        show_json(timeline.as_json())
    else:
        show(_text(timeline, arguments.output))
    return 0


def _failed(why: str) -> int:
    print(f"profwin: {why}", file=sys.stderr)
    return 2


def _text(timeline: Timeline, output: str) -> str:
    from profwin.evidence.escaping import printable

    traces = f"{timeline.read:,} of {len(timeline.files)} traces"
    read = f"events read: {timeline.records + timeline.read:,} ({timeline.records:,} of journals, {traces})"
    lines = [f"{printable(output)}: {timeline.size:,} bytes", f"{read}; written: {timeline.written:,}"]
    if timeline.other_steps:
        lines.append(f"traces of other steps: {timeline.other_steps}")
    lines += [f"note: {printable(note)}" for note in timeline.notes]
    left_out = [f"left out: {printable(path, 200)}: {printable(why)}" for path, why in timeline.left_out.items()]
    lines += left_out[:MOST_LINES]
    if len(left_out) > MOST_LINES:
        lines.append(f"left out: {len(left_out) - MOST_LINES} more; --json names them")
    return "\n".join(lines)
