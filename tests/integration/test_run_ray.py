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


ALL = ("actor", "actor-variables", "actor-path", "decorated", "task")


def workers(directory, situation, where, *options, names=ALL, **more):
    """Run the script; give what each worker had: patched or bare, the run, MINE, and whether /mine is on its path."""
    programs(directory)
    environment = {"ROOT": str(ROOT), "PYTHONPATH": str(directory), "RAY_DEDUP_LOGS": "0", **more}
    command = (sys.executable, str(SCRIPT), situation, where, *names)
    done = run(directory, *command, options=("--quiet", *options), env=environment)
    assert done.returncode == 0, done.stderr
    assert "profwin" not in done.stderr
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if len(line.split()) == 5}


def patched(job):
    """Return what all workers have, if their actor sets nothing; `job`: MINE of the job."""
    return {
        "actor": ["patched", "-", job, "False"],
        "actor-variables": ["patched", "-", "1", "False"],
        "actor-path": ["patched", "-", "2", "True"],
        "decorated": ["patched", "-", job, "True"],
        "task": ["patched", "-", job, "False"],
    }


@pytest.mark.slow
def test_workers_of_a_cluster_of_its_own(tmp_path):
    """Where the program starts Ray each worker is patched, and keeps what its actor had set; no run begins."""
    temporary = tempfile.mkdtemp(prefix="pw")  # short: Ray's sockets lie in it
    try:
        assert workers(tmp_path, "inherit", temporary) == patched("-")
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.parametrize("situation", ["older", "job"])
def test_workers_of_an_older_cluster(cluster, tmp_path, situation):
    """In a cluster that was there before, each is patched, too, and keeps what its actor or job had set."""
    assert workers(tmp_path, situation, cluster) == patched("job" if situation == "job" else "-")


@pytest.mark.slow
def test_one_run(cluster, tmp_path):
    """With steps, the driver's session begins with Ray, and all workers are of its run."""
    options = ("--steps", "1", "--run", "ours", "--devices", "pretend:0")
    found = workers(tmp_path, "older", cluster, *options, names=("actor", "actor-path", "task"))
    assert [each[:2] for each in found.values()] == [["patched", "ours"]] * 3


@pytest.mark.slow
def test_hook_of_the_user(cluster, tmp_path):
    """A hook that the user names in RAY_RUNTIME_ENV_HOOK still runs, before ours."""
    (tmp_path / "hooks.py").write_text("def hook(env):\n    return {**(env or {}), 'env_vars': {'MINE': 'hook'}}\n")
    found = workers(tmp_path, "older", cluster, names=["actor"], RAY_RUNTIME_ENV_HOOK="hooks.hook")
    assert found == {"actor": ["patched", "-", "hook", "False"]}


@pytest.mark.slow
def test_unfollowed(cluster, tmp_path):
    """The situation is real: where Ray is not followed, a cluster without our environment has bare workers."""
    found = workers(tmp_path, "unfollowed", cluster, names=("actor", "actor-path", "task"))
    assert [each[0] for each in found.values()] == ["bare"] * 3


def test_contract():
    """The two private functions of Ray that are wrapped are there, with the parameters that the wrappers pass on."""
    import inspect

    from ray._private import worker
    from ray.actor import ActorClass

    assert list(inspect.signature(worker._maybe_modify_runtime_env).parameters) == ["runtime_env", "_skip_env_hook"]
    assert list(inspect.signature(ActorClass._remote).parameters) == ["self", "args", "kwargs", "actor_options"]
