"""How long a process waits after another lets a device go: in order, and by SIGKILL."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import time
from time import monotonic_ns
from typing import TYPE_CHECKING

from benchmarks.measure import ROOT, Plan, Scratch, environment, in_fresh_process, scratch
from benchmarks.report import Figure, Skipped, spread

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["run"]

NAME = "handover"
ROUNDS = 400
ATTEMPTS = 20  # at each round: on a busy machine this process may come when the other has let go already
KILLS = 20
HOLD = (0.002, 0.012)
BALLAST = 70 << 20
_TIME = struct.Struct("<q")


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Measure window to stage, stage to window, and a killed holder, small and near 100 MB."""
    for first, second in (("window", "stage"), ("stage", "window")):
        milliseconds = in_fresh_process(in_order, first=first, rounds=plan.count(ROUNDS, 5), seed=plan.seed)
        yield from spread(NAME, f"{first} to {second}", milliseconds, "ms", {50: 0.5, 99: 3.0})
    for ballast, words in ((0, "a small holder"), (BALLAST, "a holder near 100 MB")):
        answer = in_fresh_process(after_kill, kills=plan.count(KILLS, 2), ballast=ballast, seed=plan.seed)
        detail = f"holder's peak {max(answer['megabytes']):.0f} MB"
        times = answer["milliseconds"]
        yield from spread(NAME, f"SIGKILL of {words} to the other's entry", times, "ms", {50: 10.0, 100: 10.0}, detail)


def in_order(first: str, rounds: int, seed: int) -> list[float]:
    """Let another process hold the device, wait here, and measure from its last body line to our first.

    Both processes use the public window and stage with the record backend, so the time holds everything: the
    holder's close record, the release, the wake-up, and the waiter's own records before its body.
    """
    milliseconds = []
    second = "stage" if first == "window" else "window"
    with scratch() as places:
        configure(places)
        holder = _holder(first, rounds * ATTEMPTS, 0, seed)
        for step in range(1, rounds * ATTEMPTS + 1):
            _read(holder)
            asked = monotonic_ns()
            entered = enter(second, step)
            left = _read(holder)
            if asked <= left:  # else the holder was already out: nothing was waited for
                milliseconds.append((entered - left) / 1e6)
            if len(milliseconds) == rounds:
                break
            _tell(holder)
        assert holder.stdin is not None
        holder.stdin.close()
        holder.wait(60)
    if len(milliseconds) < rounds:
        raise RuntimeError(f"only {len(milliseconds)} of {rounds} rounds waited")
    return milliseconds


def after_kill(kills: int, ballast: int, seed: int) -> dict[str, list[float]]:
    """Let a holder SIGKILL itself while this process waits, and measure from the kill to our first line."""
    milliseconds, megabytes = [], []
    with scratch() as places:
        configure(places)
        for step in range(1, kills + 1):
            holder = _holder("kill", step, ballast, seed + step)
            megabytes.append(_read(holder) / 1e6)
            entered = enter("stage", step)
            milliseconds.append((entered - _read(holder)) / 1e6)
            holder.wait(60)
    return {"milliseconds": milliseconds, "megabytes": megabytes}


def configure(places: Scratch) -> None:
    """Begin the run that all processes of the benchmark share."""
    import profwin

    profwin.configure(**places.settings(steps="every:1", backend="record", role="waiter"))


def enter(kind: str, step: int) -> int:
    """Enter a window or stage, and give the time of its first body line."""
    import profwin

    if kind == "window":
        with profwin.rollout_window(step):
            return monotonic_ns()
    with profwin.training_step(step), profwin.training_stage("stage"):
        return monotonic_ns()


def _holder(kind: str, rounds: int, ballast: int, seed: int) -> subprocess.Popen[bytes]:
    import profwin

    arguments = [kind, str(rounds), str(ballast), str(seed)]
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.handover", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment(**profwin.environment()),
    )


def _read(holder: subprocess.Popen[bytes]) -> int:
    assert holder.stdout is not None
    data = holder.stdout.read(_TIME.size)
    if len(data) < _TIME.size:
        raise RuntimeError(f"the holder ended with {holder.wait()}")
    return int(_TIME.unpack(data)[0])


def _tell(holder: subprocess.Popen[bytes]) -> None:
    assert holder.stdin is not None
    holder.stdin.write(b".")
    holder.stdin.flush()


def _say(value: int) -> None:
    os.write(1, _TIME.pack(value))


def hold(kind: str, rounds: int, ballast: int, seed: int) -> None:
    """Be the holder: say when the device is held and when it is let go, through the pipe."""
    import profwin

    pause = random.Random(seed)
    if kind == "kill":
        weight = bytearray(ballast)
        weight[:: 4096 // 8] = b"x" * len(weight[:: 4096 // 8])
        with profwin.rollout_window(rounds):
            _say(_peak_bytes())
            time.sleep(0.03)
            _say(monotonic_ns())
            os.kill(os.getpid(), signal.SIGKILL)
    for step in range(1, rounds + 1):
        if kind == "window":
            with profwin.rollout_window(step):
                left = _held(pause)
        else:
            with profwin.training_step(step), profwin.training_stage("stage"):
                left = _held(pause)
        _say(left)
        if not os.read(0, 1):
            return


def _held(pause: random.Random) -> int:
    _say(0)
    time.sleep(pause.uniform(*HOLD))
    return monotonic_ns()


def _peak_bytes() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


if __name__ == "__main__":
    hold(sys.argv[1], *map(int, sys.argv[2:5]))
