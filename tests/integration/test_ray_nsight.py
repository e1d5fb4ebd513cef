"""Ray's own nsight plugin with a program that stands for nsys, which is not here: reports are waited for."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed: its plugin cannot be run")

from core_support import PATIENCE, Evidence
from ray_support import Driver, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

WHOLE = b"NSYS half and the other half"
UNIT = Path(__file__).parents[1] / "unit"
TRAINER = f"""
sys.path.append({str(UNIT)!r})

class Set:
    def setattr(self, place, name, value):
        setattr(place, name, value)

class Recorder:
    def __init__(self):
        from cuda_support import Runtime, pretend_cuda

        def stop(runtime):
            with open(os.environ["STAND_IN_RANGES"], "a") as file:
                file.write("x")
            return 0
        Runtime.cudaProfilerStop = stop
        pretend_cuda(Set())

    @training_stage
    def update(self):
        return sys.executable

    def train(self, step):
        with training_step(step):
            return self.update()

    def end(self):
        profwin.shutdown()
        ray.actor.exit_actor()

def under_nsys(node=None, mode="async", windows=None, **variables):
    environment = profwin.ray.nsight(
        windows, mode=mode, runtime_env={{"env_vars": {{**variables, "PYTHONPATH": os.pathsep.join(sys.path)}}}},
        devices="pretend:" + str(len(made)),
    )
    made.append(node)
    resources = {{node: 0.001}} if node else {{}}
    return ray.remote(Recorder).options(num_cpus=0, resources=resources, runtime_env=environment).remote()

def end(actor):
    try:
        ray.get(actor.end.remote())
    except ray.exceptions.RayActorError:
        pass  # as it should

def train(actors, steps=(1,)):
    return [ray.get([actor.train.remote(step) for actor in actors]) for step in steps][-1]

made = []
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Put a stand-in for nsys, and a ``python`` that must not be used, before the PATH of what is started."""
    folder = tmp_path_factory.mktemp("bin")
    script = Path(__file__).with_name("nsys_stand_in.py")
    (folder / "nsys").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    (folder / "python").write_text("#!/bin/sh\nexec sleep 1000\n")
    for program in ("nsys", "python"):
        (folder / program).chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}{os.pathsep}{before}"
    yield
    os.environ["PATH"] = before


@pytest.fixture(scope="module")
def cluster(path):
    """Return the address of a cluster of two hosts."""
    with running("first", "second", hosts=True) as address:
        yield address


def findings(output):
    """Return what was said of missing reports."""
    return [record["detail"] for record in Evidence(output).of("finding", code="report-missing")]


TWO_NODES = (
    TRAINER
    + f"""
connect(steps="1-2")
actors = [under_nsys("first"), under_nsys("second", mode=None, windows=2)]
assert train(actors, (1, 2)) == [sys.executable] * 2  # whatever `python` is on the node (ray issue 66093)
found = profwin.ray.wait_for_reports({PATIENCE / 2})
result = profwin.ray.collect(os.environ["ALL"], nsight=True)
say(json.dumps([found.missing, found.files, result.missing]))
profwin.shutdown()
"""
)


def test_reports_of_two_nodes(cluster, tmp_path):
    """What each process owes is waited for, and found whole; collect brings it along."""
    variables = {"PROFWIN_PRETEND_HOST": "first", "ALL": str(tmp_path / "all")}
    with Driver(TWO_NODES, cluster, tmp_path / "out", **variables) as driver:
        missing, files, left = json.loads(*driver.end())
    assert (missing, left) == ([], {})
    assert sorted(files.values()) == [len(WHOLE)] * 4
    reports = {path.name: path.read_bytes() for path in (tmp_path / "all/run/nsight").iterdir()}
    assert reports == dict.fromkeys((os.path.basename(name) for name in files), WHOLE)
    assert not findings(tmp_path / "out")


MISSING = (
    TRAINER
    + """
connect(steps="1")
actors = [under_nsys(STAND_IN="empty"), under_nsys(STAND_IN="never"), under_nsys(mode=None)]
actors.append(under_nsys(mode=None, STAND_IN="late"))
train(actors)
end(actors[3])
for waits in range(1, 9):
    missing = "; ".join(profwin.ray.wait_for_reports(2.0 * waits).missing)
    if "is empty" in missing and missing.count("0 of 1 reports") == 3 and missing.count("still runs") == 2:
        break  # else the machine was too slow
say(json.dumps([missing, waits]))
profwin.shutdown()
"""
)


def test_reports_that_do_not_come(cluster, tmp_path):
    """What is missing when the time is over is one finding.

    A report is empty, one never comes, one waits for its process's end, and of one Ray kills nsys when its worker ends,
    as Ray 2.60 does (ray issue 60904).
    """
    with Driver(MISSING, cluster, tmp_path / "out", PROFWIN_PRETEND_HOST="first") as driver:
        missing, waits = json.loads(*driver.end())
    assert "is empty" in missing
    assert missing.count("0 of 1 reports") == 3
    assert missing.count("still runs") == 2
    assert findings(tmp_path / "out")[waits - 1 :] == [missing]


ENDS = (
    TRAINER
    + """
connect(steps="1")
actors = [under_nsys("first", STAND_IN=os.environ["STAND_IN"])]  # Ray ends actors that nobody has a handle of
train(actors)
say(ray.get(actors[0].__ray_call__.remote(lambda _: os.getpid())))
say(ray._private.worker.global_worker.node.get_session_dir_path())
"""
)


@pytest.mark.parametrize("waits", [True, False])
def test_the_end_of_the_driver(cluster, tmp_path, waits):
    """A driver that just ends waits for the reports first; one that leaves Ray before loses them, and says so.

    That is ray issue 60904.
    """
    script = ENDS + ("" if waits else "ray.shutdown()\nprofwin.shutdown()")
    variables = {"PROFWIN_PRETEND_HOST": "first", "STAND_IN": "" if waits else "late"}
    with Driver(script, cluster, tmp_path / "out", **variables) as driver:
        pid, session = driver.end()
    reports = [report.read_bytes() for report in Path(session).glob(f"logs/nsight/profwin_*{pid}*.nsys-rep")]
    assert reports == [WHOLE] * waits
    assert [detail.partition(" before")[0] for detail in findings(tmp_path / "out")] == ["Ray was shut down"] * (
        not waits
    )
