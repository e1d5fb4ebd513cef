"""Run as a script by the Ray tests: which of Ray's workers are patched.

Arguments: a situation, where Ray is, and what is to be made (``actor``, ``actor-variables``, ``actor-path``,
``decorated``, ``task``). In the situation ``inherit`` the script starts Ray in the short directory that is given, so
the raylet has our environment. In the others it connects to the cluster of the address that is given, which was started
before us. ``job``: the job's runtime environment is from ``ray job submit``, with a PYTHONPATH of its own.
``unfollowed``: what we put around Ray's functions is taken away.
"""

from __future__ import annotations

import json
import os
import sys

import ray
import subject


def state() -> str:
    """Say what a worker has: of the patch, of the run, and of the user's own variables."""
    patched = "patched" if "__profwin_patch__" in vars(subject.work) else "bare"
    return f"{patched} {os.environ.get('PROFWIN_RUN', '-')} {os.environ.get('MINE', '-')} {'/mine' in sys.path}"


class Actor:
    """An actor."""

    def state(self):
        """Say what its worker has."""
        return state()


def main(situation, where, *names):
    """Connect to Ray, create what is wanted, print what it has, and leave Ray."""
    options = {"logging_level": "ERROR", "log_to_driver": False}
    if situation == "inherit":
        options |= {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 80 * 2**20, "_temp_dir": where}
    else:
        options["address"] = where
    if situation == "job":
        job = {"runtime_env": {"env_vars": {"MINE": "job", "PYTHONPATH": os.getcwd()}}, "metadata": {}}
        os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"] = json.dumps(job)
    if situation == "unfollowed":
        from ray._private import worker

        worker._maybe_modify_runtime_env = worker._maybe_modify_runtime_env.__wrapped__
        ray.actor.ActorClass._remote = ray.actor.ActorClass._remote.__wrapped__
    ray.init(**options)
    try:
        kind = ray.remote(num_cpus=0)(Actor)
        path = os.pathsep.join(["/mine", os.getcwd(), os.environ["ROOT"]])
        makers = {
            "actor": kind.remote,
            "actor-variables": kind.options(runtime_env={"env_vars": {"MINE": "1"}}).remote,
            "actor-path": kind.options(runtime_env={"env_vars": {"PYTHONPATH": path, "MINE": "2"}}).remote,
            "decorated": ray.remote(num_cpus=0, runtime_env={"env_vars": {"PYTHONPATH": path}})(Actor).remote,
        }
        actors = {name: makers[name]() for name in names if name in makers}
        states = {name: actor.state.remote() for name, actor in actors.items()}
        if "task" in names:
            states["task"] = ray.remote(state).remote()
        for name, said in states.items():
            print(name, ray.get(said))
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
