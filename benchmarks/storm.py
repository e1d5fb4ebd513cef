"""The processes of the stress run: workers that open windows and stages, and the storm that kills them."""

from __future__ import annotations

import gc
import json
import mmap
import os
import random
import signal
import struct
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import witness as witnesses

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.measure import Scratch

__all__ = ["Settings", "Storm", "devices", "import_what_a_worker_needs"]

CRASHED = 70


class Settings(NamedTuple):
    """What a stress run does.

    Attributes:
        processes: how many workers run at a time.
        rounds: windows and stages that each worker slot gets done; a killed worker's successor goes on.
        devices: how many pretend devices they share.
        kill_every: seconds between two SIGKILLs; 0 kills nobody.
        seed: of every choice.
        lock: False replaces the acquisition of device locks by a no-op (the negative control).
        limit: seconds after which the run is given up as hung.
    """

    processes: int = 8
    rounds: int = 2500
    devices: int = 2
    kill_every: float = 0.01
    seed: int = 1
    lock: bool = True
    limit: float = 600.0


def devices(settings: Settings) -> list[str]:
    """Name the pretend devices."""
    return [f"pretend:{number}" for number in range(settings.devices)]


class Storm:
    """Fork the workers, kill at random, and fork again until every slot has done its rounds.

    Args:
        settings: what to do.
        places: where locks, journals and the witness's files go.
        progress: called about once a second with the rounds done and the kills so far.

    Attributes:
        deaths: pid of each killed worker to the monotonic nanoseconds just before its kill.
        crashed: workers that ended in another way than by being killed or finishing.
        hung: whether the limit was reached.
    """

    def __init__(self, settings: Settings, places: Scratch, progress: Callable[[int, int], None]) -> None:
        self.settings, self.places, self._progress = settings, places, progress
        self.deaths: dict[int, int] = {}
        self.crashed: list[int] = []
        self.hung = False
        self.seconds = 0.0
        self._done = mmap.mmap(-1, 8 * settings.processes)
        self._chance = random.Random(settings.seed)
        self._alive: dict[int, int] = {}

    def run(self) -> None:
        """Run the storm to its end; it leaves no process behind."""
        settings = self.settings
        started = reported = time.monotonic()
        next_kill = started + settings.kill_every
        try:
            for slot in range(settings.processes):
                self._fork(slot)
            while self._alive:
                time.sleep(max(0.0, min(next_kill - time.monotonic(), 0.05)) if settings.kill_every else 0.01)
                self._reap()
                now = time.monotonic()
                if settings.kill_every and now >= next_kill:
                    self._kill_one()
                    next_kill = max(next_kill + settings.kill_every, time.monotonic())
                if now - reported >= 1.0:
                    reported = now
                    self._progress(self.rounds_done(), len(self.deaths))
                if now - started > settings.limit:
                    self.hung = True
                    break
        finally:
            for pid in list(self._alive):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            self.seconds = time.monotonic() - started

    def rounds_done(self) -> int:
        """Give the rounds that all slots have finished."""
        return sum(struct.unpack(f"<{self.settings.processes}q", self._done[:]))

    def _fork(self, slot: int) -> None:
        seed = self._chance.random()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            self._alive[pid] = slot
            return
        code = CRASHED
        try:
            work(self.settings, self.places, slot, self._done, seed)
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        for pid in list(self._alive):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self._ended(pid, killed=False)

    def _kill_one(self) -> None:
        # A slot is drawn among all, also the finished ones: the last workers are not killed more often than the first.
        slot = self._chance.randrange(self.settings.processes)
        victim = next((pid for pid, owner in self._alive.items() if owner == slot), None)
        if victim is None:
            return
        if self._chance.random() < 0.5:
            device = self._chance.choice(devices(self.settings))
            occupant = witnesses.occupant(self.places.locks, device)
            if occupant in self._alive:
                victim = occupant
        before = time.monotonic_ns()
        os.kill(victim, signal.SIGKILL)
        status = os.waitpid(victim, 0)[1]
        if os.WIFSIGNALED(status):
            self.deaths[victim] = before
        self._ended(victim, killed=True)

    def _ended(self, pid: int, *, killed: bool) -> None:
        slot = self._alive.pop(pid)
        finished = struct.unpack_from("<q", self._done, 8 * slot)[0] >= self.settings.rounds
        if not finished and not killed:
            self.crashed.append(slot)
        elif not finished:
            self._fork(slot)


def work(settings: Settings, places: Scratch, slot: int, done: mmap.mmap, seed: float) -> None:
    """Be one worker: even rounds are windows, odd rounds are stages, each on a device chosen at random."""
    import profwin

    os.environ.update(PROFWIN_RUN="stress", PROFWIN_ATTEMPT="0", PROFWIN_PARENT="stress")
    chance = random.Random(seed)
    witness = witnesses.Witness(places.locks, lambda: chance.uniform(0.0, 0.0005))
    device = [""]
    _watch_record_backend(witness, device)
    if not settings.lock:
        _without_locks()
    profwin.configure(
        steps="every:1",
        backend="record",
        output=str(places.output),
        lock_dir=str(places.locks / "registry"),
        wait_budget=settings.limit,
        role=f"slot{slot}",
    )
    for turn in range(struct.unpack_from("<q", done, 8 * slot)[0], settings.rounds):
        device[0] = chance.choice(devices(settings))
        if turn % 2 == 0:
            with profwin.rollout_window(turn, devices=[device[0]]):
                pass
        else:
            with profwin.training_step(turn), profwin.training_stage("train", devices=[device[0]]):
                pass
        struct.pack_into("<q", done, 8 * slot, turn + 1)
    profwin.shutdown()


def _watch_record_backend(witness: witnesses.Witness, device: list[str]) -> None:
    """Put the witness where a profiler would be: it is inside exactly while the backend records."""
    from profwin.backends.record import RecordBackend

    plain = RecordBackend.open

    class Watched:
        """A recording that tells the witness."""

        def __init__(self, backend: Any, request: Any) -> None:
            self._recording, self._device = plain(backend, request), device[0]

        def __enter__(self) -> Any:
            witness.enter(self._device)
            return self._recording.__enter__()

        def __exit__(self, *error: object) -> Any:
            witness.leave(self._device)
            return self._recording.__exit__(*error)

    def watched(backend: RecordBackend, request: Any) -> Watched:
        return Watched(backend, request)

    RecordBackend.open = watched  # type: ignore[assignment,method-assign]  # it stands in for the profiler


def _without_locks() -> None:
    """Replace the acquisition of device locks in this process by a no-op that always succeeds."""
    from profwin.registry import file

    if not hasattr(file, "flock"):
        raise RuntimeError("the registry takes its locks in another way: this control would control nothing")
    file.flock = lambda _descriptor, _operation: None  # type: ignore[assignment]  # the negative control


def import_what_a_worker_needs(places: Scratch) -> None:
    """Import everything that a worker uses, so that forked workers do not spend their short lives on imports.

    A trial worker runs in a child and says which modules it loaded; this process, which forks the others,
    imports them, and nothing else happens in it.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reader)
        code = CRASHED
        try:
            work(Settings(1, 2, 1), places, 0, mmap.mmap(-1, 8), 0.5)
            with open(writer, "w", encoding="utf-8") as pipe:
                json.dump(sorted(sys.modules), pipe)
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError("the trial worker failed")
    for name in json.loads(text):
        if name not in sys.modules:
            try:
                import_module(name)
            except ImportError:
                continue
    gc.freeze()
