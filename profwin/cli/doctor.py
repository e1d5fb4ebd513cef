"""``profwin doctor``: what can record here, what cannot, and why."""

from __future__ import annotations

from profwin.cli.printing import Progress, show, show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from profwin.doctor import Examination
    from profwin.doctor.line import Line

__all__ = ["add_parser", "run"]

_DESCRIPTION = """
Say which backends and engines can be used here, and why the others cannot;
which devices there are, by the keys that their locks have; where the locks lie
and who holds them; and which other profilers and settings that get in the way
can be seen. Nothing is recorded or changed, and no context is made on a device.

Run it as the training is run: on the same host, in the same container and
environment, under the same launcher.
"""
_EPILOG = """
Exit status: 0 what was asked for can record, as far as can be seen; 1 something
keeps a backend that was asked for, or a server that was named, from recording;
2 wrong usage.
"""
_WIDTH = 80
_LONGEST_NAME = 22
"""Columns of a name; a longer one has a line of its own."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``profwin``."""
    import argparse

    parser = subparsers.add_parser(
        "doctor",
        help="say what can record here, what cannot, and why",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="a backend that has to work; repeat for more (default: PROFWIN_BACKEND, else record)",
    )
    parser.add_argument(
        "--url",
        action="append",
        default=[],
        metavar="URL",
        help="of a vLLM or SGLang server to look at: which one it is, whether its profiler is configured, its"
        " processes and devices; repeat for more",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a listing")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command.

    Returns:
        0; 1 where something that was asked for cannot record.
    """
    from profwin.doctor import Host, examine

    with Progress("doctor", "looking") as progress:

        def say(what: str) -> None:
            progress.state = f"looking at {what}"

        found = examine(Host(say=say), arguments.backend, arguments.url)
    if arguments.json:
        show_json(_json(found))
    else:
        show("\n".join(_listing(found)))
    return 1 if found.problems else 0


def _json(found: Examination) -> dict[str, object]:
    import msgspec

    import profwin

    return {
        "profwin": profwin.__version__,
        "schema": 1,
        "asked": list(found.asked),
        "problems": found.problems,
        "sections": {name: [msgspec.to_builtins(line) for line in lines] for name, lines in found.sections.items()},
    }


def _listing(found: Examination) -> Iterator[str]:
    for name, lines in found.sections.items():
        yield name.replace("_", " ")
        width = min(_LONGEST_NAME, max((len(line.name) for line in lines), default=0))
        for line in lines:
            yield from _shown(line, width)
        yield ""
    asked = ", ".join(found.asked)
    if not found.problems:
        yield f"Nothing that can be seen keeps {asked} from recording."
        return
    yield f"Asked for: {asked}. This does not work:"
    for problem in found.problems:
        yield from _wrapped(problem, "- ", 2)


def _shown(line: Line, width: int) -> Iterator[str]:
    from profwin.evidence.escaping import printable

    name = printable(line.name)
    start = f"  {line.state:<7}  {name:<{width}}  "
    indent = 2 + 7 + 2 + width + 2
    if len(name) > width:
        yield start.rstrip()
        start = " " * indent
    yield from _wrapped(line.detail, start, indent)
    if line.remedy is not None:
        yield from _wrapped(line.remedy, " " * indent + "-> ", indent + 3)


def _wrapped(text: str, start: str, indent: int) -> list[str]:
    """Fold a text to the width, after a beginning; what cannot be parted, such as a path, stays whole."""
    import textwrap

    from profwin.evidence.escaping import printable

    return textwrap.wrap(
        printable(text),
        _WIDTH,
        initial_indent=start,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [start.rstrip()]
