"""Ranks that torchrun starts, and starts again after one of them has died."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from core_support import PRELUDE, Evidence, run

from profwin.journal import read
from profwin.registry.lock import Held, Registry

if TYPE_CHECKING:
    from pathlib import Path

RANK = """
import torch.distributed as distributed
from profwin.configuration import current
rank, restart = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
# Over torchrun's own store the restarted ranks now and then looked for the ports of those before (torch 2.13).
store = f"file://{output}.store-{{os.getppid()}}-{{restart}}"
distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)

def configure(**more):
    profwin.configure(steps="1-3", output={output!r}, devices=f"pretend:card{{rank}}", **{more!r}, **more)

def train(steps):
    for step in steps:
        with training_step(step), training_stage("update"):
            distributed.all_reduce(torch.ones(1))

def end():
    distributed.barrier()
    if rank:
        profwin.shutdown()
    distributed.barrier()
    profwin.shutdown()
    # Their clean-up may abort where gloo and a profiler were used, and is not tested here.
    os._exit(0)

import torch
"""

CRASH = """
def early():
    with training_stage("early"):
        pass

for turn in (1, 0):  # the rank that has no right to wipe the board comes first
    if rank == turn:
        {configure}
        early()
    distributed.barrier()
if restart:
    train([2, 3])
    end()
train([1])
with training_step(2), training_stage("update"):
    distributed.barrier()
    if rank:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)
"""


def torchrun(tmp_path: Path, script: str, *options: str, **environment: str) -> None:
    """Run a script as the two ranks of a torchrun, whose status must be 0."""
    path = tmp_path / "ranks.py"
    path.write_text(PRELUDE + script)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", *options, str(path)]
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=surroundings) as process:
        try:
            _, err = process.communicate(timeout=100)
        finally:
            process.terminate()  # it then ends its ranks
    assert process.returncode == 0, err


def headers(directory: Path) -> list[dict[str, Any]]:
    """Return the first record of each journal of a run."""
    return [next(read(str(path))) for path in sorted((directory / "journal").iterdir())]


def ranks_of(directory: Path) -> dict[int, list[int]]:
    """Return which ranks wrote a journal in each attempt of a run, of which exactly one process began each."""
    found: dict[int, list[int]] = {}
    for header in headers(directory):
        found.setdefault(header["attempt"], []).append(header["rank"])
    roots = Counter(header["attempt"] for header in headers(directory) if header["root"])
    assert roots == dict.fromkeys(found, 1)
    return {attempt: sorted(ranks) for attempt, ranks in sorted(found.items())}


def only_run(output: Path) -> Path:
    """Return the directory of the only run below an output directory."""
    (directory,) = output.iterdir()
    return directory


def nothing_is_held() -> bool:
    """Say whether both ranks' devices are free."""
    held = Registry().acquire(["pretend-card0", "pretend-card1"], kind="rollout")
    if isinstance(held, Held):
        held.release()
    return isinstance(held, Held)


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("identified", [True, False])
@pytest.mark.parametrize("more", [{}, {"run": "mine"}], ids=["unnamed", "named"])
def test_ranks_agree_on_one_run(tmp_path, identified, more):
    """Two ranks write into one run, which one of them began, and so again when they configure again or are launched."""
    script = RANK.format(output=str(tmp_path / "out"), more=more) + (
        "configure()\ntrain([1])\ndistributed.barrier()\nconfigure(backend='torch')\ntrain([1, 2])\nend()\n"
    )
    option = "--standalone" if identified else f"--master-port={free_port()}"
    torchrun(tmp_path, script, option)
    directory = only_run(tmp_path / "out")
    assert ranks_of(directory) == {0: [0, 1], 1: [0, 1]}
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["attempts"] == [0, 1]
    assert len(manifest["processes"]) == 4
    traces = [trace for step in manifest["steps"].values() for each in step["collections"] for trace in each["traces"]]
    assert len(set(traces)) == 4
    Evidence(tmp_path / "out").check()
    if more and not identified:  # a name alone holds launches together
        torchrun(tmp_path, script, option)
        assert ranks_of(directory) == {attempt: [0, 1] for attempt in range(4)}


def test_a_rank_that_is_killed(tmp_path):
    """After a restart the steps of the first attempt are not believed, names differ, and nothing stays locked."""
    script = RANK.format(output=str(tmp_path / "out"), more={}) + CRASH.format(configure="configure()")
    torchrun(tmp_path, script, "--standalone", "--max-restarts=1")
    directory = only_run(tmp_path / "out")
    assert ranks_of(directory) == {0: [0, 1], 1: [0, 1]}
    evidence = Evidence(tmp_path / "out")
    evidence.check(killed=tuple(header["pid"] for header in headers(directory) if header["attempt"] == 0))
    assert Counter(evidence.recorded()) == {"update": 8}
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["attempts"] == [0, 1]
    assert {process["attempt"]: process["ended"] for process in manifest["processes"]} == {0: None, 1: "shutdown"}
    assert nothing_is_held()


def test_a_rank_that_is_killed_below_a_driver(tmp_path):
    """The same where ranks inherit the run of a driver that goes on: it began the run, and its board goes on too."""
    output = str(tmp_path / "out")
    script = RANK.format(output=output, more={}) + CRASH.format(configure="early()")
    (tmp_path / "ranks.py").write_text(PRELUDE + script)
    driver = f"""
import subprocess
from profwin.configuration import current
profwin.configure(steps="1-9", output={output!r}, role="driver")
command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1"]
surroundings = {{**os.environ, **profwin.environment(), "OMP_NUM_THREADS": "1"}}
for variable in ("PROFWIN_ROLE", "PROFWIN_RANK"):
    surroundings.pop(variable, None)
done = subprocess.run([*command, {str(tmp_path / "ranks.py")!r}], env=surroundings, timeout=120)
with rollout_window(9):
    pass
# Who comes later follows the driver, whichever attempts there were.
code = "import profwin\\nwith profwin.training_stage('late'): pass"
subprocess.run([sys.executable, "-c", code], env=surroundings, check=True, cwd=sys.path[0])
profwin.shutdown()
sys.exit(done.returncode)
"""
    run(driver, patience=150)
    directory = only_run(tmp_path / "out")
    found = [(each["attempt"], each["rank"], each["root"]) for each in headers(directory)]
    assert sorted(found, key=str) == [
        (0, 0, False), (0, 1, False), (0, None, False), (0, None, True), (1, 0, False), (1, 1, False),
    ]  # fmt: skip
    evidence = Evidence(tmp_path / "out")
    evidence.check(killed=tuple(each["pid"] for each in headers(directory) if each["rank"] is not None))
    assert Counter(evidence.recorded()) == {"update": 8, "rollout": 1, "late": 1}
    assert json.loads((directory / "manifest.json").read_text())["attempts"] == [0, 1]
