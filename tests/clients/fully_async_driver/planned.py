"""A scenario bare, and with the plan: profwin records the stages, and starts and stops the engines' profilers."""

from __future__ import annotations

import os
from dataclasses import replace

from verl_driver.devicelog import DeviceLog

import profwin
from fully_async_driver.remote import Actors
from fully_async_driver.scenario import HYBRID
from fully_async_driver.trainer import make, run
from profwin.configuration import current
from profwin.patch.installation import install, uninstall
from profwin.patch.reading import read_plan
from profwin.testing import read_record
from profwin.testing.backend import control

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from verl_driver.devicelog import Entry

    from fully_async_driver.scenario import Scenario
    from profwin.patch.plan import Plan
    from profwin.testing.backend import Act

__all__ = ["Acts", "drive_bare", "drive_planned", "plan"]

_BUDGET, _PATIENCE = 3.0, 60.0
"""Seconds: what is waited for an engine that never answers, or too late, and for one that does answer."""


class Acts(list):  # type: ignore[type-arg]  # of anything
    """The acts of profwin's ``testing`` backend; those of training go to the log."""

    def __init__(self, log: DeviceLog) -> None:
        super().__init__()
        self._log = log

    def append(self, act: Act) -> None:
        """Add an act, and a line of the log for what is of training."""
        super().append(act)
        if act.purpose == "training" and act.action in ("enter", "exit"):
            self._log.note("start" if act.action == "enter" else "stop", "training", HYBRID, "profwin")


def drive_bare(scenario: Scenario) -> tuple[list[Entry], dict[str, Any]]:
    """Run a scenario as verl is; return the log, and how it ended."""
    log, actors = DeviceLog(), Actors()
    try:
        seconds = 2.0 if scenario.late else _PATIENCE
        ended = run(make(scenario, log, actors), validates=bool(scenario.validates), seconds=seconds)
        entries = list(log.entries)
    finally:
        actors.close()
    return entries, {"ended": ended}


def drive_planned(scenario: Scenario, directory: str, without: Sequence[str]) -> tuple[list[Entry], dict[str, Any]]:
    """Run a scenario with the plan, all in one process; return the log, and what profwin says of it.

    Args:
        scenario: what to run.
        directory: where profwin's files go.
        without: ends of targets that are left out of the plan.
    """
    os.chmod(directory, 0o1777)
    log, actors = DeviceLog(), Actors()
    profwin.configure(
        steps=list(scenario.steps),
        backend="testing",
        devices="pretend:trainer",
        collect="stage" if scenario.discrete else "step",
        wait_budget=_BUDGET if scenario.late else _PATIENCE,
        output=directory,
        lock_dir=directory,
    )
    control.acts = Acts(log)
    install(plan(without))
    try:
        ended = run(make(scenario, log, actors), validates=bool(scenario.validates), seconds=60)
        session = current()
        left, run_directory, entries = len(session.owner.collections), session.run.directory, list(log.entries)
    finally:
        actors.close()
        uninstall()
        profwin.shutdown()
        control.reset()
    record = read_record(run_directory)
    return entries, {
        "ended": ended,
        "open": left,
        "findings": [code for code, _detail in record.findings],
        "windows": [[each.step, each.name] for each in record.collections if each.purpose == "rollout"],
        "skips": [[each.step, each.name, each.skip.reason] for each in record.intervals if each.skip is not None],
    }


def plan(without: Sequence[str] = ()) -> Plan:
    """Return the plan that profwin ships, but for the settings out of verl's configuration: scenarios give theirs."""
    whole = replace(read_plan("verl-fully-async"), configure=None)
    kept = tuple(each for each in whole.patches if not any(each.target.endswith(end) for end in without))
    if len(kept) != len(whole.patches) - len(without):
        raise ValueError(f"each of {without} must be the end of one target")
    loops = whole.loops if any(each.loop for each in kept) else ()
    return replace(whole, patches=kept, loops=loops)
