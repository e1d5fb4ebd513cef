"""profwin: profile rollout and training on shared devices without overlap, and prove it.

::

    import profwin
    from profwin import rollout_window, training_stage

    profwin.configure(steps="2,4-6", backend="torch", output="outputs/profile")

    @training_stage
    def update_actor(batch): ...

    for step in range(1, 101):
        with rollout_window(step):
            batch = engine.generate(prompts)
        update_actor(batch)

Importing this package imports nothing else: each name is loaded when it is first used. It has a pytest plugin, but no
assertions for pytest to look into, so it may be imported before pytest: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.configuration import configure, environment, shutdown
    from profwin.errors import (
        BackendError,
        DeviceBusyError,
        EngineError,
        EngineRefusedError,
        PlanError,
        ProfwinError,
        RegistryError,
        SettingError,
        StateError,
        WindowOverlapError,
    )
    from profwin.hooks import Loop
    from profwin.pause import paused
    from profwin.selection import every, names, ranks, steps
    from profwin.spans import span
    from profwin.stage import training_stage
    from profwin.step import training_step
    from profwin.sync import weight_sync
    from profwin.window import rollout_window

__version__ = "0.1.0"

_HOMES = {
    "BackendError": "errors",
    "DeviceBusyError": "errors",
    "EngineError": "errors",
    "EngineRefusedError": "errors",
    "Loop": "hooks",
    "PlanError": "errors",
    "ProfwinError": "errors",
    "RegistryError": "errors",
    "SettingError": "errors",
    "StateError": "errors",
    "WindowOverlapError": "errors",
    "configure": "configuration",
    "environment": "configuration",
    "every": "selection",
    "names": "selection",
    "paused": "pause",
    "ranks": "selection",
    "rollout_window": "window",
    "shutdown": "configuration",
    "span": "spans",
    "steps": "selection",
    "training_stage": "stage",
    "training_step": "step",
    "weight_sync": "sync",
}

__all__ = [
    "BackendError",
    "DeviceBusyError",
    "EngineError",
    "EngineRefusedError",
    "Loop",
    "PlanError",
    "ProfwinError",
    "RegistryError",
    "SettingError",
    "StateError",
    "WindowOverlapError",
    "__version__",
    "configure",
    "environment",
    "every",
    "names",
    "paused",
    "ranks",
    "rollout_window",
    "shutdown",
    "span",
    "steps",
    "training_stage",
    "training_step",
    "weight_sync",
]


if not TYPE_CHECKING:  # a type checker sees the imports above, and that nothing else exists

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'profwin' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"profwin.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
