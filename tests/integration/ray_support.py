"""Drivers on a Ray cluster of two raylets, with engine actors and trainers on pretend devices."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from core_support import PATIENCE, Child

CLUSTER = Path(__file__).with_name("ray_cluster.py")

DRIVER = """
import ray
import profwin.ray

def say(*words):
    print("said:", *words, flush=True)  # Ray prints what it has to say of deaths on standard output, too

class Engine:
    def __init__(self):
        self.calls = []

    def start_profile(self):
        self.calls.append("start")

    def stop_profile(self):
        self.calls.append("stop")

    def generate(self):
        self.calls.append("generate")
        return os.getpid()

    def said(self):
        return self.calls

class Hybrid(Engine):
    @training_stage
    def update(self):
        return os.getpid()

class Broken(Engine):
    def start_profile(self):
        super().start_profile()
        raise RuntimeError("it is broken")

class AsyncEngine:
    def __init__(self):
        self.calls, self.loops = [], []

    async def start_profile(self):
        self.calls.append("start")
        self.loops.append(asyncio.get_running_loop())
        while "beside" not in self.calls:  # the loop goes on meanwhile
            await asyncio.sleep(0.01)

    async def stop_profile(self):
        self.calls.append("stop")
        self.loops.append(asyncio.get_running_loop())

    async def beside(self):
        while "start" not in self.calls:
            await asyncio.sleep(0.01)
        self.calls.append("beside")
        self.loops.append(asyncio.get_running_loop())

    async def said(self):
        return self.calls, len(set(map(id, self.loops)))

class Trainer:
    @training_stage
    def update(self):
        return os.getpid()

def place(kind, node, device, **options):
    environment = profwin.ray.environment(devices=device)
    return ray.remote(kind).options(
        num_cpus=0, resources={node: 0.001}, runtime_env=environment, **options
    ).remote()

def connect(steps="1-3", **settings):
    profwin.configure(steps=steps, output=os.environ["OUTPUT"], run="run", **settings)
    ray.init(
        os.environ["CLUSTER"], namespace="profwin", runtime_env=profwin.ray.environment(), logging_level="ERROR",
        log_to_driver=False,
    )
"""


@contextlib.contextmanager
def running():
    """Start a cluster; give its address."""
    temporary = tempfile.mkdtemp(prefix="r", dir="/tmp")  # short: Ray's sockets lie in it
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PROFWIN_")}
    environment |= {"RAY_prestart_worker_first_driver": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    process = subprocess.Popen(
        [sys.executable, str(CLUSTER), temporary],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True,
    )  # fmt: skip
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        shutil.rmtree(temporary, ignore_errors=True)


class Driver(Child):
    """A script that drives actors: `DRIVER` before it, the cluster and the output directory in its variables."""

    def __init__(self, script, address, output, **environment):
        variables = {"CLUSTER": address, "OUTPUT": str(output), "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
        super().__init__(DRIVER + script, **variables, **environment)

    def hear(self, patience=PATIENCE):
        """Return the next line that the script says, without what Ray says."""
        while not (line := super().hear(patience)).startswith("said: "):
            pass
        return line.removeprefix("said: ")

    def end(self):
        """Wait until the script has come to its end; return what else it said."""
        status, out, err = self.finish()
        assert status == 0, f"{out}\n{err}"
        return [line.removeprefix("said: ") for line in out.splitlines() if line.startswith("said: ")]


def drive(script, address, output):
    """Run a driver to its end; return what it said."""
    with Driver(script, address, output) as driver:
        return driver.end()
