"""Clocks between hosts: estimates place other hosts' times within their uncertainty, whatever the wall clocks say."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from journal_builder import BOOT, SECOND, WALL, JournalBuilder
from timeline_support import draw, event, named, paths, write_trace

from profwin.evidence.alignment import within
from profwin.evidence.check import check
from profwin.evidence.clocks import DRIFT, Clocks, Link, drifted
from profwin.evidence.page import page
from profwin.evidence.report import as_json, gather
from profwin.evidence.report_text import report_text
from profwin.testing import assert_no_overlap, read_record

B, C = "bbbb0000-0000-4000-8000-000000000000", "cccc0000-0000-4000-8000-000000000000"
HOUR = 3600 * SECOND
DEVICE = "gpu-0"
UNCERTAINTY = 400_000


def test_between_two_estimates_lies_a_line():
    """Between two estimates the offset is interpolated; beyond them the nearest one's counts, and is less exact."""
    link = Link([(0, 1000, 10), (100 * SECOND, 3000, 10)])
    assert [link.at(time * SECOND)[0] for time in (-50, 0, 25, 50, 100, 400)] == [1000, 1000, 1500, 2000, 3000, 3000]
    assert [link.at(time * SECOND)[1] for time in (0, 100, 400)] == [10, 10, 10 + 300 * DRIFT * 1000]
    assert link.at(-SECOND)[1] == 10 + DRIFT * 1000
    assert link.at(50 * SECOND)[1] == 10 + 50 * DRIFT * 1000 - 1000  # what each side alone allows, met by the other


def test_estimates_that_contradict_the_drift():
    """Where a clock jumped, as after sleep, everything between the two estimates is possible, and nothing is denied."""
    link = Link([(0, 0, 10), (SECOND, HOUR, 10)])
    assert not link.steady
    offset, uncertainty = link.at(SECOND // 2)
    assert offset - uncertainty <= -10
    assert offset + uncertainty >= HOUR + 10
    assert link.at(-SECOND)[0] == 0


def estimate(own, other, offset, uncertainty, at=0):
    """Return an estimate that a process of a boot made."""
    return SimpleNamespace(
        process=SimpleNamespace(boot=own), boot=other, host="", at=at, offset=offset, uncertainty=uncertainty
    )  # fmt: skip


def test_chains():
    """A measured B, C measured B: C is placed by way of B, against the direction too, and uncertainties add up."""
    clocks = Clocks([estimate("a", "b", 1000, 5), estimate("c", "b", 300, 7)], ["a", "b", "c", "d"])
    assert clocks.leads == {"a": "a", "b": "a", "c": "a", "d": "d"}
    assert clocks.place("a", 50) == (50, 0)
    time, uncertainty = clocks.place("b", 1050)
    assert (time, uncertainty) == (50, 5 + 1 + drifted(1050 - 1000))
    time, uncertainty = clocks.place("c", 750)
    assert time == 50
    assert 12 <= uncertainty <= 16
    assert clocks.place("d", 50) == (50, 0)


def test_the_way_with_the_least_uncertainty():
    """A direct measurement does not count where a detour is more exact."""
    clocks = Clocks(
        [estimate("a", "c", 0, 10**9), estimate("a", "b", 100, 5), estimate("b", "c", 200, 5)], ["a", "b", "c"]
    )  # fmt: skip
    assert clocks.place("c", 300)[0] == 0


def run_on_two_hosts(directory, *, wall=0, offset=7 * HOUR, estimates=True, boot=B, host="b"):
    """Write a window on host ``a`` and stages on ``b``, whose monotonic clock is `offset` ahead, its wall clock `wall`.

    Returns:
        The actor's path of its trace.
    """
    driver = JournalBuilder(directory, "driver", None, pid=90, host="a", fields={"root": True})
    driver.window(2, 10, 20)
    for at in (9, 20, 31) if estimates else ():
        driver.write(
            "clock", at, boot=boot, host=host, at=driver.clock + at * SECOND, offset=offset, uncertainty=UNCERTAINTY
        )  # fmt: skip
    driver.end(60).save()
    path = write_trace(
        directory, "step_000002/train/update/b.pt.trace.json.gz", [event("mm", 21e6, 10)], base=WALL + wall
    )  # fmt: skip
    actor = JournalBuilder(
        directory, "actor", None, pid=200, boot=boot, host=host, clock=driver.clock + offset,
        fields={"wall": WALL + wall},
    )  # fmt: skip
    actor.window(2, 10, 20)
    actor.stage(2, 20.5, 30, trace=(path, 1))
    actor.end(60).save()
    return path


@pytest.mark.parametrize("wall", [0, 5 * HOUR, -5 * HOUR, 20 * SECOND])
def test_a_host_is_placed_by_its_measured_clock(tmp_path, wall):
    """Hours between the hosts' clocks, of either kind, move nothing: device, process and trace are right."""
    run_on_two_hosts(tmp_path / "run", wall=wall)
    timeline, tracks = draw(tmp_path / "run")
    (group,) = {path[0] for path in paths(tracks) if path[0].startswith("devices of b")}
    assert group.startswith("devices of b (clock ±0.")
    ((first, last, *_), (start, end, *_)) = named(tracks, group, DEVICE).slices
    assert [each - WALL for each in (first, last, start, end)] == [10 * SECOND, 20 * SECOND, 20.5 * SECOND, 30 * SECOND]
    process = "actor (no rank, pid 200), b (clock ±"
    (trace,) = (track for track in tracks.values() if track.slices and "thread" in track.path[-1])
    assert trace.path[0].startswith(process)
    assert trace.slices[0][0] == WALL + 21 * SECOND
    assert not any("not aligned" in part for path in paths(tracks) for part in path)
    assert any("not used" in note and f"b {abs(wall) / 1e9:.3f} s" in note for note in timeline.notes) is bool(wall)
    assert [note for note in timeline.notes if "measured against that of host a: b ±0." in note]
    assert UNCERTAINTY / 1e9 <= timeline.clocks["b"] < 2 * UNCERTAINTY / 1e9
    assert any("measured the clock of b" in name for track in tracks.values() for _at, name, _ in track.instants)


@pytest.mark.parametrize("wall", [0, -5 * HOUR])
def test_one_step_of_a_host_whose_wall_clock_is_wrong(tmp_path, wall):
    """What is in the time of a step is told by the measured clock as well."""
    run_on_two_hosts(tmp_path / "run", wall=wall)
    _timeline, tracks = draw(tmp_path / "run", step=2)
    said = [(at - WALL, name) for track in tracks.values() for at, name, _data in track.instants]
    assert said == [(20 * SECOND, "measured the clock of b: ±0.4 ms")]  # of three the one that lies in the step


def test_without_estimates_wall_clocks_count(tmp_path):
    """Nothing is measured: hosts are put side by side by their wall clocks, and those that cannot be stand apart."""
    run_on_two_hosts(tmp_path / "near", wall=3 * SECOND, estimates=False)
    timeline, tracks = draw(tmp_path / "near")
    assert named(tracks, "devices of b", DEVICE).slices[0][0] == WALL + 13 * SECOND
    assert timeline.clocks == {}
    assert timeline.notes == ["placed by wall clocks, and as exact as these agree: b"]
    run_on_two_hosts(tmp_path / "far", wall=HOUR, estimates=False)
    _timeline, tracks = draw(tmp_path / "far")
    assert named(tracks, "clock not aligned: devices of b", DEVICE).slices


def test_a_third_host_that_nobody_measured(tmp_path):
    """It is compared by its wall clock beside one that was measured, and the report says so of it alone."""
    run_on_two_hosts(tmp_path / "run", wall=HOUR)
    third = JournalBuilder(tmp_path / "run", "critic", None, pid=300, boot=C, host="c", clock=0)
    third.stage(2, 22, 25)
    third.end(60).save()
    _timeline, tracks = draw(tmp_path / "run")
    assert named(tracks, "devices of c", DEVICE).slices[0][0] == WALL + 22 * SECOND
    (run,) = gather(str(tmp_path / "run")).runs
    assert run.alignment.notes[-1] == "placed by wall clocks, and as exact as these agree: c"


@pytest.mark.parametrize("wall", [0, 5 * HOUR])
def test_the_report_of_two_hosts(tmp_path, wall):
    """Lengths are by the measured clocks, one name on two hosts is two devices, and it says how exact it is."""
    run_on_two_hosts(tmp_path / "run", wall=wall)
    report = gather(str(tmp_path / "run"))
    (step,) = report.runs[0].steps
    assert (step.span, len(step.devices)) == (20 * SECOND, 2)
    assert [(device.lane.host, device.lane.key) for device in step.devices] == [("a", DEVICE), ("b", DEVICE)]
    said = report_text(report)
    assert ", 2 hosts\n" in said
    assert "note: clocks measured against that of host a: b ±0." in said
    assert ("not used" in said) is bool(wall)
    assert "Clocks measured against that of host a: b ±0." in page(report)
    made = json.loads(json.dumps(as_json(report)))["runs"][0]
    assert made["clocks"]["uncertainty"]["b"] == pytest.approx(UNCERTAINTY / 1e9, rel=0.5)


@pytest.mark.parametrize(("boot", "overlaps"), [(B, []), (BOOT, ["overlap", "handover-order", "shared-device"])])
def test_a_name_on_two_hosts_is_two_devices(tmp_path, boot, overlaps):
    """A window and a stage at once on devices of one name are mixed only on one host: on two they are apart."""
    for number, (purpose, where) in enumerate((("window", BOOT), ("stage", boot))):
        journal = JournalBuilder(
            tmp_path / "run", purpose, 0, pid=number + 1, boot=where, host="a" if where == BOOT else "b",
            fields={"root": not number},
        )  # fmt: skip
        journal.recorded(purpose, "x", 2, 10, 20)
        journal.recorded("stage", "y", 2, 20, 30)
        journal.end(60).save()
    found = [finding.code.name for finding in check(str(tmp_path / "run")).findings]
    assert {"overlap", "handover-order", "shared-device"} & set(found) == set(overlaps)
    record = read_record(tmp_path / "run")
    if overlaps:
        assert record.devices == (DEVICE,)
        with pytest.raises(AssertionError, match="began to be recorded while"):
            assert_no_overlap(record)
    else:
        assert record.devices == (f"{DEVICE} on a", f"{DEVICE} on b")
        assert_no_overlap(record)
    _timeline, tracks = draw(tmp_path / "run")
    assert len({path[0] for path in paths(tracks) if path[-1] == DEVICE}) == 2 - bool(overlaps)


def test_hosts_of_one_name(tmp_path):
    """Two boots that call themselves alike are told apart in a record by their boots."""
    for boot, pid in ((BOOT, 1), (B, 2)):
        JournalBuilder(tmp_path / "run", pid=pid, boot=boot).stage(2, 1, 2)
        journal = JournalBuilder(tmp_path / "run", pid=pid, boot=boot)
        journal.stage(2, 1, 2)
        journal.end().save()
    assert read_record(tmp_path / "run").devices == (f"{DEVICE} on host 5f3a", f"{DEVICE} on host bbbb")


def test_a_clock_that_jumped_is_said(tmp_path):
    """Estimates that no drift explains give a note, and what lies between them is as inexact as it is."""
    run_on_two_hosts(tmp_path / "run", estimates=False)
    driver = JournalBuilder(tmp_path / "run", "other", None, pid=91, host="a")
    for at, offset in ((9, 7 * HOUR), (40, 7 * HOUR + 2 * SECOND)):
        driver.write("clock", at, boot=B, host="b", at=driver.clock + at * SECOND, offset=offset, uncertainty=10)
    driver.end(60).save()
    timeline, _tracks = draw(tmp_path / "run")
    assert any("drifted apart by more than 50 millionths" in note for note in timeline.notes)
    assert timeline.clocks["b"] > 1


@pytest.mark.parametrize(
    "wrong", [{"uncertainty": -1}, {"offset": 2**63}, {"boot": 5}, {"at": None}, {"uncertainty": 0.5}]
)
def test_a_record_that_is_wrong_is_a_finding(tmp_path, wrong):
    """What no profwin writes is passed over and said; all else is judged as if it were not there."""
    journal = JournalBuilder(tmp_path / "run", fields={"root": True})
    journal.stage(2, 1, 2)
    right = {"boot": B, "host": "b", "at": 5, "offset": 6, "uncertainty": 7}
    journal.write("clock", 3, **{**right, **wrong})
    journal.end().save()
    codes = {finding.code.name for finding in check(str(tmp_path / "run")).findings}
    assert "foreign-record" in codes
    assert draw(tmp_path / "run")[0].clocks == {}


def test_uncertainties_in_words():
    """Bounds are rounded up, to a microsecond, or above a second to a millisecond."""
    assert [within(each) for each in (0, 1, 412_345, 3_000_000, 2_000_000_001)] == [
        "±0 ms", "±0.001 ms", "±0.413 ms", "±3 ms", "±2.001 s"
    ]  # fmt: skip
