"""The command `profwin timeline` on a real run: nothing is lost, and no half file is left."""

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal

import pytest
from demo_support import ROOT, Demo

sys.path.append(str(ROOT / "tests/unit"))
from perfetto_decoder import read, slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

MICROSECOND = 1000


def _start(*arguments: str, cwd: Path, limit: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "profwin", "timeline", *arguments],
        cwd=cwd, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip


def _run(*arguments: str, cwd: Path, limit: int | None = None) -> tuple[int, str, str]:
    process = _start(*arguments, cwd=cwd, limit=limit)
    output, errors = process.communicate(timeout=100)
    return process.returncode, output, errors


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """Return the directory of a demo's run of 4 steps, of which one is profiled."""
    directory = tmp_path_factory.mktemp("demo")
    code, _output, errors = Demo(directory).run("--steps", "4", "--profile", "2")
    assert code == 0, errors
    (found,) = (directory / "out").iterdir()
    return found


def _events(path: Path) -> Counter[tuple[int, int, str]]:
    """Return start, end and name of every slice of a trace, by another reader than ours."""
    with gzip.open(path, "rt") as file:
        content = json.load(file, parse_float=Decimal)
    base = content["baseTimeNanoseconds"]
    return Counter(
        (base + int(event["ts"] * MICROSECOND), base + int((event["ts"] + event["dur"]) * MICROSECOND), event["name"])
        for event in content["traceEvents"]
        if event["ph"] == "X"
    )


def _arrow_ends(path: Path) -> int:
    with gzip.open(path, "rt") as file:
        return sum(event["ph"] in "stfi" for event in json.load(file)["traceEvents"])


def test_every_slice_of_every_trace(run, tmp_path):
    """Each slice of each trace is there at its time, each collection is on its device, and counts agree."""
    code, output, errors = _run(str(run), "-o", "run.pftrace.gz", "--json", cwd=tmp_path)
    assert code == 0, errors
    said = json.loads(output)
    tracks = read(tmp_path / "run.pftrace.gz")
    traces = sorted(run.glob("step_*/**/*.json.gz"))
    assert len(traces) == 5
    expected = sum(map(_events, traces), Counter())
    found = Counter(
        each[:3] for track in tracks.values() if any(" thread " in part for part in track.path) for each in track.slices
    )
    assert found == expected
    arrows = sum(map(_arrow_ends, traces))
    assert said["read"] == expected.total() + arrows
    assert said["written"] == said["records"] + said["read"]
    points = sum(len(track.instants) + len(track.flows) for track in tracks.values())
    assert said["written"] == len(slices(tracks)) + points
    assert said["files"].keys() == {str(path.relative_to(run)) for path in traces}
    (devices,) = (track for track in tracks.values() if track.path[0] == "devices" and track.slices)
    names = [name for _start, _end, name, kind, _data in sorted(devices.slices) if kind != "mark"]
    stages = ("old_log_prob", "ref_log_prob", "advantages", "actor_update")
    assert names == [f"{name} (step 2)" for name in ("rollout", *stages)]


def test_words(run, tmp_path):
    """What is printed says how much was read and written; a second time the file is kept, unless forced."""
    arguments = (str(run), "-o", "run.pftrace.gz", "--no-traces")
    code, output, errors = _run(*arguments, cwd=tmp_path)
    assert (code, errors) == (0, "")
    assert output.startswith("run.pftrace.gz: ")
    first = (tmp_path / "run.pftrace.gz").read_bytes()
    code, output, errors = _run(*arguments, cwd=tmp_path)
    assert (code, output) == (2, "")
    assert "--force" in errors
    assert (tmp_path / "run.pftrace.gz").read_bytes() == first
    assert _run(*arguments, "--force", cwd=tmp_path)[0] == 0
    assert os.listdir(tmp_path) == ["run.pftrace.gz"]


def test_nothing_to_draw(tmp_path):
    """A folder without anything, none, and a file give status 2 and one sentence."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name in ("empty", "none", "file"):
        code, output, errors = _run(name, "-o", "out.pftrace", cwd=tmp_path)
        assert (code, output) == (2, "")
        assert errors.startswith("profwin: nothing was written: ")
        assert errors.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["empty", "file"]


@pytest.mark.parametrize("name", ["out.pftrace", "out.pftrace.gz", "out.json"])
def test_disk_full(run, tmp_path, name):
    """Where the file does not fit nothing of it is left, and the reason is said."""
    form = "json" if name.endswith("json") else "protobuf"
    code, _output, errors = _run(str(run), "-o", name, "--format", form, cwd=tmp_path, limit=300_000)
    assert code == 2
    assert "nothing was written" in errors
    assert "Traceback" not in errors
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)]
)
@pytest.mark.parametrize("old", [False, True])
def test_interrupted(run, tmp_path, number, status, old):
    """Ctrl-C, a polite end and a kill in the middle leave nothing, and what was there before stays."""
    if old:
        (tmp_path / "out.pftrace").write_text("mine")
    process = _start(str(run), "-o", "out.pftrace", "--force", cwd=tmp_path)
    deadline = time.monotonic() + 30
    while not _writes(process.pid, tmp_path) and time.monotonic() < deadline:
        time.sleep(0.005)
    os.killpg(process.pid, number)
    _output, errors = process.communicate(timeout=100)
    assert process.returncode == status
    said = [line for line in errors.splitlines() if not line.startswith("profwin timeline: ")]
    assert said == (["profwin: interrupted"] if number == signal.SIGINT else [])
    assert os.listdir(tmp_path) == ["out.pftrace"] * old
    assert not old or (tmp_path / "out.pftrace").read_text() == "mine"


def _writes(pid: int, directory: Path) -> bool:
    """Say whether a process has a file open below a directory, which need not have a name."""
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{descriptor}").startswith(f"{directory}/"):
                return True
        except OSError:
            continue
    return False
