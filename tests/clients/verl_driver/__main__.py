"""Print the tables: how many scenarios are clean, bare and with the plan."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from verl_driver.planned import Outcome
    from verl_driver.scenario import Scenario

_HOW = ("bare", "plan", "unordered", "unlocked")
_EXTRA = ("critic", "lend", "validate")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run scenarios and print what became of them; return 0 if all that ran with the plan are clean."""
    parser = argparse.ArgumentParser(prog="verl_driver", description=__doc__)
    parser.add_argument("--how", choices=_HOW, action="append", help="default: bare and plan")
    parser.add_argument("--only", default="", help="scenarios whose name has this text")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    parser.add_argument("--log", action="store_true", help="each scenario's log, too")
    parser.add_argument("--extra", choices=_EXTRA, action="append", default=[], help="add this to each scenario")
    options = parser.parse_args(arguments)
    quiet()
    from verl_driver.scenario import SCENARIOS

    scenarios = [_with(each, options.extra) for each in SCENARIOS if options.only in each.name]
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="verl_driver") as directory:
        for how in options.how or ("bare", "plan"):
            found[how] = [_result(each, how, directory, log=options.log) for each in scenarios]
            if not options.json:
                _print(how, found[how], log=options.log)
    if options.json:
        print(json.dumps(found, indent=1))
    return 0 if all(each["clean"] for each in found.get("plan", [])) else 1


def quiet() -> None:
    """Keep what verl says when it is imported on a machine without accelerator off the tables."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    os.environ["TQDM_DISABLE"] = "1"
    os.environ["VERL_LOGGING_LEVEL"] = "ERROR"


def _with(scenario: Scenario, extra: Sequence[str]) -> Scenario:
    from dataclasses import replace

    return replace(scenario, **dict.fromkeys(extra, True))


def _result(scenario: Scenario, how: str, directory: str, *, log: bool) -> dict[str, Any]:
    from contextlib import redirect_stdout

    from verl_driver.devicelog import judge

    with redirect_stdout(sys.stderr):  # verl prints from inside its profilers
        outcome = _drive(scenario, how, directory)
    verdict = judge(outcome.entries)
    result = {
        "scenario": scenario.name,
        "clean": verdict.clean,
        **verdict.counts(),
        "where": verdict.where,
        "failed": outcome.failed,
        "findings": outcome.findings,
        "open": outcome.open,
        "segments": _segments(outcome.directory),
    }
    if log:
        result["log"] = [str(entry) for entry in outcome.entries]
    return result


def _drive(scenario: Scenario, how: str, directory: str) -> Outcome:
    from verl_driver.planned import drive_bare, drive_planned, shipped, without_order

    if how == "bare":
        return drive_bare(scenario)
    own = tempfile.mkdtemp(dir=directory)
    plan = shipped() if how == "plan" else without_order(shipped())
    return drive_planned(scenario, own, plan, locked=how != "unlocked")


def _segments(directory: str | None) -> list[dict[str, Any]]:
    """Return what the run's manifest says of its training collections."""
    if directory is None:
        return []
    with open(os.path.join(directory, "manifest.json"), encoding="utf-8") as file:
        return [each for each in _collections(json.load(file)) if each.get("purpose") == "training"]


def _collections(value: object) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        here = [value] if "segment" in value else []
        return here + [each for inner in value.values() for each in _collections(inner)]
    if isinstance(value, list):
        return [each for inner in value for each in _collections(inner)]
    return []


def _print(how: str, results: list[dict[str, Any]], *, log: bool) -> None:
    columns = ("overlaps", "stops_of_nothing", "unrecorded_generation", "unrecorded_work", "left_recording")
    heads = ("overlaps", "stops of nothing", "generation lost", "work lost", "left recording")
    print(f"\n{how}\n{'scenario':<50}" + "".join(f"{head:>17}" for head in heads))
    for each in results:
        mark = "" if each["clean"] else "  x"
        print(f"{each['scenario']:<50}" + "".join(f"{each[column]:>17}" for column in columns) + mark)
        for line in each.get("log", ()) if log else ():
            print("    " + line)
    clean = sum(each["clean"] for each in results)
    print(
        f"{f'{clean} of {len(results)} clean':<50}"
        + "".join(f"{sum(each[column] for each in results):>17}" for column in columns)
    )


if __name__ == "__main__":
    sys.exit(main())
