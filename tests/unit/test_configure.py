"""configure, environment and shutdown: one session at a time, inherited by those who should inherit it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import profwin
from profwin.configuration import current
from profwin.journal import read
from profwin.switch import SWITCH


def test_without_steps_nothing_happens(tmp_path):
    """Configured without a selection, profwin is off and touches no file."""
    profwin.configure(output=tmp_path / "out")
    assert not SWITCH.on
    assert profwin.environment() == {}
    with profwin.rollout_window(1):
        pass
    profwin.shutdown()
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_setting_changes_nothing(tmp_path):
    """A configure that raises leaves the session that was there."""
    profwin.configure(steps="1", output=tmp_path)
    before = current()
    with pytest.raises(profwin.SettingError):
        profwin.configure(steps="1", backend="nonsense")
    assert current() is before
    assert SWITCH.on


def test_an_unknown_backend_lists_those_there_are(tmp_path):
    """The error for an unknown backend names the known ones."""
    with pytest.raises(profwin.SettingError, match=r"record.*torch"):
        profwin.configure(steps="1", backend="nonsense", output=tmp_path)


def test_a_second_configure_begins_a_new_run(tmp_path):
    """In a notebook, a second configure closes what is open and begins a run of another name."""
    profwin.configure(steps="1", output=tmp_path)
    window = profwin.rollout_window(1)
    window.open()
    first = current().run.name
    profwin.configure(steps="1", output=tmp_path)
    assert current().run.name != first
    assert not window.recorded
    window.close()
    (journal,) = (tmp_path / first / "journal").iterdir()
    assert [record["reason"] for record in read(str(journal)) if record["kind"] == "close"] == ["shutdown"]


def test_the_environment_makes_a_child_part_of_the_run(tmp_path):
    """A process that inherits the variables configures itself at its first stage and writes into the same run."""
    profwin.configure(steps="4", output=tmp_path, devices="pretend:0", role="driver", rank=0)
    code = (
        "import profwin\n"
        "@profwin.training_stage\n"
        "def update(): pass\n"
        "with profwin.training_step(4): update()\n"
        "with profwin.training_step(5): update()\n"
    )
    env = {**os.environ, **profwin.environment(), "PROFWIN_RANK": "3", "PROFWIN_ROLE": "actor"}
    subprocess.run([sys.executable, "-c", code], check=True, env=env, timeout=60)
    directory = tmp_path / current().run.name
    (journal,) = (directory / "journal").glob("rank3_actor_*")
    entered = [record for record in read(str(journal)) if record["kind"] == "enter"]
    assert [(record["name"], record["step"]) for record in entered] == [("update", 4)]


def test_an_unusable_environment_turns_profwin_off(tmp_path):
    """A wrong variable does not break the training that inherits it: profwin is off there and says so."""
    code = (
        "import profwin\n@profwin.training_stage\ndef update(): return 7\nassert update() == 7\nassert update() == 7\n"
    )
    env = {**os.environ, "PROFWIN_STEPS": "4-2", "PROFWIN_OUTPUT": str(tmp_path / "out")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60, check=True)
    assert done.stderr.count("profwin: off") == 1
    assert not (tmp_path / "out").exists()


def test_shutdown_takes_the_variables_back(tmp_path):
    """The run that configure put into the environment is gone after shutdown, so the next one is new."""
    profwin.configure(steps="1", output=tmp_path)
    assert "PROFWIN_RUN" in os.environ
    profwin.shutdown()
    assert not [name for name in os.environ if name.startswith("PROFWIN_") and name != "PROFWIN_LOCK_DIR"]
    profwin.shutdown()


def test_a_run_of_the_same_name_is_the_next_attempt(tmp_path):
    """Started again under its name, a run gets the next attempt number, and no file of the first is touched."""
    for expected in (0, 1, 2):
        profwin.configure(steps="1", output=tmp_path, run="mine")
        assert current().run.attempt == expected
        with profwin.rollout_window(1):
            pass
        profwin.shutdown()
    manifest = json.loads((tmp_path / "mine" / "manifest.json").read_text())
    assert manifest["attempts"] == [0, 1, 2]
    assert len(manifest["steps"]["1"]["collections"]) == 3


def test_ranks_of_one_torchrun_agree(tmp_path):
    """The ranks of a torchrun are in one run, named after it, and only rank 0 writes the manifest."""
    names = set()
    code = (
        f"import profwin\nprofwin.configure(steps='1', output={str(tmp_path)!r})\n"
        "from profwin.configuration import current\nrun = current().run\nprint(run.name, run.root, run.attempt)\n"
    )
    launch = {"WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "job-7", "TORCHELASTIC_RESTART_COUNT": "1"}
    for rank in ("0", "1"):
        env = {**os.environ, **launch, "RANK": rank}
        command = [sys.executable, "-c", code]
        out = subprocess.run(command, capture_output=True, text=True, check=True, env=env, timeout=60)
        name, root, attempt = out.stdout.split()
        names.add(name)
        assert root == str(rank == "0")
        assert attempt == "1"
    assert names == {"torchrun-job-7"}


def test_the_finish_command_runs_once(tmp_path):
    """After the last selected step the command runs, once, knowing where the run's files are."""
    marker = tmp_path / "marker"
    profwin.configure(
        steps="1-2", output=tmp_path / "out", finish_command=f'echo "$PROFWIN_RUN_DIRECTORY" >> {marker}', run="r"
    )
    for step in range(1, 5):
        with profwin.rollout_window(step):
            pass
    profwin.shutdown()
    assert marker.read_text().split() == [str(tmp_path / "out" / "r")]


def test_a_failing_finish_command_is_a_finding(tmp_path):
    """A finish command that fails does not raise; the manifest says it."""
    profwin.configure(steps="1", output=tmp_path, finish_command="exit 3", run="r")
    with profwin.rollout_window(1):
        pass
    profwin.shutdown()
    findings = json.loads((tmp_path / "r" / "manifest.json").read_text())["findings"]
    assert [finding["code"] for finding in findings] == ["finish-command", "no-stages"]


def test_unselected_steps_do_not_fill_the_journal(tmp_path):
    """A long run without selected steps costs a record at its begin and one at the end of what was selected."""
    profwin.configure(steps="50", output=tmp_path, run="r")
    for step in range(100):
        with profwin.rollout_window(step), profwin.training_step(step):
            pass
    profwin.shutdown()
    (journal,) = (tmp_path / "r" / "journal").iterdir()
    steps = [(record["side"], record["step"]) for record in read(str(journal)) if record["kind"] == "step"]
    assert steps == [(side, step) for step in (0, 50, 51) for side in ("rollout", "training")]


def test_a_window_that_could_not_open_is_closed(tmp_path):
    """Under strict, an open() that raises leaves the window closed, so that it cannot be taken for one that records."""
    profwin.configure(steps="1", output=tmp_path, strict=True, wait_budget=0, devices="pretend:0")
    from profwin.registry.lock import Registry

    held = Registry().acquire(["pretend-0"], kind="rollout")
    window = profwin.rollout_window(1)
    try:
        with pytest.raises(profwin.DeviceBusyError):
            window.open()
        assert not window.recorded
        with pytest.raises(profwin.StateError):
            window.open()
        window.close()
    finally:
        held.release()
