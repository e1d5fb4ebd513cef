"""What a run of the demo is asked to do; light, so that the command's help needs nothing else."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.selection import Selection

__all__ = ["LOOPS", "MISUSE_NAMES", "OLDEST_SAMPLES", "Options", "ServerOptions", "new_run_name"]

LOOPS = ("sync", "colocate", "separate", "fully_async")
OLDEST_SAMPLES = {"sync": 0, "colocate": 1, "separate": 1, "fully_async": 2}
"""How many weight versions a sample may be behind the weights that are trained on it, by the loop's design."""
MISUSE_NAMES = ("stage-in-window", "no-stop", "second-profiler", "kill-engine")


def new_run_name(loop: str) -> str:
    """Return a name that no other run on this host has."""
    return f"{loop}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


@dataclass(frozen=True)
class ServerOptions:
    """A server that generates in the place of the demo's engine.

    Attributes:
        kind: what serves there, such as ``vllm``.
        url: where it listens.
        token: what it asks of whom it serves, or None; kept out of everything that is printed.
        devices: what it and the trainer record on, as :func:`profwin.configure` takes them; None: a pretend device.
    """

    kind: str
    url: str
    token: str | None = field(default=None, repr=False)
    devices: str | None = None


@dataclass(frozen=True)
class Options:
    """One run.

    Attributes:
        loop: one of `LOOPS`.
        steps: how many steps it has; they are numbered from 1.
        profile: which of them are profiled; None switches profwin off.
        output: the directory that holds one directory a run.
        seed: of weights, prompts and sampling.
        misuse: what is done wrong on purpose, or None.
        wait_budget: seconds that a stage may wait for its device.
        server: what generates, in the sync loop; None: the demo's own engine.
        nodes: how many nodes of a Ray cluster it runs on; 0: it runs without Ray.
    """

    loop: str
    steps: int
    profile: Selection | None
    output: str
    seed: int
    misuse: str | None = None
    wait_budget: float = 30.0
    run: str = field(default="")
    server: ServerOptions | None = None
    nodes: int = 0

    @property
    def directory(self) -> str:
        """The run's own directory."""
        return os.path.join(self.output, self.run)

    @property
    def profiled(self) -> list[int]:
        """The profiled steps that the run reaches."""
        return [step for step in range(1, self.steps + 1) if self.selected(step)]

    @property
    def pipelined(self) -> bool:
        """Whether rollout and training have a device each and run at the same time."""
        return self.loop in ("separate", "fully_async")

    @property
    def real_devices(self) -> bool:
        """Whether devices were named, which others may use too."""
        return self.server is not None and self.server.devices is not None

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices, pretend ones if none was named: the rollout's, then the trainer's; one where they share it.

        On Ray each node has one; a single node has two for a pipelined loop.
        """
        if self.nodes > 1 or (self.nodes == 1 and not self.pipelined):
            return tuple(f"pretend:{host}-{self.run}" for host in self.hosts)
        if self.server is not None and self.server.devices is not None:
            return (self.server.devices,)
        letters = ("-a", "-b") if self.pipelined else ("",)
        place = self.hosts[0] if self.nodes else "demo"
        return tuple(f"pretend:{place}{letter}-{self.run}" for letter in letters)

    @property
    def hosts(self) -> tuple[str, ...]:
        """What the nodes of the cluster pretend to be."""
        return tuple(f"node{number}" for number in range(1, self.nodes + 1))

    def host_of(self, device: str) -> str:
        """Return on which of the hosts a device is."""
        return self.hosts[min(self.devices.index(device), self.nodes - 1)]

    def short(self, key: str) -> str:
        """Return what a device is called in tables, such as ``demo-a``."""
        return key.removeprefix("pretend-").removesuffix(f"-{self.run}")

    def selected(self, step: int) -> bool:
        """Say whether a step is profiled."""
        return self.profile is not None and step in self.profile

    def second_profiler_directory(self) -> str | None:
        """Where the trainer's own profiler writes, when that misuse is asked for."""
        return (
            os.path.abspath(os.path.join(self.directory, "own_profiler")) if self.misuse == "second-profiler" else None
        )
