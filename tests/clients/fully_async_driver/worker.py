"""A worker by itself, as Ray has it: it learns from weight syncs which step it trains."""

from __future__ import annotations

import asyncio
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["drive"]


def drive(without: Sequence[str], directory: str) -> list[str]:
    """Train two steps, with one recording a step, and one that is not profiled; return the log."""
    from verl_driver.devicelog import DeviceLog

    import profwin
    from fully_async_driver.planned import Acts, plan
    from fully_async_driver.rollout import Manager
    from fully_async_driver.scenario import HYBRID, Scenario
    from fully_async_driver.trainer import worker_group
    from profwin.patch.installation import install, uninstall
    from profwin.testing.backend import control

    os.chmod(directory, 0o1777)
    log = DeviceLog()
    profwin.configure(
        steps=[1, 2], backend="testing", collect="step", devices="pretend:trainer", output=directory, lock_dir=directory
    )
    control.acts = Acts(log)
    install(plan(without))
    try:
        group = worker_group(Scenario("worker", discrete=False), log)
        manager: Any = Manager(log, [], group.worker, HYBRID)
        for version in range(4):
            asyncio.run(manager.update_weights(version))
            log.step = version + 1
            if version < 3:
                group.compute_log_prob(None)
                group.update_actor(None)
    finally:
        uninstall()
        profwin.shutdown()
        control.reset()
    return [f"{entry.step} {entry.what} {entry.kind}" for entry in log.entries]
