"""``profwin nsys-options``: how to start a program under Nsight Systems, so that profwin can say when it records."""

from __future__ import annotations

from profwin.cli.printing import show, show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

__all__ = ["add_parser", "run"]

_DESCRIPTION = """
Print the options of `nsys profile` for a program that records with the backend nsys. Put them before the program:
$(profwin nsys-options) python train.py. Nothing is started, and nsys need not be installed.

Every window that is recorded is a capture range, and so is every stage; with collect="step" every window and every
step. One that is split, by paused() or by a window inside a step, counts once for each part.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``profwin``."""
    import argparse

    from profwin.backends.nsys_options import MODES

    parser = subparsers.add_parser(
        "nsys-options",
        help="print how to start a program under Nsight Systems",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--windows",
        type=_count,
        metavar="N",
        help="end the session of a process after N capture ranges; default: with the process",
    )
    parser.add_argument("--ray", action="store_true", help="print a Ray runtime environment, as JSON")
    parser.add_argument("--json", action="store_true", help="print the options as a JSON object")
    parser.add_argument("-o", "--output", metavar="NAME", help="the report; %%h is the host, %%p the process")
    parser.add_argument(
        "--gpu-metrics",
        metavar="DEVICES",
        help="sample the counters of these devices: all, cuda-visible, or nsys's numbers",
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="when a report is written: after all ranges, or at once, the program waiting (sync) or not;"
        " needs an nsys that knows it",
    )
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    import argparse

    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return 0."""
    import shlex

    from profwin.backends.nsys_options import command, environment, options

    found = options(arguments.windows, output=arguments.output, gpu_metrics=arguments.gpu_metrics, mode=arguments.mode)
    if arguments.ray:
        show_json(environment(found))
    elif arguments.json:
        show_json(found)
    else:
        show(shlex.join(command(found)))
    return 0
