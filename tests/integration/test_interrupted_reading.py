"""`profwin check` and `profwin report` ended by a signal while they read: nothing and nobody is left, no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit"))
from check_support import ROOT
from journal_builder import make_run
from kineto_support import pairs, trace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(100)]

FILES = 16
REPEATED = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with a run and traces that take seconds to read; all are links to one file."""
    directory = tmp_path_factory.mktemp("large")
    make_run(directory / "run", 1, 1)
    events = ",".join(json.dumps(event) for event in pairs(*range(2000)))
    head, tail = trace([]).rsplit("]", 1)
    with open(directory / "0.json", "w") as file:
        file.write(head + f",{events}" * REPEATED + "]" + tail)
    for number in range(1, FILES):
        os.link(directory / "0.json", directory / f"{number}.json")
    return directory


def start(folder: Path, command: str, cores: int, output: Path) -> subprocess.Popen[str]:
    """Run a command in a session of its own, on so many cores, and wait until it is reading."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    if len(allowed) < cores:
        pytest.skip("needs two cores")
    process = subprocess.Popen(
        [sys.executable, "-m", "profwin", command, str(folder)], cwd=output,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    # The first process looks into all files before others read them.
    while not any(_reads(pid, folder) and (cores == 1 or pid != process.pid) for pid in of_session(process.pid)):
        assert process.poll() is None, "it has ended too early"
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return process


def of_session(session: int) -> list[int]:
    """Return the processes of a session, but for those that have ended."""
    found = []
    for name in os.listdir("/proc"):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split() if name.isdigit() else []
        except OSError:
            continue
        if fields and int(fields[3]) == session and fields[0] != "Z":
            found.append(int(name))
    return found


def _reads(pid: int, folder: Path) -> bool:
    try:
        opened = [os.readlink(f"/proc/{pid}/fd/{descriptor}") for descriptor in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return any(path.startswith(f"{folder}/") and path.endswith(".json") for path in opened)


def end(process: subprocess.Popen[str], number: int, *, whole_group: bool) -> tuple[int, list[str]]:
    """Send a signal and wait; return the status and what was said, but for the progress. Nobody may be left."""
    (os.killpg if whole_group else os.kill)(process.pid, number)
    output, errors = process.communicate(timeout=100)
    assert output == ""
    deadline = time.monotonic() + 10
    while of_session(process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert of_session(process.pid) == []
    said = errors.splitlines()
    return process.returncode, [line for line in said if not line.startswith(("profwin check: ", "profwin report: "))]


@pytest.mark.parametrize("whole_group", [True, False], ids=["terminal", "process"])
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("command", ["check", "report"])
def test_ctrl_c(folder, tmp_path, command, cores, whole_group):
    """Ctrl-C ends a command with 130 and one sentence, whether it reads alone or lets others read; no page is made."""
    process = start(folder, command, cores, tmp_path)
    assert end(process, signal.SIGINT, whole_group=whole_group) == (130, ["profwin: interrupted"])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ended_from_outside(folder, tmp_path, number):
    """Where the command is ended or killed, those that read for it end too."""
    process = start(folder, "report", 2, tmp_path)
    assert end(process, number, whole_group=False) == (-number, [])
    assert os.listdir(tmp_path) == []
