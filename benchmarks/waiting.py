"""How waiting goes: in event loops, in a crowd, and idly for long."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from contextlib import suppress
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Plan, in_fresh_process, scratch
from benchmarks.partner import Partner, say, told
from benchmarks.report import Figure, Skipped, spread

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["run"]

NAME = "waiting"
ROUNDS = 400
HOLD = (0.002, 0.012)
TICK = 0.001
LOOPS = ("asyncio", "uvloop")
ORDERS = (("window", "stage"), ("stage", "window"))
CROWD, CROWD_HOLD, CROWD_SECONDS = 8, 0.001, 3.0
CROWD_REST = 0.5
IDLE_SECONDS = 5.0
ATTEMPTS = 20  # at each round: on a busy machine this process may come when the other has let go already


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Measure handovers into event loops, eight processes that want one device, and what idle waiting costs."""
    for loop in LOOPS:
        for first, second in ORDERS:
            what = f"{loop}: {first} to {second}"
            answer = in_fresh_process(in_loop, loop=loop, first=first, rounds=plan.count(ROUNDS, 5), seed=plan.seed)
            if "absent" in answer:
                yield Skipped(NAME, what, answer["absent"])
                continue
            detail = f"a ticker of {TICK * 1e3:.0f} ms beside it was late by at most {max(answer['late']):.1f} ms"
            yield from spread(NAME, what, answer["handover"], "ms", {50: 1.5, 99: 5.0}, detail)
    answer = in_fresh_process(crowd, seconds=max(0.3, CROWD_SECONDS * plan.scale))
    words = f"{CROWD} waiters, {CROWD_HOLD * 1e3:.0f} ms holds"
    detail = f"each had the device {min(answer['turns'])} to {max(answer['turns'])} times in {answer['seconds']:.1f} s"
    yield from spread(NAME, words, answer["waits"], "ms", {50: None, 99: None, 100: 250.0}, detail)
    for kind in ("thread", "event loop"):
        share = in_fresh_process(idle, kind=kind, seconds=max(1.0, IDLE_SECONDS * plan.scale))
        yield Figure(NAME, f"an idle waiter in a {kind}, share of a core", share * 100, "%", target=0.5, count=1)


def in_loop(loop: str, first: str, rounds: int, seed: int) -> dict[str, Any]:
    """Wait in an event loop for a device that another process lets go of, with a ticker beside it.

    Returns:
        ``handover``: milliseconds from the holder's last line to the first of the body here; ``late``: by how many
        milliseconds each tick that fell into a wait came too late. Or ``absent``: why there is no such event loop.
    """
    runner: Any = asyncio.run
    if loop == "uvloop":
        try:
            import uvloop
        except ImportError as error:
            return {"absent": str(error)}
        runner = uvloop.run
    import profwin

    with scratch() as places:
        profwin.configure(**places.settings(steps="every:1", backend="record", role="waiter"))
        with Partner("benchmarks.waiting", first, rounds * ATTEMPTS, seed) as holder:
            found: dict[str, Any] = runner(_wait_in_loop(holder, "stage" if first == "window" else "window", rounds))
        profwin.shutdown()
    if len(found["handover"]) < rounds:
        raise RuntimeError(f"only {len(found['handover'])} of {rounds} rounds waited")
    return found


async def _wait_in_loop(holder: Partner, kind: str, rounds: int) -> dict[str, list[float]]:
    import profwin

    found: dict[str, list[float]] = {"handover": [], "late": []}
    ticker = asyncio.create_task(_tick(found["late"]))
    for step in range(1, rounds * ATTEMPTS + 1):
        await asyncio.to_thread(holder.read)
        asked = monotonic_ns()
        if kind == "window":
            async with profwin.rollout_window(step):
                entered = monotonic_ns()
        else:
            with profwin.training_step(step):
                async with profwin.training_stage("stage"):
                    entered = monotonic_ns()
        left = await asyncio.to_thread(holder.read)
        if asked < left:  # else the holder was already out, and nothing was waited for
            found["handover"].append((entered - left) / 1e6)
        if len(found["handover"]) == rounds:
            break
        holder.tell()
    ticker.cancel()
    with suppress(asyncio.CancelledError):
        await ticker
    return found


async def _tick(late: list[float]) -> None:
    while True:
        began = monotonic_ns()
        await asyncio.sleep(TICK)
        late.append((monotonic_ns() - began) / 1e6 - TICK * 1e3)


def crowd(seconds: float) -> dict[str, Any]:
    """Let some processes open and close windows on one device as fast as they can, each holding it for a moment.

    Returns:
        ``waits``: milliseconds from each call to the first line of its body; ``turns``: windows of each process; and
        ``seconds``, how long it went on.
    """
    import profwin

    waits: list[float] = []
    turns = []
    with scratch() as places:
        profwin.configure(**places.settings(steps="every:1", backend="record", strict=True))
        partners: list[Partner] = []
        try:
            for number in range(CROWD):
                partners.append(Partner("benchmarks.waiting", "crowd", number, seconds))  # noqa: PERF401  # may fail
            for partner in partners:
                partner.read()
            for partner in partners:
                partner.tell()
            time.sleep(seconds + CROWD_REST)
            for partner in partners:
                partner.tell()
                turns.append(partner.read())
                waits.extend(partner.read() / 1e6 for _ in range(turns[-1]))
        finally:
            error = sys.exc_info()[1]
            for partner in partners:
                partner.__exit__(type(error) if error is not None else None, error, None)
        profwin.shutdown()
    return {"waits": waits, "turns": turns, "seconds": seconds}


def idle(kind: str, seconds: float) -> float:
    """Wait for a device that another process holds for so long; return this process's share of a core meanwhile."""
    import profwin

    with scratch() as places:
        settings = places.settings(steps="every:1", backend="record", wait_budget=600, strict=True)
        profwin.configure(**settings)
        with profwin.rollout_window(1, devices="pretend:other"):
            pass  # what is loaded and made for the first window is no part of waiting
        with Partner("benchmarks.waiting", "idle", 1, seconds) as holder:
            holder.read()
            began, used = time.monotonic(), time.process_time()
            if kind == "thread":
                with profwin.rollout_window(2):
                    lasted, used = time.monotonic() - began, time.process_time() - used
            else:
                lasted, used = asyncio.run(_idle(began, used))
        profwin.shutdown()
    if lasted < seconds / 2:
        raise RuntimeError("the waiter did not wait")
    return used / lasted


async def _idle(began: float, used: float) -> tuple[float, float]:
    import profwin

    async with profwin.rollout_window(2):
        return time.monotonic() - began, time.process_time() - used


def hold(kind: str, rounds: int, seed: int) -> None:
    """Be the holder: say when the device is held and when it is let go."""
    import profwin

    pause = random.Random(seed)
    for step in range(1, rounds + 1):
        if kind == "window":
            with profwin.rollout_window(step):
                left = _held(pause)
        else:
            with profwin.training_step(step), profwin.training_stage("stage"):
                left = _held(pause)
        say(left)
        if not told():
            return


def _held(pause: random.Random) -> int:
    say(0)
    time.sleep(pause.uniform(*HOLD))
    return monotonic_ns()


def jostle(number: int, seconds: float) -> None:
    """Be one of the crowd."""
    import profwin

    waits = []
    with profwin.rollout_window(1, devices=f"pretend:own{number}"):
        pass  # what is loaded and made for the first window is no part of waiting
    say(0)
    told()
    until, step = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        step += 1
        asked = monotonic_ns()
        with profwin.rollout_window(step, name=f"window{number}"):
            waits.append(monotonic_ns() - asked)
            time.sleep(CROWD_HOLD)
    told()  # not before all are done: saying it, and ending, would keep the others from a core
    for value in (len(waits), *waits):
        say(value)


def keep(seconds: float) -> None:
    """Keep the device for a while."""
    import profwin

    with profwin.rollout_window(1):
        say(0)
        time.sleep(seconds)
    told()


if __name__ == "__main__":
    if sys.argv[1] == "crowd":
        jostle(int(sys.argv[2]), float(sys.argv[3]))
    elif sys.argv[1] == "idle":
        keep(float(sys.argv[3]))
    else:
        hold(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
