"""``profwin plan``: which plans there are, what one patches, and whether it fits what is installed."""

from __future__ import annotations

import os
import sys

from profwin.cli.printing import show, show_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

    from profwin.patch.checking import Result
    from profwin.patch.plan import Plan

__all__ = ["add_parser", "run"]

_DESCRIPTION = """
A plan says which callables of a program are rollout windows, training stages, steps, weight syncs and pauses, so
that `profwin run` can profile the program without a change to it.
"""

_LIST = """
List the plans that profwin ships: what each is for, and what of that is installed in this environment.
"""

_SHOW = """
Show what a plan patches: each target, what it is, and where its step, engine and devices are found.
"""

_CHECK = """
Check that a plan fits the code that it is for. This imports the modules of the plan's targets, in this process and so
in this environment: run it with the Python that runs the training, and in the directory where that is started. Versions
of packages, every target, and the parameters that paths begin at are looked up; nothing is patched.
"""

_STATUS = """
Exit status: 0 the plan fits; 1 it has problems, each of which is printed; 2 the plan could not be read.
"""

_NAMES = "a shipped plan's name or the path of a TOML file; several, separated by commas, are taken together"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    import argparse

    def command(
        parsers: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, description: str
    ) -> argparse.ArgumentParser:
        return parsers.add_parser(
            name,
            help=summary,
            description=description,
            epilog=_STATUS if name == "check" else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    parser = command(commands, "plan", "show and check what profwin run patches", _DESCRIPTION)
    kinds = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    actions: tuple[tuple[str, str, str, Callable[[argparse.Namespace], int]], ...] = (
        ("list", "list the plans that profwin ships", _LIST, _run_list),
        ("show", "show what a plan patches", _SHOW, _run_show),
        ("check", "check that a plan fits what is installed", _CHECK, _run_check),
    )
    for name, summary, description, action in actions:
        inner = command(kinds, name, summary, description)
        if name != "list":
            inner.add_argument("names", metavar="NAME|FILE", help=_NAMES)
        inner.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        inner.set_defaults(run=run, action=action)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; return 0, 1 where a plan has problems, or 2 where it could not be read."""
    return int(arguments.action(arguments))


def _run_list(arguments: argparse.Namespace) -> int:
    from profwin.patch.reading import read_plan, shipped

    plans = [read_plan(name) for name in shipped()]
    if arguments.json:
        show_json({"plans": [{**_about(plan), "installed": _installed(plan)} for plan in plans]})
    else:
        from profwin.patch.describing import summary

        show("\n".join(summary(plan, _installed(plan)) for plan in plans))
    return 0


def _run_show(arguments: argparse.Namespace) -> int:
    plans = _read(arguments.names)
    if isinstance(plans, int):
        return plans
    if arguments.json:
        show_json({"plans": [plan.to_json() for plan in plans]})
    else:
        from profwin.patch.describing import described

        show("\n".join(described(plan) for plan in plans))
    return 0


def _run_check(arguments: argparse.Namespace) -> int:
    plans = _read(arguments.names)
    if isinstance(plans, int):
        return plans
    from profwin.patch.checking import check

    if os.getcwd() not in sys.path:  # a console script has its own directory there; the program has this one
        sys.path.insert(0, os.getcwd())
    results = check(plans)
    fits = not any(result.problems for result in results)
    if arguments.json:
        show_json({"fits": fits, "plans": [_checked(result) for result in results]})
    else:
        show("\n".join(_checked_text(result) for result in results))
    return 0 if fits else 1


def _read(names: str) -> tuple[Plan, ...] | int:
    """Return the plans, or the exit status: 2 where there is nothing to read, 1 where what is read is no plan."""
    from profwin.errors import PlanError
    from profwin.patch.reading import plans_of, sources

    status = 2
    try:
        read = sources(names)
        status = 1
        return plans_of(read)
    except PlanError as error:
        print(f"profwin plan: {error}", file=sys.stderr)
        return status


def _about(plan: Plan) -> dict[str, Any]:
    document = plan.to_json()
    return {key: document.get(key, default) for key, default in (("name", ""), ("description", ""), ("package", []))}


def _installed(plan: Plan) -> dict[str, str | None]:
    from profwin.patch.versions import installed

    return {package.name: installed(package.name) for package in plan.packages}


def _checked(result: Result) -> dict[str, Any]:
    return {
        "name": result.plan.name,
        "fits": not result.problems,
        "matches": result.matches,
        "problems": result.problems,
        "notes": result.notes,
    }


def _checked_text(result: Result) -> str:
    from profwin.evidence.escaping import printable

    lines = [f"  problem: {printable(each, 1000)}" for each in result.problems]
    lines += [f"  note: {printable(each, 1000)}" for each in result.notes]
    found = f"{len(result.plan.patches)} patches, {result.matches} targets found"
    said = f"{len(result.problems)} problems" if result.problems else "fits"
    return "\n".join([f"{result.plan.name}: {said} ({found})", *lines])
