"""The four loops on a cluster: which actors each has, and on which devices."""

from __future__ import annotations

import random
from typing import cast

from profwin.demo import loop, separate
from profwin.demo.cluster.fully_async import FullyAsyncDriver
from profwin.demo.cluster.group import EngineGroup, RollouterGroup, TrainerGroup, shares
from profwin.demo.loop import PROMPTS, Driver
from profwin.demo.separate import SeparateDriver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from profwin.demo.child import Child
    from profwin.demo.cluster.processes import ActorProcesses
    from profwin.demo.loop import Outcome, StepResult
    from profwin.demo.options import Options
    from profwin.demo.rollout import RolloutEngine

__all__ = ["run"]


def run(options: Options, processes: ActorProcesses, progress: Callable[[StepResult], None]) -> Outcome:
    """Run a loop.

    In sync and colocate each device has an engine and a trainer. In the pipelined loops the first half of the devices
    has engines alone; the others have trainers, and in separate engines as well, to which they are lent.

    Args:
        options: what to run.
        processes: starts the actors, with profwin configured.
        progress: called after each step.

    Raises:
        ChildError: an actor has ended, or failed.
    """
    outcome = _lead(options, processes, progress)
    processes.end()
    return outcome


def _lead(options: Options, processes: ActorProcesses, progress: Callable[[StepResult], None]) -> Outcome:
    from profwin.demo.trainer import Trainer

    devices, half, seed = options.devices, len(options.devices) // 2, options.seed
    rollout, training = (devices[:half], devices[half:]) if options.pipelined else (devices, devices)
    trainers = TrainerGroup(processes.start(Trainer, "trainer", "actor", dict.fromkeys(training, (seed,))))
    if options.loop == "fully_async":
        rollouters = _rollouters(rollout, processes, seed)
        processes.await_start()
        return FullyAsyncDriver(options, rollouters, trainers).run(progress)
    engines = _engines("engine", rollout, processes, seed)
    # The loops call no other methods than those that the groups have, too.
    engine, trainer = cast("RolloutEngine", engines), cast("Child", trainers)
    generator = random.Random(seed)
    if options.loop == "separate":
        lent = _engines("hybrid", training, processes, seed + half)
        processes.await_start()
        driver = SeparateDriver(
            options, engine, trainer, generator, recorder=engines.recorder(),
            hybrid=cast("RolloutEngine", lent), hybrid_recorder=lent.recorder(),
        )  # fmt: skip
        return separate.lead(driver, progress)
    processes.await_start()
    return loop.lead(Driver(options, engine, trainer, generator, recorder=engines.recorder()), progress)


def _engines(role: str, devices: Sequence[str], processes: ActorProcesses, seed: int) -> EngineGroup:
    from profwin.demo.cluster.actors import EngineActor

    arguments = {device: (seed + number,) for number, device in enumerate(devices)}
    return EngineGroup(processes.start(EngineActor, "engine", role, arguments))


def _rollouters(devices: Sequence[str], processes: ActorProcesses, seed: int) -> RollouterGroup:
    from profwin.demo.cluster.actors import RollouterActor

    counts = shares(PROMPTS, len(devices))
    arguments = {device: (seed + number, counts[number]) for number, device in enumerate(devices)}
    return RollouterGroup(processes.start(RollouterActor, "rollouter", "rollouter", arguments))
