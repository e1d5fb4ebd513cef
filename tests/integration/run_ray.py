"""Run as a script by the Ray tests: which of Ray's workers are patched. Arguments: a short directory, and a situation.

Situations: ``inherit``: the raylet has our environment; ``older``: it has not, as one that was started before us;
``job``: nor has it, and the job's runtime environment is from ``ray job submit``, with a PYTHONPATH of its own.
``unfollowed``: nor has it, and what we put around Ray's functions is taken away.
"""

from __future__ import annotations

import contextlib
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


@contextlib.contextmanager
def hidden(*names):
    """Start what is started meanwhile without these variables."""
    kept = {name: os.environ.pop(name, None) for name in names}
    path = kept["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(entry for entry in path.split(os.pathsep) if "boot" not in entry)
    yield
    os.environ.update({name: value for name, value in kept.items() if value is not None})


def main(temporary, situation):
    """Start Ray, create one of each, print what they have, and stop Ray."""
    options = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 80 * 2**20, "_temp_dir": temporary}
    options |= {"logging_level": "ERROR", "log_to_driver": False}
    if situation == "job":
        job = {"runtime_env": {"env_vars": {"MINE": "job", "PYTHONPATH": os.getcwd()}}, "metadata": {}}
        os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"] = json.dumps(job)
    if situation == "inherit":
        ray.init(**options)
    else:
        # The raylet is started without our variables; the driver has them when its job is made.
        from ray._private import worker
        from ray._private.node import Node

        start = Node.start_ray_processes

        def without(self):
            with hidden(*[name for name in os.environ if name.startswith("PROFWIN_")]):
                return start(self)

        Node.start_ray_processes = without
        if situation == "unfollowed":
            worker._maybe_modify_runtime_env = worker._maybe_modify_runtime_env.__wrapped__
            ray.actor.ActorClass._remote = ray.actor.ActorClass._remote.__wrapped__
        ray.init(**options)
    try:
        kind = ray.remote(num_cpus=0)(Actor)
        path = os.pathsep.join(["/mine", os.getcwd(), os.environ["ROOT"]])
        actors = {
            "actor": kind.remote(),
            "actor-variables": kind.options(runtime_env={"env_vars": {"MINE": "1"}}).remote(),
            "actor-path": kind.options(runtime_env={"env_vars": {"PYTHONPATH": path, "MINE": "2"}}).remote(),
            "decorated": ray.remote(num_cpus=0, runtime_env={"env_vars": {"PYTHONPATH": path}})(Actor).remote(),
        }
        for name, actor in actors.items():
            print(name, ray.get(actor.state.remote()))
        print("task", ray.get(ray.remote(state).remote()))
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
