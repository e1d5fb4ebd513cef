"""Print what became of the scenarios, bare and with the plan."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import redirect_stdout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fully_async_driver.scenario import Scenario


def main(arguments: Sequence[str] | None = None) -> int:
    """Run scenarios and print what became of them."""
    parser = argparse.ArgumentParser(prog="fully_async_driver", description=__doc__)
    parser.add_argument("--how", choices=("bare", "plan"), action="append", help="default: both, without --dropped")
    parser.add_argument("--only", default="", help="scenarios whose name has this text")
    parser.add_argument("--without", action="append", default=[], help="leave these targets of the plan out")
    parser.add_argument("--dropped", action="append", default=[], metavar="TARGET@TEXT", help="one after the other: "
                        "the scenarios whose name has the text, with the plan without the target")  # fmt: skip
    parser.add_argument("--worker", metavar="TARGET", help="what a worker does by itself, with and without the target")
    parser.add_argument("--settings", action="append", default=[], metavar="OVERRIDES", help="profwin's settings for "
                        "verl's configuration with these overrides, with spaces in between")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--log", action="store_true", help="each scenario's log, too")
    options = parser.parse_args(arguments)
    from verl_driver.__main__ import quiet

    quiet()
    with redirect_stdout(sys.stderr):
        from fully_async_driver.scenario import SCENARIOS
    found: dict[str, Any] = {}
    ways = options.how or ([] if options.dropped else ["bare", "plan"])
    runs = [(how, how, options.without, options.only) for how in ways]
    runs += [(each, "plan", [each.partition("@")[0]], each.partition("@")[2]) for each in options.dropped]
    with tempfile.TemporaryDirectory(prefix="fully_async_driver") as directory:
        for name, how, without, text in runs:
            found[name] = {}
            for scenario in SCENARIOS:
                if text in scenario.name:
                    with redirect_stdout(sys.stderr):  # verl prints much
                        result = _result(scenario, how, directory, without, log=options.log)
                    found[name][scenario.name] = result
                    if not options.json:
                        _print(how, scenario.name, result)
        found |= _others(options.worker, options.settings, directory)
    if options.json:
        print(json.dumps(found, indent=1))
    return 0


def _result(scenario: Scenario, how: str, directory: str, without: Sequence[str], *, log: bool) -> dict[str, Any]:
    from fully_async_driver.planned import drive_bare, drive_planned
    from fully_async_driver.scenario import judge

    if how == "bare":
        entries, result = drive_bare(scenario)
    else:
        entries, result = drive_planned(scenario, tempfile.mkdtemp(dir=directory), without)
    broken, where = judge(entries, scenario.steps)
    result = {"broken": dict(broken), "where": where, **result}
    if log:
        result["log"] = [str(entry) for entry in entries]
    return result


def _others(target: str | None, settings: Sequence[str], directory: str) -> dict[str, Any]:
    """Return what else was asked for, here too: importing verl takes longer than all of it."""
    from fully_async_driver.settings import settings_of
    from fully_async_driver.worker import drive

    found: dict[str, Any] = {}
    with redirect_stdout(sys.stderr):
        if target is not None:
            found["worker"] = [drive(without, tempfile.mkdtemp(dir=directory)) for without in ([], [target])]
        if settings:
            place = tempfile.mkdtemp(dir=directory)
            found["settings"] = [settings_of(overrides.split(), place) for overrides in settings]
    return found


def _print(how: str, name: str, result: dict[str, Any]) -> None:
    print(f"{how:<5} {name:<40} {result['ended']:<6}", " ".join(f"{k}={v}" for k, v in result["broken"].items()))
    for line in result.get("log", ()):
        print("    " + line)


if __name__ == "__main__":
    sys.exit(main())
