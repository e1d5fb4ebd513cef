"""The stress run: windows and stages of many processes, random SIGKILL, and evidence that nothing overlapped.

    python -m benchmarks.stress [--processes 8] [--rounds 2500] [--devices 2] [--kill-every 0.01] [--seed S]
                                [--json FILE] [--no-lock] [--keep]

Two judges that share no code with profwin look at it: a witness in the profiler's place
(`benchmarks.witness`) and a reader of the journals (`benchmarks.journals`). Exit status 0 means no overlap,
no undecodable record but truncated last lines, no crash, and every device free within 100 ms after the storm.
``--no-lock`` must give exit status 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks import witness as witnesses
from benchmarks.journals import overlaps, read_run
from benchmarks.measure import scratch
from benchmarks.storm import Settings, Storm, devices, import_what_a_worker_needs

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.measure import Scratch

__all__ = ["main", "stress"]

FREE_WITHIN = 0.1


def stress(settings: Settings, places: Scratch, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Run the storm and judge it.

    Returns:
        Counts, and under ``problems`` one sentence for each thing that must not be; empty if all is well.
    """
    with scratch() as trial:
        import_what_a_worker_needs(trial)
    storm = Storm(settings, places, progress)
    storm.run()
    run = read_run(str(places.output), storm.deaths)
    crossed = overlaps(run.intervals)
    seen = witnesses.seen(places.locks)
    freed = {device: _seconds_to_acquire(places, device) for device in devices(settings)}
    result: dict[str, Any] = {
        "settings": settings._asdict(),
        "seconds": round(storm.seconds, 2),
        "rounds": storm.rounds_done(),
        "kills": len(storm.deaths),
        "processes": run.processes,
        "records": run.records,
        "undecodable": run.undecodable,
        "truncated": run.truncated,
        "recorded": {
            purpose: sum(each.purpose == purpose for each in run.intervals) for purpose in ("rollout", "training")
        },
        "cut_by_kill": sum(not each.closed for each in run.intervals),
        "skips": {f"{what}: {reason}": count for (what, reason), count in sorted(run.skips.items())},
        "overlaps_in_journals": len(crossed),
        "overlaps_seen_by_witness": len(seen),
        "milliseconds_to_acquire_after": {
            device: None if seconds is None else round(seconds * 1000, 3) for device, seconds in freed.items()
        },
    }
    result["problems"] = _problems(settings, storm, result, run.lost)
    for first, second in crossed[:3]:
        result["problems"].append(f"journals: {first} overlaps {second}")
    result["problems"] += [f"witness: {line}" for line in seen[:3]]
    return result


def _problems(settings: Settings, storm: Storm, result: dict[str, Any], lost: int) -> list[str]:
    recorded, skips = result["recorded"], result["skips"]
    # A process that is killed between its skip and its enter record leaves it unsaid what was skipped.
    wrong_skips = {each: count for each, count in skips.items() if each not in ("stage: peer", "unknown: peer")}
    never = [device for device, taken in result["milliseconds_to_acquire_after"].items() if taken is None]
    checks = {
        f"{result['overlaps_in_journals']} overlaps in the journals": result["overlaps_in_journals"],
        f"{result['overlaps_seen_by_witness']} overlaps seen by the witness": result["overlaps_seen_by_witness"],
        f"{result['undecodable']} undecodable records": result["undecodable"],
        f"worker slots {storm.crashed} crashed": storm.crashed,
        f"the run hung: {result['rounds']} rounds done": storm.hung,
        f"blocks skipped for other reasons than a peer: {wrong_skips}": wrong_skips,
        f"devices {never} were not free {FREE_WITHIN} s after the storm": never,
        f"{lost} lock files vanished under their holders": lost,
        "no window was recorded": not recorded["rollout"],
        "no stage was recorded": not recorded["training"],
        "nobody was killed": settings.kill_every and not storm.deaths,
    }
    return [problem for problem, present in checks.items() if present]


def _seconds_to_acquire(places: Scratch, device: str) -> float | None:
    """Take a device lock as anybody would; None if that takes longer than a free one may."""
    from profwin.registry.device import keys_of
    from profwin.registry.lock import Registry

    registry = Registry(str(places.locks / "registry"))
    start = time.monotonic()
    held = registry.acquire(
        keys_of((device,)),
        kind="training",
        run="after",
        name="after",
        step=1,
        seconds=FREE_WITHIN,
        on_slow=None,
    )
    taken = time.monotonic() - start
    if not hasattr(held, "release"):
        return None
    held.release()
    return taken


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status is 0 if nothing is wrong."""
    default = Settings()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stress", description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=default.processes)
    parser.add_argument("--rounds", type=int, default=default.rounds, help="windows and stages of each process")
    parser.add_argument("--devices", type=int, default=default.devices)
    parser.add_argument("--kill-every", type=float, default=default.kill_every, help="seconds; 0 kills nobody")
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--limit", type=float, default=default.limit, help="seconds after which the run counts as hung")
    parser.add_argument("--no-lock", action="store_true", help="negative control: locks are always granted")
    parser.add_argument("--json", metavar="FILE", help="write the result there too")
    parser.add_argument("--keep", action="store_true", help="leave the directory with the journals")
    given = parser.parse_args(arguments)
    settings = Settings(
        given.processes,
        given.rounds,
        given.devices,
        given.kill_every,
        given.seed,
        not given.no_lock,
        given.limit,
    )
    total = settings.processes * settings.rounds

    def progress(done: int, kills: int) -> None:
        print(f"{done} of {total} windows and stages, {kills} kills", flush=True)

    with scratch(keep=given.keep) as places:
        result = stress(settings, places, progress)
        if given.keep:
            print(f"kept: {places.output} and {places.locks}")
    text = json.dumps(result, indent=1)
    print(text)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    print("FAILED" if result["problems"] else "no overlap, no lost lock")
    return 1 if result["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
