"""Launches of one name, by launchers of all kinds, and what a run leaves in the environment of later processes."""

from __future__ import annotations

import json
import os

import pytest
from core_support import PRELUDE, Child, Evidence, run

import profwin
from profwin.configuration import current

ROOT = """
from profwin.configuration import current
profwin.configure(steps="1-9", output={output!r}, run="x", devices="pretend:{card}")
with rollout_window({step}):
    say(current().run.attempt, current().run.root)
hear()
import subprocess
code = "import profwin\\nwith profwin.training_stage('follower'): pass"
environment = {{**os.environ, **profwin.environment(), "PYTHONPATH": sys.path[0]}}
subprocess.run([sys.executable, "-c", code], env=environment, check=True)
say("followed")
hear()
"""


@pytest.mark.parametrize("ends_last", ["first", "second"])
def test_a_second_launch_while_the_first_runs(tmp_path, ends_last):
    """Two launches of one name at once are two attempts with a step board each, one manifest, and a finding."""
    one = ROOT.format(output=str(tmp_path), card="one", step=1)
    two = ROOT.format(output=str(tmp_path), card="two", step=2)
    with Child(one) as first:
        assert first.hear() == "0 True"
        with Child(two) as second:
            assert second.hear() == "1 True"
            order = [first, second] if ends_last == "second" else [second, first]
            for child in order:
                child.say()
                assert child.hear() == "followed"
            complaints = {}
            for child in order:
                child.say()
                status, _, complaints[child.pid] = child.finish()
                assert status == 0
            first_pid, second_pid = first.pid, second.pid
    assert "still at work" in complaints[second_pid]
    assert "still at work" not in complaints[first_pid]
    evidence = Evidence(tmp_path)
    evidence.check()
    (finding,) = evidence.of("finding", code="run-in-use")
    assert str(first_pid) in finding["detail"]
    assert sorted((each["name"], each["step"]) for each in evidence.collections()) == [
        ("follower", 1), ("follower", 2), ("rollout", 1), ("rollout", 2),
    ]  # fmt: skip
    manifest = json.loads((tmp_path / "x" / "manifest.json").read_text())
    assert sorted(process["attempt"] for process in manifest["processes"]) == [0, 0, 1, 1]
    assert not [name for name in os.listdir(os.environ["PROFWIN_LOCK_DIR"]) if name.endswith(".board")]


def test_ranks_of_another_launcher(tmp_path):
    """Ranks that a launcher of one's own starts one after the other, under a name, are of one attempt all the same."""
    script = f"""
from profwin.configuration import current
profwin.configure(steps="1", output={str(tmp_path)!r}, run="x", devices="pretend:card")
with training_step(1), training_stage("update"):
    pass
say(current().run.attempt)
hear()
"""
    for attempt in ("0", "1"):
        with Child(script, RANK="0") as first:
            assert first.hear() == attempt
            with Child(script, RANK="1") as second:
                assert second.hear() == attempt
                second.say()
                first.say()
                assert first.finish()[0] == second.finish()[0] == 0
    begun = [(each["attempt"], each["rank"], each["root"]) for each in Evidence(tmp_path).of("process")]
    assert begun == [(0, 0, True), (0, 1, False), (1, 0, True), (1, 1, False)]


LATER = """
import subprocess
profwin.configure(steps="1", output={output!r}, run="old", devices="pretend:card")
with rollout_window(1):
    pass
code = {later!r}
environment = {{**os.environ, **profwin.environment(), "PYTHONPATH": sys.path[0]}}
process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, start_new_session=True)
{end}
"""


@pytest.mark.parametrize("asks", [True, False], ids=["configures", "inherits"])
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "goes on"])
def test_a_shell_that_outlives_the_run(tmp_path, asks, ended):
    """A process with the variables of a run that has ended begins a new run where it configures, and says where not."""
    later = PRELUDE + "hear()\n" * ended
    later += f"profwin.configure(steps='1', output={str(tmp_path)!r})\n" * asks
    later += (
        "with rollout_window(1):\n    pass\nwith training_stage('later'):\n    pass\nprofwin.shutdown()\nsay('done')"
    )
    # The child hears of the end of the process before it by the end of its standard input.
    end = "os._exit(0)" if ended else "process.wait(60)\nprofwin.shutdown()"
    with Child(LATER.format(output=str(tmp_path), later=later, end=end)) as child:
        assert child.hear() == "done"
        status, _, err = child.finish()
        assert status == 0
    new = ended and asks
    runs = sorted(path.name for path in tmp_path.iterdir())
    assert len(runs) == 1 + new
    assert "old" in runs
    evidence = Evidence(tmp_path)
    evidence.check()
    assert evidence.recorded() == ["rollout", "rollout", "later"]
    assert bool(evidence.of("finding", code="run-ended")) == (ended and not asks)
    assert ("has ended" in err) == ended
    if new:
        (name,) = (name for name in runs if name != "old")
        assert json.loads((tmp_path / name / "manifest.json").read_text())["processes"][0]["root"]
        assert name in err


def test_a_run_that_the_user_named_in_the_environment(tmp_path, monkeypatch):
    """Sessions of a process whose user set PROFWIN_RUN are attempts of that run, and the variable is left as it was."""
    monkeypatch.setenv("PROFWIN_RUN", "mine")
    for attempt in range(3):
        profwin.configure(steps="1", output=tmp_path)
        assert (current().run.name, current().run.attempt, current().run.root) == ("mine", attempt, True)
        with profwin.rollout_window(1):
            pass
        if attempt:
            profwin.shutdown()
            assert os.environ["PROFWIN_RUN"] == "mine"
            assert "PROFWIN_PARENT" not in os.environ


def test_a_worker_that_configures_again(tmp_path):
    """A worker stays in its parent's run at each configure, and none of its sessions overwrites another's traces."""
    worker = f"""
for turn in range(3):
    if turn:
        profwin.configure(steps="1", output={str(tmp_path)!r}, backend="torch")
    with training_step(1), training_stage("update"):
        pass
"""
    profwin.configure(steps="1", output=tmp_path, run="x", backend="torch", devices="pretend:card")
    run(worker, **profwin.environment())
    profwin.shutdown()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert len(list(tmp_path.glob("x/step_000001/train/update/*.gz"))) == 3
    assert len({record["path"] for record in Evidence(tmp_path).of("export")}) == 3
