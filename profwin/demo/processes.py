"""The processes of one run of the demo: profwin set up in the driver, and the children, which all end with it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from tempfile import TemporaryDirectory

import profwin
from profwin.demo.child import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.connection import Connection
    from typing import Any

    from typing_extensions import Self

    from profwin.demo.options import Options

__all__ = ["VARIABLES", "Processes", "set_up", "without"]

VARIABLES = {"OMP_NUM_THREADS": "1", "KINETO_LOG_LEVEL": "99"}
"""Of processes that record. Without a level, Kineto writes two lines for every profile to the terminal."""


class Processes:
    """Configure profwin for the time of a ``with`` block, and end every process started in it, whatever happens.

    Args:
        options: what is run.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._children: list[Child] = []
        self._at_end = ExitStack()

    def __enter__(self) -> Self:
        options = self._options
        with ExitStack() as stack:
            locks = stack.enter_context(TemporaryDirectory(prefix="profwin-demo-"))
            os.chmod(locks, 0o1777)
            # Backwards: first what is open is closed, which needs the children, then they end, then the locks go.
            stack.callback(self._close_children)
            stack.callback(profwin.shutdown)
            set_up(
                options,
                output=options.output,
                devices=options.devices[0],
                # A pretend device of one run has no place in the host's registry, whose files stay for ever.
                lock_dir=os.environ.get("PROFWIN_LOCK_DIR") or (None if options.real_devices else locks),
            )
            self._bare = {**without(os.environ, "PROFWIN_"), **VARIABLES}
            self._at_end = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._at_end.close()

    def start(self, name: str, module: str, **settings: Any) -> Child:
        """Start a child that knows nothing of profwin.

        Args:
            name: of the process, in messages.
            module: of the demo.
            settings: what the child gets first.
        """
        return self._add(Child(name, f"profwin.demo.{module}", settings, self._bare))

    def start_profiled(
        self, name: str, module: str, *, role: str, device: str, peer: Connection | None = None, **settings: Any
    ) -> Child:
        """Start a child that belongs to the run and configures itself by its environment.

        Args:
            name: of the process, in messages.
            module: of the demo.
            role: in journals and paths.
            device: what it records on.
            peer: its end of a pipe to another child.
            settings: what the child gets first.
        """
        own = {"PROFWIN_ROLE": role, "PROFWIN_RANK": "0", "PROFWIN_DEVICES": device}
        inherited = profwin.environment()
        environment = {**self._bare, **inherited, **own} if inherited else self._bare
        return self._add(Child(name, f"profwin.demo.{module}", settings, environment, peer=peer))

    def _add(self, child: Child) -> Child:
        self._children.append(child)
        return child

    def _close_children(self) -> None:
        for child in self._children:
            child.close()


def set_up(options: Options, *, output: str, devices: str | None, lock_dir: str | None) -> None:
    """Configure profwin in the driver of a run.

    Args:
        options: what is run.
        output: the directory that gets the run's.
        devices: that this process stands for, if it does.
        lock_dir: of the device locks.
    """
    profwin.configure(
        # No window is opened for steps behind the last one.
        steps=None if options.profile is None else options.profile & profwin.steps(f"1-{options.steps}"),
        backend="torch",
        output=output,
        run=options.run,
        role="driver",
        rank=0,
        devices=devices,
        lock_dir=lock_dir,
        wait_budget=options.wait_budget,
    )


def without(variables: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    """Return the variables whose names begin with none of the prefixes."""
    return {name: value for name, value in variables.items() if not name.startswith(prefixes)}
