"""The decorators that `@training_stage` is compared with, and how the installed ones are loaded.

The decorators of verl, TRL and AReaL are the installed files, run unmodified. Their packages' `__init__`
would import the whole framework, so packages are entered by path, and imports that have nothing to do with
the decorator are stubbed. What is not installed is reported with its reason.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BARE", "HAND", "Peer", "load"]

BARE = "bare"
HAND = "hand-written closure"


class Peer(NamedTuple):
    """A decorator to compare with.

    Attributes:
        name: shown in the table.
        decorate: the decorator.
        switchable: can be turned on later, without decorating again.
        kinds: what it can decorate: ``"function"``, ``"method"``, ``"coroutine"``.
        owner: gives the attributes that the method's object needs, or None.
    """

    name: str
    decorate: Callable[[Callable[..., Any]], Callable[..., Any]]
    switchable: bool
    kinds: tuple[str, ...] = ("function", "method", "coroutine")
    owner: Callable[[], dict[str, Any]] | None = None


class Flag:
    """The flag of the hand-written closure: one slot."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


FLAG = Flag()


def load(*, installed: bool = True) -> tuple[list[Peer], dict[str, str]]:
    """Load the peers.

    Args:
        installed: also those that come from installed packages; else the bare call and the closure alone.

    Returns:
        The peers, and for each absent one its name and the reason.
    """
    found = [
        Peer(BARE, lambda function: function, switchable=False),
        Peer(HAND, _hand_written, switchable=True),
    ]
    absent: dict[str, str] = {}
    for name, loader in _LOADERS.items() if installed else ():
        try:
            found += loader()
        except Exception as error:  # each peer may be absent
            absent[name] = f"{type(error).__name__}: {error}"
    return found, absent


def _hand_written(function: Callable[..., Any]) -> Callable[..., Any]:
    import functools
    import inspect

    flag = FLAG
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def closure_async(*args: Any, **kwargs: Any) -> Any:
            if flag.on:
                raise AssertionError("the flag is never set here")
            return await function(*args, **kwargs)

        return closure_async

    @functools.wraps(function)
    def closure(*args: Any, **kwargs: Any) -> Any:
        if flag.on:
            raise AssertionError("the flag is never set here")
        return function(*args, **kwargs)

    return closure


def _context_manager(function: Callable[..., Any]) -> Callable[..., Any]:
    import contextlib

    @contextlib.contextmanager
    def block() -> Any:
        if FLAG.on:
            raise AssertionError("the flag is never set here")
        yield

    return block()(function)


def _contextlib() -> list[Peer]:
    return [Peer("contextlib.contextmanager", _context_manager, switchable=True, kinds=("function", "method"))]


def _wrapt() -> list[Peer]:
    import wrapt

    def passes(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if FLAG.on:
            raise AssertionError("the flag is never set here")
        return wrapped(*args, **kwargs)

    return [
        Peer("wrapt.decorator", wrapt.decorator(passes), switchable=True),
        Peer("wrapt, enabled=callable", wrapt.decorator(passes, enabled=lambda: FLAG.on), switchable=True),
    ]


def _nvtx() -> list[Peer]:
    import nvtx

    return [Peer("nvtx.annotate (no tool)", nvtx.annotate("stage"), switchable=False, kinds=("function", "method"))]


def _record_function() -> list[Peer]:
    from torch.profiler import record_function

    return [Peer("record_function", record_function("stage"), switchable=True, kinds=("function", "method"))]


def _verl() -> list[Peer]:
    _enter("verl", "verl.utils", "verl.utils.profiler", "verl.single_controller", "verl.single_controller.base")
    _stub("omegaconf", MISSING="???")
    dispatch = SimpleNamespace(ONE_TO_ALL=None)
    _stub(
        "verl.single_controller.base.decorator",
        Dispatch=dispatch,
        register=lambda **_options: lambda method: method,
    )
    profile = importlib.import_module("verl.utils.profiler.profile")
    version = importlib.metadata.version("verl")

    def owner() -> dict[str, Any]:
        config = SimpleNamespace(enable=False, all_ranks=False, ranks=[], tool=None, tool_config=None)
        return {"profiler": profile.DistProfiler(rank=0, config=config)}

    annotate = profile.DistProfiler.annotate(role="actor")
    return [
        Peer(f"verl {version} annotate, disabled", annotate, switchable=True, kinds=("method",), owner=owner),
        Peer(f"verl {version} annotate, no profiler", annotate, switchable=True, kinds=("method",)),
    ]


def _trl() -> list[Peer]:
    _enter("trl", "trl.extras")
    _stub("transformers", Trainer=object)
    no = {f"is_{name}_available": (lambda: False) for name in ("mlflow", "trackio", "wandb")}
    _stub("transformers.integrations", **no)
    profiling = importlib.import_module("trl.extras.profiling")
    version = importlib.metadata.version("trl")

    def owner() -> dict[str, Any]:
        return {
            "args": SimpleNamespace(report_to=[]),
            "state": SimpleNamespace(global_step=1),
            "accelerator": SimpleNamespace(is_main_process=True),
        }

    decorator = profiling.profiling_decorator
    return [Peer(f"TRL {version} profiling_decorator", decorator, switchable=True, kinds=("method",), owner=owner)]


def _areal() -> list[Peer]:
    import logging

    _enter("areal", "areal.utils", "areal.api")
    _stub("areal.api.cli_args", PerfTracerConfig=object, SessionTracerConfig=object)
    _stub("areal.utils.logging", getLogger=logging.getLogger)
    sys.modules["areal.utils"].__dict__["logging"] = sys.modules["areal.utils.logging"]
    tracer = importlib.import_module("areal.utils.perf_tracer")
    version = importlib.metadata.version("areal")
    return [Peer(f"AReaL {version} trace_perf", tracer.trace_perf("stage"), switchable=True)]


def _enter(*packages: str) -> None:
    """Make packages importable by path without running their ``__init__``."""
    for name in packages:
        if name in sys.modules:
            continue
        top, _, rest = name.partition(".")
        spec = importlib.util.find_spec(top) if not rest else None
        locations = spec.submodule_search_locations if spec else None
        if rest:
            parent, _, last = name.rpartition(".")
            locations = [f"{place}/{last}" for place in sys.modules[parent].__path__]
        if not locations:
            raise ModuleNotFoundError(f"No module named {name!r}")
        module = ModuleType(name)
        module.__path__ = list(locations)
        sys.modules[name] = module


def _stub(name: str, **attributes: Any) -> None:
    """Put a module of a few names where an unrelated one would be imported."""
    module = ModuleType(name)
    module.__dict__.update(attributes)
    sys.modules[name] = module


_LOADERS: dict[str, Callable[[], list[Peer]]] = {
    "contextlib": _contextlib,
    "wrapt": _wrapt,
    "nvtx": _nvtx,
    "torch record_function": _record_function,
    "verl": _verl,
    "TRL": _trl,
    "AReaL": _areal,
}
