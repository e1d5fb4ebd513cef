"""Drivers on a Ray cluster of two raylets, with engine actors and trainers on pretend devices."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from core_support import Child

from profwin.engines import procfs

PATIENCE = 300.0
"""Seconds; for what a driver does with a cluster on a busy machine."""
CLUSTER = Path(__file__).with_name("ray_cluster.py")

DRIVER = """
import atexit
import ray
import profwin.ray

atexit.register(ray.shutdown)  # before Ray's own, which first waits half a second for the last logs

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

def dead(*actors):
    # What this process still takes for alive answers or is asked in vain; it may learn of a node's death before.
    for actor in actors:
        while True:
            try:
                ray.get(actor.said.remote())
            except ray.exceptions.ActorDiedError:
                break
            except ray.exceptions.ActorUnavailableError:
                pass
            time.sleep(0.05)

def join():
    ray.init(
        os.environ["CLUSTER"], namespace=os.environ["OUTPUT"], runtime_env=profwin.ray.environment(),
        logging_level="ERROR", log_to_driver=False,
    )

def connect(steps="1-3", **settings):
    profwin.configure(steps=steps, output=os.environ["OUTPUT"], run="run", **settings)
    join()
"""


NODES = ("first", "second=6")
"""The nodes of a cluster by default. The second one has cards that are not there."""

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_prestart_worker_first_driver": "0",
    # A raylet that is gone is noticed within 2 s, one that is stopped or slow not for 150 s.
    "RAY_health_check_period_ms": "300",
    "RAY_health_check_failure_threshold": "5",
    "RAY_health_check_timeout_ms": "30000",
    # A busy machine, or one that is short of memory on another's account, ends nothing of a test's.
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_agent_register_timeout_ms": "200000",
    "RAY_worker_register_timeout_seconds": "200",
}


class Nodes(str):
    """The address of a cluster, with which raylets can be killed and added."""

    process = None

    def kill(self, name):
        """Kill a node's raylet with SIGKILL; the processes of its actors stay for a while."""
        self._ask("kill", name)

    def dead(self, name):
        """Wait until Ray takes a node for dead that was killed."""
        self._ask("dead", name)

    def add(self, name):
        """Add a node of a name that there is not."""
        self._ask("add", name)

    def _ask(self, what, name):
        self.process.stdin.write(f"{what} {name}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().split() == [what, name]


def _below(address, host=None):
    """Return all processes of this cluster, or of one pretended host of it: others may run beside it."""
    found = procfs.within(address.process.pid, procfs.parents())
    if host is None:
        return found
    return [pid for pid in found if (procfs.environment(pid) or {}).get("PROFWIN_PRETEND_HOST") == host]


def raylet(address, name):
    """Return the process of the raylet of a host."""
    (pid,) = [pid for pid in _below(address, name) if procfs.program(pid) == "raylet"]
    return pid


def workers(address, name=None):
    """Return Ray's workers of a cluster, or of one host of it."""
    return {pid for pid in _below(address, name) if "".join(procfs.arguments(pid)).startswith("ray::")}


@contextlib.contextmanager
def running(*names, hosts=False):
    """Start a cluster; give its address.

    The nodes have these names, else those of `NODES`; with `hosts`, each is as if on a host of its own.
    """
    temporary = tempfile.mkdtemp(prefix="r", dir="/tmp")  # short: Ray's sockets lie in it
    os.mkdir(f"{temporary}/ray")  # there, not in a place for all, Ray notes which of a machine's clusters is the latest
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PROFWIN_")}
    environment = {**_SETTINGS, **environment, "RAY_TMPDIR": temporary}
    process = subprocess.Popen(
        [sys.executable, str(CLUSTER), temporary, *(["--hosts"] if hosts else []), *(names or NODES)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True,
    )  # fmt: skip
    try:
        address = Nodes(process.stdout.readline().strip())
        assert address, "the cluster did not start"
        address.process = process
        yield address
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
        status, out, err = self.finish(PATIENCE)
        assert status == 0, f"{out}\n{err}"
        return [line.removeprefix("said: ") for line in out.splitlines() if line.startswith("said: ")]


def drive(script, address, output):
    """Run a driver to its end; return what it said."""
    with Driver(script, address, output) as driver:
        return driver.end()
