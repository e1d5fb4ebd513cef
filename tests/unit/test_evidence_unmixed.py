"""Unmixed: each code is raised by journals of a run that is mixed, and not by some that are nearly the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from journal_builder import SECOND, JournalBuilder, make_run

from profwin.evidence.run import load
from profwin.evidence.unmixed import unmixed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from profwin.evidence.finding import Finding


def found(directory: Path) -> list[Finding]:
    """Return what is mixed in a run, whose journals must not be damaged."""
    run = load(str(directory))
    assert not run.findings, run.findings
    return list(unmixed(run))


def codes(directory: Path) -> Counter[str]:
    """Return how often each code is raised."""
    return Counter(finding.code.name for finding in found(directory))


def pair(directory: Path, **other: Any) -> tuple[JournalBuilder, JournalBuilder]:
    """Return the journals of an engine's driver and of a trainer, each with an end in order."""
    driver = JournalBuilder(directory, "driver", pid=1)
    trainer = JournalBuilder(directory, "trainer", pid=2, **other)
    return driver, trainer


def save(*journals: JournalBuilder) -> None:
    """Let processes end in order."""
    for journal in journals:
        journal.end().save()


def test_a_whole_run_is_unmixed(tmp_path: Path) -> None:
    """Windows and stages that take turns give no finding on any of four devices."""
    make_run(tmp_path, ranks=4, steps=3)
    assert not found(tmp_path)


@pytest.mark.parametrize(
    ("begin", "devices", "expected"),
    [
        (1.5, ("gpu-0",), {"overlap": 1, "handover-order": 1}),
        (2.0, ("gpu-0",), {}),
        (1.5, ("gpu-1",), {}),
        (1.5, ("gpu-1", "gpu-0"), {"overlap": 1, "handover-order": 1}),
    ],
)
def test_rollout_and_training_at_once(
    tmp_path: Path, begin: float, devices: tuple[str, ...], expected: dict[str, int]
) -> None:
    """A training recording may begin on a device when the window's has been closed, not before."""
    driver, trainer = pair(tmp_path)
    driver.window(2, 1, 2)
    trainer.stage(2, begin, 3, devices=devices)
    save(driver, trainer)
    assert codes(tmp_path) == expected


def test_the_order_is_that_of_the_monotonic_clock(tmp_path: Path) -> None:
    """A wall clock that was set between two processes' beginnings neither makes nor hides an overlap."""
    driver, trainer = pair(tmp_path, fields={"wall": 5 * SECOND})
    driver.window(2, 1, 2)
    trainer.stage(2, 2, 3)
    save(driver, trainer)
    assert not found(tmp_path)


def test_devices_of_different_hosts_are_not_compared(tmp_path: Path) -> None:
    """A device key that two boots have is two devices."""
    driver, trainer = pair(tmp_path, boot="another-boot")
    driver.window(2, 1, 3)
    trainer.stage(2, 2, 4)
    save(driver, trainer)
    assert not found(tmp_path)


def test_processes_without_devices_stand_for_their_own(tmp_path: Path) -> None:
    """Two processes that know no device exclude nobody but themselves."""
    driver, trainer = pair(tmp_path)
    driver.window(2, 1, 3, devices=())
    trainer.stage(2, 2, 4, devices=())
    save(driver, trainer)
    assert not found(tmp_path)
    driver.lines.pop()
    driver.stage(2, 2.5, 2.7, devices=())
    save(driver)
    assert codes(tmp_path) == {"overlap": 1, "handover-order": 1}


def test_two_trainings_of_one_device(tmp_path: Path) -> None:
    """Two processes that trained on one device at once are said, without a mixture of rollout and training."""
    driver, trainer = pair(tmp_path)
    driver.stage(2, 1, 3)
    trainer.stage(2, 2, 4)
    save(driver, trainer)
    (finding,) = found(tmp_path)
    assert finding.code.name == "shared-device"
    first, second = (
        f"training 'update' of step 2 by {each.role} (rank 0, pid {each.pid})" for each in (driver, trainer)
    )
    assert finding.detail == f"device 'gpu-0': {first} and {second}, together for 1.000000 s"


def test_one_process_twice_on_a_device(tmp_path: Path) -> None:
    """Two recordings of one process at once are said too, and the process is named once."""
    journal = JournalBuilder(tmp_path)
    journal.stage(2, 1, 3)
    journal.stage(2, 2, 4, name="critic")
    save(journal)
    (finding,) = found(tmp_path)
    assert finding.code.name == "shared-device"
    both = "training 'update' of step 2 and training 'critic' of step 2, both by actor (rank 0, pid 100)"
    assert finding.detail == f"device 'gpu-0': {both}, together for 1.000000 s"
    assert "processes recorded" not in finding.code.meaning


def test_an_overlap_behind_shorter_ones_is_found(tmp_path: Path) -> None:
    """A long recording is still compared with others after many short ones came and went inside it."""
    driver, trainer = pair(tmp_path)
    driver.window(2, 1, 100)
    for number in range(10):
        trainer.stage(2, 2 + number, 2.5 + number, occurrence=number + 1)
    save(driver, trainer)
    assert codes(tmp_path)["overlap"] == 10


def test_the_longest_of_many_at_once_is_kept_in_mind(tmp_path: Path) -> None:
    """Whatever else is open, a recording that is still open when another begins is found."""
    driver, trainer = pair(tmp_path)
    for end in (100, 3, 4, 5, 6):
        driver.window(2, 1, end)
    trainer.stage(2, 50, 51)
    save(driver, trainer)
    assert codes(tmp_path)["overlap"] == 1


def test_stages_that_began_inside_a_window(tmp_path: Path) -> None:
    """A stage that ran unrecorded while the window's driver waited for it is named with both places."""
    driver, trainer = pair(tmp_path)
    driver.window(2, 1, 5)
    trainer.skipped("stage", "update", 2, 2, 3, "busy", device="gpu-0")
    save(driver, trainer)
    (finding,) = found(tmp_path)
    assert finding.code.name == "handover-order"
    assert (finding.data["stage_site"], finding.data["window_site"]) == ("train.py:20", "train.py:10")


def test_a_span_of_the_windows_own_recording_is_in_order(tmp_path: Path) -> None:
    """A stage on other devices of a process that records a window becomes a span of it."""
    journal = JournalBuilder(tmp_path)
    _, collection = journal.window(2, 1, 5, devices=("gpu-0", "gpu-1"))
    fields = {"what": "stage", "name": "update", "step": 2, "devices": ["gpu-1"], "collection": collection}
    journal.write("enter", 2, id=50, **fields).write("exit", 3, id=50, status="ok")
    save(journal)
    assert not found(tmp_path)


@pytest.mark.parametrize(
    ("confirmed", "expected"),
    [(2.0, {}), (2.7, {"unconfirmed-handover": 1}), (None, {"unconfirmed-handover": 1, "no-stop": 1})],
)
def test_a_stop_must_be_confirmed_before_training(
    tmp_path: Path, confirmed: float | None, expected: dict[str, int]
) -> None:
    """Training that begins before an engine's stop is confirmed is said, and a stop that never is."""
    driver, trainer = pair(tmp_path)
    driver.window(2, 1, 2)
    driver.write("mark", 1, devices=["gpu-0"], processes=[77])
    if confirmed is not None:
        driver.write("confirmed", confirmed, devices=["gpu-0"], processes=[77])
    trainer.stage(2, 2.5, 3)
    save(driver, trainer)
    assert codes(tmp_path) == expected


@pytest.mark.parametrize(
    ("proven", "device", "expected"),
    [
        (2.4, "gpu-0", {}),
        (2.4, "gpu-1", {"unconfirmed-handover": 1, "no-stop": 1}),
        (2.7, "gpu-0", {"unconfirmed-handover": 1}),
        (0.5, "gpu-0", {"unconfirmed-handover": 1, "no-stop": 1}),
    ],
)
def test_who_takes_the_device_proves_an_engine_gone(
    tmp_path: Path, proven: float, device: str, expected: dict[str, int]
) -> None:
    """An engine whose process died with its mark is as good as stopped, from when another process found that out."""
    driver, trainer = pair(tmp_path)
    driver.window(2, 1, 2)
    driver.write("mark", 1, devices=["gpu-0"], processes=[77])
    trainer.write("confirmed", proven, devices=[device], processes=[77])
    trainer.stage(2, 2.5, 3)
    save(driver, trainer)
    assert codes(tmp_path) == expected


def test_a_stop_that_was_never_confirmed_and_harmed_nobody(tmp_path: Path) -> None:
    """It is said all the same: the engine may still record."""
    journal = JournalBuilder(tmp_path)
    journal.write("mark", 1, devices=["gpu-0"], processes=[77])
    save(journal)
    (finding,) = found(tmp_path)
    assert (finding.code.name, finding.data) == ("no-stop", {"devices": ["gpu-0"], "processes": [77]})


@pytest.mark.parametrize(
    ("reason", "closed", "expected"),
    [
        ("handover", 1.5, {"window-closed-early": 1}),
        ("handover", 2.5, {}),
        ("asked", 1.5, {"gave-way": 1}),
        ("asked", 2.5, {}),
        ("stale", 1.5, {"stale-window": 1}),
        ("end", None, {}),
    ],
)
def test_windows_that_were_taken(tmp_path: Path, reason: str, closed: float | None, expected: dict[str, int]) -> None:
    """A window that something else ended before its body was over is said; one whose body was over is not."""
    journal = JournalBuilder(tmp_path)
    journal.window(2, 1, 2, reason=reason, closed=closed)
    save(journal)
    assert codes(tmp_path) == expected


def test_who_took_a_window_is_named(tmp_path: Path) -> None:
    """The stage and both places of a handover, and the process that asked, are in the finding."""
    journal = JournalBuilder(tmp_path)
    sites = {"stage": "update", "stage_site": "train.py:9", "window": "rollout", "window_site": "loop.py:3"}
    journal.write("overlap", 1.4, id=9, **sites)
    journal.window(2, 1, 2, reason="handover", closed=1.5)
    _, collection = journal.window(4, 3, 5, reason="asked", closed=4, status="ok")
    journal.write("asked", 3.9, collection=collection, asker=4711, purpose="training", name="critic", step=4)
    save(journal)
    early, asked = found(tmp_path)
    assert "by stage 'update' at train.py:9; the window began at loop.py:3" in early.detail
    assert "by pid 4711 for training 'critic' of step 4" in asked.detail


def test_a_process_that_died_while_it_recorded(tmp_path: Path) -> None:
    """A recording that is never closed is a death if the journal has no end, else a bug; a mere death is a remark."""
    journal = JournalBuilder(tmp_path)
    journal.stage(2, 1, 2)
    journal.save()
    assert codes(tmp_path) == {"no-end": 1}
    journal.window(4, 3, 4, reason=None, status=None)
    journal.save()
    assert codes(tmp_path) == {"died-recording": 1}
    save(journal)
    assert codes(tmp_path) == {"never-closed": 1}


def test_a_dead_process_holds_nothing_after_its_last_record(tmp_path: Path) -> None:
    """Its locks went with it, so a later recording of another process is no overlap."""
    driver, trainer = pair(tmp_path)
    driver.window(2, 1, 2, reason=None, status=None)
    driver.save()
    trainer.stage(2, 1.5, 3)
    save(trainer)
    assert codes(tmp_path) == {"died-recording": 1}


def test_lost_locks(tmp_path: Path) -> None:
    """A lock file that went away during a recording is said with its device."""
    journal = JournalBuilder(tmp_path)
    journal.write("lost", 1.9, device="gpu-0", collection=2)
    journal.stage(2, 1, 2)
    save(journal)
    (finding,) = found(tmp_path)
    assert (finding.code.name, finding.data) == ("lost-lock", {"device": "gpu-0"})


@pytest.mark.parametrize("code", ["late-stop", "engine-died"])
def test_what_engines_did_has_codes_of_its_own(tmp_path: Path, code: str) -> None:
    """A late stop and a death of an engine are said under their names, other notes are not said here."""
    journal = JournalBuilder(tmp_path)
    journal.write("finding", 1, code=code, detail="so").write("finding", 1, code="no-board", detail="so")
    save(journal)
    assert codes(tmp_path) == {code: 1}
