"""``profwin run`` and Ray 2.60: tasks and actors, also where the raylet is older or an actor sets PYTHONPATH."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from run_support import ROOT, programs, run

pytest.importorskip("ray", reason="ray is not installed: workers and actors cannot be tried")

SCRIPT = Path(__file__).with_name("run_ray.py")


def workers(directory, situation, *options, **more):
    """Run the script; give what each worker had: patched or bare, the run, MINE, and whether /mine is on its path."""
    programs(directory)
    temporary = tempfile.mkdtemp(prefix="pw")  # short: Ray's sockets lie in it
    environment = {"ROOT": str(ROOT), "PYTHONPATH": str(directory), "RAY_DEDUP_LOGS": "0", **more}
    try:
        done = run(
            directory, sys.executable, str(SCRIPT), temporary, situation, options=("--quiet", *options), env=environment
        )
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    assert done.returncode == 0, done.stderr
    assert "profwin" not in done.stderr
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if len(line.split()) == 5}


@pytest.mark.slow
@pytest.mark.parametrize("situation", ["inherit", "older", "job"])
def test_workers(tmp_path, situation):
    """Each worker is patched, and keeps what its actor or job had set; without steps, no run begins."""
    found = workers(tmp_path, situation)
    job = "job" if situation == "job" else "-"
    assert found == {
        "actor": ["patched", "-", job, "False"],
        "actor-variables": ["patched", "-", "1", "False"],
        "actor-path": ["patched", "-", "2", "True"],
        "decorated": ["patched", "-", job, "True"],
        "task": ["patched", "-", job, "False"],
    }


@pytest.mark.slow
def test_one_run(tmp_path):
    """With steps, the driver's session begins with Ray, and all workers are of its run."""
    found = workers(tmp_path, "older", "--steps", "1", "--run", "ours", "--devices", "pretend:0")
    assert {each[1] for each in found.values()} == {"ours"}
    assert {each[0] for each in found.values()} == {"patched"}


@pytest.mark.slow
def test_hook_of_the_user(tmp_path):
    """A hook that the user names in RAY_RUNTIME_ENV_HOOK still runs, before ours."""
    (tmp_path / "hooks.py").write_text("def hook(env):\n    return {**(env or {}), 'env_vars': {'MINE': 'hook'}}\n")
    found = workers(tmp_path, "older", RAY_RUNTIME_ENV_HOOK="hooks.hook")
    assert found["actor"] == ["patched", "-", "hook", "False"]


@pytest.mark.slow
def test_unfollowed(tmp_path):
    """The situation is real: where Ray is not followed, a raylet without our environment has bare workers."""
    assert {each[0] for each in workers(tmp_path, "unfollowed").values()} == {"bare"}


def test_contract():
    """The two private functions of Ray that are wrapped are there, with the parameters that the wrappers pass on."""
    import inspect

    from ray._private import worker
    from ray.actor import ActorClass

    assert list(inspect.signature(worker._maybe_modify_runtime_env).parameters) == ["runtime_env", "_skip_env_hook"]
    assert list(inspect.signature(ActorClass._remote).parameters) == ["self", "args", "kwargs", "actor_options"]
