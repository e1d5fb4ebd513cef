"""A Ray cluster on this machine, its actors, and fan-outs to them: bare calls, and windows."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray

import profwin
import profwin.ray
from benchmarks.measure import paired, scratch
from profwin.ray.nodes import nodes, pinned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.measure import Scratch

__all__ = ["EMPTY", "GENERATION", "NOTHING", "fan_out"]

EMPTY, NOTHING, GENERATION = "empty calls", "torch.profiler, nothing", "torch.profiler, 200 tokens"
CALLS = {
    EMPTY: ("start_profile", "stop_profile", False),
    NOTHING: ("start_torch", "stop_torch", False),
    GENERATION: ("start_torch", "stop_torch", True),
}
SELECTED = 1_000_000
WARM = 3
PAUSE = 0.002
ROUNDS = 5
STORE = 80 << 20
TORCH = 230 << 20  # of memory, that an actor takes more when it has imported torch and profiles; then it is measured
LEAST = 150 << 20
ENOUGH = 8  # actors, to know how much each takes
MONITORED, SPARE = 20, 256 << 20  # Ray ends workers where less than a 20th of the memory is left
TOKENS = 200
UNSELECTED = 300


class Engine:
    """An engine as an actor, on a pretended device of its own.

    Args:
        number: of the device.
        traces: where its profiles go.
    """

    def __init__(self, number: int, traces: str) -> None:
        self.devices = [f"pretend:{number}"]
        self._trace = f"{traces}/{number}.json"
        self._profiler: Any = None
        self._frozen = False

    def start_profile(self) -> None:
        """Do nothing."""

    def stop_profile(self) -> None:
        """Do nothing."""

    def start_torch(self) -> None:
        """Start torch's profiler."""
        import torch
        from torch.profiler import ProfilerActivity, profile

        torch.set_num_threads(1)
        self._profiler = profile(activities=[ProfilerActivity.CPU])
        self._profiler.start()

    def stop_torch(self) -> None:
        """Stop it, and write its trace."""
        self._profiler.stop()
        self._profiler.export_chrome_trace(self._trace)

    def tidy(self) -> None:
        """Give back what the last profile took: of 40 it was 120 MiB, too much for 64 actors.

        What torch has imported is looked through once, since that takes 0.15 s; without it 8 ms (measured).
        """
        self._profiler = None
        gc.collect()
        if not self._frozen:
            gc.freeze()
            self._frozen = True

    def generate(self) -> int:
        """Choose some tokens, one after the other, with a model of two layers; return the last."""
        import torch

        state, weights, token = torch.ones(4, 64), torch.ones(64, 64) / 64, 0
        for _ in range(TOKENS):
            state = torch.relu(state @ weights + state) @ weights
            token = int(torch.softmax(state, -1).argmax())
        return token


def fan_out(raylets: int, rounds: dict[str, int], seed: int) -> Iterator[dict[str, Any]]:
    """Measure what windows over actors and the same calls without windows take, few actors first.

    Args:
        raylets: of the cluster.
        rounds: how often each is measured, by the number of actors.
        seed: of the order.

    Yields:
        Parts, each with ``said``: what was done, in words. One may also have ``profiler``, ``size`` and ``found``: the
        milliseconds of ``bare`` and ``window``, and those of processor time in this process; ``unselected``:
        nanoseconds of a window of a step that is not selected, and with its engines made anew; or ``skipped``: what
        there was no memory or no torch for.
    """
    sizes = sorted(int(size) for size in rounds)
    began = time.monotonic()
    with scratch() as places, _cluster(raylets) as address:
        profwin.configure(**places.settings(steps=f"0-{SELECTED - 1}", backend="record", strict=True))
        handles = _actors(address, raylets, sizes[-1], places)
        yield {"said": f"{raylets} raylets and {sizes[-1]} actors {_since(began)}"}
        for size in sizes:
            yield _part(handles[:size], EMPTY, rounds, seed)
        unselected = [_unselected(handles, anew=anew) for anew in (False, True)]
        yield {"said": "a step that is not selected", "unselected": unselected, "size": str(sizes[-1])}
        yield from _with_torch(handles, sizes, rounds, seed)
        profwin.shutdown()


def _with_torch(handles: list[Any], sizes: list[int], rounds: dict[str, int], seed: int) -> Iterator[dict[str, Any]]:
    """Measure with torch's profiler, in ever more actors, for as long as they fit into the memory."""
    if find_spec("torch") is None:
        yield _skipped("torch is not installed")
        return
    each, started = TORCH, 0
    for size in sizes:
        free, further, began = _memory("MemAvailable"), size - started, time.monotonic()
        wanted, spare = further * each, _memory("MemTotal") // MONITORED + SPARE
        if free < wanted + spare:
            need = f"{further} more need {wanted >> 20} MiB, and {spare >> 20} MiB are to be left"
            yield _skipped(f"{size} actors with torch do not fit: {need}, of {free >> 20} MiB that are free")
            return
        try:
            for profiler in (NOTHING, GENERATION):
                yield _part(handles[:size], profiler, rounds, seed)
        except (ray.exceptions.RayError, profwin.ProfwinError) as error:
            yield _skipped(f"{size} actors with torch, {_since(began)}: {str(error).partition(chr(10))[0]}")
            return
        if further >= ENOUGH:
            each = max((free - _memory("MemAvailable")) // further, LEAST)
        started = size


def _part(handles: list[Any], profiler: str, rounds: dict[str, int], seed: int) -> dict[str, Any]:
    began, size, pair = time.monotonic(), str(len(handles)), Pair(handles, profiler)
    for _ in range(WARM):
        pair.bare(), pair.window()
    found = Pair(handles, profiler).measured(rounds[size], seed)
    left = _memory("MemAvailable") >> 20
    actors = "1 actor" if size == "1" else f"{size} actors"
    said = f"{profiler}, {actors}, {rounds[size]} rounds {_since(began)}, {left} MiB of memory free"
    return {"said": said, "profiler": profiler, "size": size, "found": found}


def _skipped(reason: str) -> dict[str, Any]:
    return {"said": f"not measured: {reason}", "skipped": reason}


def _since(began: float) -> str:
    return f"in {time.monotonic() - began:.0f} s"


class Pair:
    """The same two calls to the same actors, through a window and without.

    Args:
        handles: of the actors.
        profiler: what the calls do.
    """

    step = 0

    def __init__(self, handles: list[Any], profiler: str) -> None:
        self.handles = handles
        self._start, self._stop, self._generates = CALLS[profiler]
        self._engines = profwin.ray.actors(handles, self._start, self._stop)
        self._processor: dict[str, list[float]] = {"bare": [], "window": []}

    def measured(self, rounds: int, seed: int) -> dict[str, list[float]]:
        """Return the milliseconds of both, and those of this process's processors."""
        found = paired({"bare": self.bare, "window": self.window}, rounds, seed)
        return {**found, **{f"{name} processor": values[1:] for name, values in self._processor.items()}}

    def bare(self) -> float:
        """Make the calls, and wait for all answers; return the milliseconds."""
        began = Moment()
        self._all(self._start)
        opened = Moment()
        self._generate()
        closing = Moment()
        self._all(self._stop)
        return self._note("bare", began, opened, closing)

    def window(self) -> float:
        """Have a window make them; return the milliseconds."""
        type(self).step += 1
        began = Moment()
        with profwin.rollout_window(self.step, engine=self._engines) as window:
            if not window.recorded:
                raise RuntimeError("the window was not recorded")
            opened = Moment()
            self._generate()
            closing = Moment()
        return self._note("window", began, opened, closing)

    def _all(self, method: str) -> None:
        ray.get([getattr(handle, method).remote() for handle in self.handles])

    def _generate(self) -> None:
        if self._generates:
            self._all("generate")

    def _note(self, name: str, began: Moment, opened: Moment, closing: Moment) -> float:
        ended = Moment()
        self._processor[name].append((ended.processor - closing.processor + opened.processor - began.processor) * 1e3)
        if self._start == "start_torch":
            self._all("tidy")
        time.sleep(PAUSE)
        return (ended.wall - closing.wall + opened.wall - began.wall) * 1e3


class Moment:
    """Now, by the clock and by this process's processor time."""

    def __init__(self) -> None:
        self.wall, self.processor = time.perf_counter(), time.process_time()


@contextmanager
def _cluster(raylets: int) -> Iterator[str]:
    cluster_utils: Any = import_module("ray.cluster_utils")
    os.environ.update(RAY_prestart_worker_first_driver="0", RAY_USAGE_STATS_ENABLED="0")
    temporary = tempfile.mkdtemp(prefix="r", dir="/tmp")  # short: Ray's sockets lie in it
    cluster: Any = cluster_utils.Cluster()
    try:
        for number in range(raylets):
            first = {} if number else {"temp_dir": temporary}
            cluster.add_node(num_cpus=1, include_dashboard=False, object_store_memory=STORE, **first)
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()
        shutil.rmtree(temporary, ignore_errors=True)


def _actors(address: str, raylets: int, count: int, places: Scratch) -> list[Any]:
    """Start actors without resources, on all nodes alike, and wait until all are there."""
    environment = profwin.ray.environment()
    ray.init(address, namespace="bench", runtime_env=environment, logging_level="ERROR", log_to_driver=False)
    found = nodes()
    handles = [pinned(Engine, found[number % raylets], number, str(places.output)) for number in range(count)]
    ray.get([handle.start_profile.remote() for handle in handles])
    return handles


def _memory(field: str) -> int:
    """Return bytes of memory, as ``/proc/meminfo`` has them."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) << 10
    return 0


def _unselected(handles: list[Any], *, anew: bool) -> float:
    """Return the nanoseconds of a window over actors in a step that is not selected: the best of some rounds."""
    best = float("inf")
    engines = profwin.ray.actors(handles)
    for round_number in range(ROUNDS):
        began = time.perf_counter_ns()
        for number in range(UNSELECTED):
            step = SELECTED + round_number * UNSELECTED + number
            with profwin.rollout_window(step, engine=profwin.ray.actors(handles) if anew else engines):
                pass
        best = min(best, (time.perf_counter_ns() - began) / UNSELECTED)
    return best
