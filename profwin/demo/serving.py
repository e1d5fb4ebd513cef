"""The sync loop with an inference server in the place of the demo's engine; the trainer is the demo's.

Nothing of the loop is another: a batch is handed to the trainer while the window is open, and its first stage waits at
the device lock until the server has answered that its profiler is stopped.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import cast

import profwin
from profwin.demo.loop import Driver, Outcome, StepResult, start_trainer
from profwin.demo.served import ServedModel, ServerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from profwin.demo.options import Options, ServerOptions
    from profwin.demo.processes import Processes
    from profwin.demo.rollout import RolloutEngine
    from profwin.engines import VLLMServer
    from profwin.window import Window

__all__ = ["ServedDriver", "check", "recorder", "run"]

PROMPTS, GROUP = 16, 8
"""Fewer than with the demo's own engine: the server may be a slow one, and somebody's."""


@dataclass
class ServedDriver(Driver):
    """A driver whose windows are recorded by a server.

    Attributes:
        server: what profwin is given as ``engine=``.
    """

    server: VLLMServer | None = None
    prompts: int = PROMPTS
    group: int = GROUP

    def window(self, step: int) -> Window:
        """Return the rollout window of a step; the server's weights are of version 0 in all of them."""
        return profwin.rollout_window(step, engine=self.server, weight_version=0)


def check(server: ServerOptions, seed: int, *, profiled: bool) -> None:
    """Make sure that a server can be used, before anything else is started.

    Args:
        server: which one.
        seed: as for the run.
        profiled: whether it needs a profiler.

    Raises:
        ServerError: it does not answer, or has no profiler.
    """
    model = ServedModel(server, seed)
    try:
        if profiled:
            model.check_profiler()
    finally:
        model.close()


def run(options: Options, processes: Processes, progress: Callable[[StepResult], None]) -> Outcome:
    """Run the loop.

    Args:
        options: what to run; with a server.
        processes: starts the trainer, with profwin configured.
        progress: called after each step.

    Raises:
        ServerError: the server does not answer.
        SettingError: its URL or its token cannot be one.
    """
    if options.server is None:
        raise ValueError("options without a server")
    server = recorder(options.server, options.devices[0])
    model = ServedModel(options.server, options.seed)
    try:
        driver = ServedDriver(
            options,
            # The sync loop calls no other methods than those that both have.
            cast("RolloutEngine", model),
            start_trainer(options, processes),
            random.Random(options.seed),
            server=server,
        )
        driver.notes.append(f"{server.name} serves {model.name!r}, whose weights stay as they are")
        return driver.run(driver.sync_step, progress)
    finally:
        model.close()


def recorder(server: ServerOptions, devices: str) -> VLLMServer:
    """Return what profwin is given as ``engine=`` for a server; nothing is sent to it.

    Args:
        server: which one.
        devices: names of its devices, separated by commas.

    Raises:
        SettingError: its URL or its token cannot be one.
    """
    from profwin.engines import VLLMServer

    if server.kind != "vllm":
        raise ServerError(server.url, f"the demo knows no server of the kind {server.kind!r}")
    # The trainer could ask for its device while the window is open. That the window ends by itself first is the point.
    return VLLMServer(server.url, token=server.token, devices=devices.split(","), revocable=False)
