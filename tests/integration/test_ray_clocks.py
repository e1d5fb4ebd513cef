"""Clocks between hosts on a real cluster of two pretended ones, whose clocks are one: so the truth is known to be 0."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from statistics import median

import pytest

pytest.importorskip("ray", reason="ray is not installed: its agents cannot be asked")

from core_support import Evidence
from ray_support import Driver

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from perfetto_decoder import read  # it lies beside the unit tests

from profwin.evidence.alignment import Alignment
from profwin.evidence.check import check
from profwin.evidence.report import gather
from profwin.evidence.report_text import report_text
from profwin.evidence.run import load
from profwin.evidence.timeline import draw_timeline

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
HOSTS = True

HOUR = 3600 * 10**9
LOOP = """
connect(steps="1,3")
agents = profwin.ray.agents(timeout=100)
engines = [place(Engine, "first", "pretend:a"), place(Engine, "second", "pretend:a")]
trainers = [place(Trainer, "first", "pretend:a"), place(Trainer, "second", "pretend:a")]
for step in (1, 2, 3):
    with rollout_window(step, engine=profwin.ray.actors(engines)):
        ray.get([each.generate.remote() for each in engines])
    ray.get([each.update.remote() for each in trainers])
profwin.shutdown()
"""


@pytest.fixture(scope="module")
def run(cluster, tmp_path_factory):
    """Return the directory of a run on two hosts, each with a device of the same name."""
    output = tmp_path_factory.mktemp("clocks")
    with Driver(LOOP, cluster, output, PROFWIN_PRETEND_HOST="first") as driver:
        driver.end()
    return output / "run"


def test_every_estimate_holds(run, record_property):
    """The two hosts have one clock, so no offset is larger than its uncertainty; begin and end are measured."""
    estimates = Evidence(run.parent).of("clock")
    boots = {each["host"]: each["boot"] for each in Evidence(run.parent).of("process")}
    assert {(each["host"], each["boot"]) for each in estimates} == {("second", boots["second"])}
    assert len(estimates) >= 2
    assert all(abs(each["offset"]) <= each["uncertainty"] for each in estimates)
    seen = median(each["uncertainty"] for each in estimates) / 1e6
    record_property("median uncertainty in ms", seen)
    print(f"\n{len(estimates)} estimates, uncertainty ±{seen:.3f} ms (median)")


def test_every_time_is_placed_within_its_uncertainty(run):
    """Whatever happened on the second host is drawn no further from the truth than the evidence says of it."""
    found = load(run)
    alignment = Alignment([found])
    root = next(process for process in found.processes if process.root)
    others = [process for process in found.processes if process.host == "second"]
    assert others
    for each in found.collections:
        if each.process in others:
            moved, bound = alignment.mover(each.process), alignment.uncertainties[each.process.boot]
            for time in (each.open, each.close):
                assert abs(moved(time) - (each.process.monotonic(time) + root.offset)) <= bound


def moved(run, target, monotonic, wall):
    """Copy a run, and write into the copy what a second host would have whose clocks were set otherwise."""
    shutil.copytree(run, target)
    for path in (target / "journal").iterdir():
        records = [json.loads(line) for line in path.read_text().splitlines()]
        second = records[0]["host"] == "second"
        for record in records:
            if second:
                record["t"] += monotonic
                if "wall" in record:
                    record["wall"] += wall
            elif record["kind"] == "clock":
                record["offset"] += monotonic
        path.write_text("".join(json.dumps(record) + "\n" for record in records))


def slices(directory, output):
    """Draw a timeline; return what is said of it, and what is on each row."""
    timeline = draw_timeline(str(directory), str(output))
    return timeline, {
        track.path: [each[:3] for each in track.slices] for track in read(output).values() if track.slices
    }  # fmt: skip


@pytest.mark.parametrize("wall", [0, -3 * HOUR])
def test_clocks_that_are_hours_apart(run, tmp_path, wall):
    """With the second host's clocks hours off, timeline, report and check say what they say without."""
    moved(run, tmp_path / "moved", 5 * HOUR, wall)
    right, rows = slices(run, tmp_path / "a.pftrace.gz")
    timeline, moved_rows = slices(tmp_path / "moved", tmp_path / "b.pftrace.gz")
    assert moved_rows == rows
    assert timeline.clocks == right.clocks
    # Each process reads the two clocks of its host one after the other, and may be stopped in between.
    behind = [float(each) for note in timeline.notes for each in re.findall(r"second (\S+) s behind", note)]
    assert [round(each) for each in behind if each > 60] == [10800] * bool(wall)
    groups = {path[0] for path in rows if path[-1] == "pretend-a"}
    assert len(groups) == 2
    assert [group for group in groups if group.startswith("devices of second (clock ±")]
    # The first host's process that the run is told by is another one's wall clock by some microseconds.
    before, after = (gather(str(where)) for where in (run, tmp_path / "moved"))
    spans = [[step.span for step in report.runs[0].steps] for report in (before, after)]
    assert spans[0] == spans[1]
    assert [each.code.name for each in after.findings] == [each.code.name for each in before.findings]


def test_the_run_is_clean(run):
    """Devices of one name on two hosts are two, though they record at once; and the report names the uncertainty."""
    result = check(run)
    assert result.clean("warning"), result.findings
    assert {finding.code.name for finding in result.findings} <= {"no-end"}  # of actors, which Ray ends
    report = gather(str(run))
    assert {len(step.devices) for step in report.runs[0].steps} == {3}  # the third is the driver, which has none
    assert "clocks measured against that of host first: second ±" in report_text(report)
