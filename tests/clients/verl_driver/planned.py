"""A scenario with the plan: profwin records the stages, and opens and closes the windows of the fake engines."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from unittest.mock import patch

import profwin
from profwin.configuration import current
from profwin.patch.installation import install, uninstall
from profwin.patch.reading import read_plan
from profwin.testing import read_record
from profwin.testing.backend import control
from verl_driver.devicelog import PROFILED, DeviceLog
from verl_driver.trainer import HYBRID, make, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.patch.plan import Plan
    from profwin.testing.backend import Act
    from verl_driver.devicelog import Entry
    from verl_driver.scenario import Scenario

__all__ = ["Outcome", "drive_bare", "drive_planned", "without_order"]

_TOLD = ("samples_in_hand", "devices_to_training", "step_ends")


@dataclass
class Outcome:
    """What a scenario left.

    Attributes:
        entries: the log.
        failed: whether a stage's fault ended the run.
        directory: of profwin's run, with the plan.
        findings: codes of what the journals find.
        open: what profwin itself thinks is open at the end, before its shutdown.
    """

    entries: list[Entry]
    failed: bool
    directory: str | None = None
    findings: tuple[str, ...] = ()
    open: int = 0


class _Acts(list):
    """The acts of profwin's ``testing`` backend; those of training go to the log."""

    def __init__(self, log: DeviceLog) -> None:
        super().__init__()
        self._log = log

    def append(self, act: Act) -> None:
        super().append(act)
        if act.purpose == "training" and act.action in ("enter", "exit"):
            self._log.note("start" if act.action == "enter" else "stop", "training", HYBRID, "profwin")


def drive_bare(scenario: Scenario) -> Outcome:
    """Run a scenario as verl is."""
    log = DeviceLog()
    failed = run(make(scenario, log))
    return Outcome(log.entries, failed)


def drive_planned(scenario: Scenario, directory: str, plan: Plan | None = None, *, locked: bool = True) -> Outcome:
    """Run a scenario with the plan.

    Args:
        scenario: what to run.
        directory: where profwin's files go.
        plan: instead of the one that is shipped.
        locked: whether device locks, and the rules in this process that go with them, hold.
    """
    log = DeviceLog()
    locks = tempfile.mkdtemp(prefix="locks", dir=directory)
    os.chmod(locks, 0o1777)
    profwin.configure(
        steps=list(PROFILED),
        backend="testing",
        devices=f"pretend:{HYBRID}",
        collect="stage" if scenario.discrete else "step",
        continuous=scenario.continuous and not scenario.discrete,
        output=directory,
        lock_dir=locks,
    )
    control.acts = _Acts(log)
    install(plan or shipped())
    try:
        with _unlocked() if not locked else _nothing():
            failed = run(make(scenario, log))
        session = current()
        left = len(session.owner.collections)
        entries, run_directory = list(log.entries), session.run.directory
    finally:
        uninstall()
        profwin.shutdown()
        control.reset()
    record = read_record(run_directory)
    return Outcome(entries, failed, run_directory, tuple(code for code, _detail in record.findings), left)


def shipped() -> Plan:
    """Return the plan that profwin ships, without settings out of the configuration: scenarios give their own."""
    return replace(read_plan("verl"), configure=None)


def without_order(plan: Plan) -> Plan:
    """Return a plan whose loops are not told what ends a window: that samples are in hand or devices handed over."""

    def thinned(events: tuple) -> tuple:
        return tuple(event for event in events if event.event not in _TOLD)

    patches = [replace(each, before=thinned(each.before), after=thinned(each.after)) for each in plan.patches]
    kept = tuple(each for each in patches if each.role != "events" or each.before or each.after or each.error)
    return replace(plan, patches=kept)


@contextmanager
def _unlocked() -> Iterator[None]:
    """Let nothing share a device with anything: neither locks nor the rules in this process see a conflict then."""
    numbers = count()
    with patch("profwin.session.Session.keys", lambda session, names, engine: (f"pretend-{next(numbers)}",)):
        yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield
