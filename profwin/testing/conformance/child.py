"""What :class:`profwin.testing.BackendConformance` does in processes of their own: what may crash, and how they end."""

from __future__ import annotations

import os
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.testing.conformance.suite import Suite

__all__ = ["ENDS", "READY", "End", "main", "start"]

READY = "ready"
"""What a process says when its window is open."""
_MOST_BYTES = 16  # of a file, where the disk is full


class End:
    """One way in which a process ends.

    Args:
        status: its exit status where profwin is not there.
        closed: whether Python code runs at that end, so that what is open can be closed and exported.
    """

    def __init__(self, status: int, *, closed: bool) -> None:
        self.status, self.closed = status, closed


ENDS = {
    "returns": End(0, closed=True),
    "exits": End(3, closed=True),
    "raises": End(1, closed=True),
    "multiprocessing": End(4, closed=True),
    "leaves at once": End(5, closed=False),
    "is terminated": End(-15, closed=False),
}


def start(suite: Suite, scenario: str, directory: str) -> subprocess.Popen[str]:
    """Start a process in which a suite's backend goes through a scenario.

    Args:
        suite: an instance of the user's class, which the process makes anew from the class's file.
        scenario: one of those below.
        directory: for all files of the process.
    """
    kind = type(suite)
    file = sys.modules[kind.__module__].__file__ or ""
    code = "from profwin.testing.conformance.child import main; main()"
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PROFWIN_")}
    variables["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return subprocess.Popen(
        [sys.executable, "-c", code, kind.__module__, file, kind.__qualname__, scenario, directory],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables, text=True,
    )  # fmt: skip


def main() -> None:
    """Go through the scenario that the command line names."""
    module, file, name, scenario, directory = sys.argv[1:]
    suite = _suite(module, file, name)
    if scenario == "multiprocessing":
        # What prepares a device does so where it is used: after a fork many cannot be.
        _in_child(suite, directory)
        return
    _prepare(suite)
    if scenario in ENDS:
        _end(suite, scenario, directory)
    else:
        _SCENARIOS[scenario](suite, directory)


def _prepare(suite: Suite) -> None:
    import pytest

    suite.prepare(pytest.MonkeyPatch())  # never undone: this process ends


def _suite(module: str, file: str, name: str) -> Any:
    """Import the user's class as its own process did, or else from its file."""
    from importlib import import_module
    from importlib.util import module_from_spec, spec_from_file_location

    try:
        loaded: Any = import_module(module)
    except ImportError:
        specification = spec_from_file_location(module, file)
        if specification is None or specification.loader is None:
            raise
        loaded = sys.modules[module] = module_from_spec(specification)
        specification.loader.exec_module(loaded)
    for part in name.split("."):
        loaded = getattr(loaded, part)
    return loaded()


def _configure(suite: Suite, directory: str) -> None:
    import profwin

    defaults = {"steps": "all", "devices": "pretend:0", "run": "child"}
    places = {"output": os.path.join(directory, "output"), "lock_dir": os.path.join(directory, "locks")}
    os.makedirs(places["lock_dir"], exist_ok=True)
    profwin.configure(**{**defaults, **places, "backend": suite.backend, **suite.settings})


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _end(suite: Suite, way: str, directory: str) -> None:
    """Open a window, and end in one of the ways of :data:`ENDS`."""
    _open(suite, directory)
    if way == "exits":
        sys.exit(3)
    elif way == "raises":
        raise RuntimeError("the program's own error")
    elif way == "leaves at once":
        os._exit(5)
    elif way == "is terminated":
        sys.stdin.readline()


def _in_child(suite: Suite, directory: str) -> None:
    """Open a window in a child of multiprocessing, which ends by ``os._exit`` and without ``atexit``."""
    import multiprocessing

    process = multiprocessing.get_context("fork").Process(target=_prepare_and_open, args=(suite, directory))
    process.start()
    process.join()
    sys.exit(4 if process.exitcode == 0 else 1)


def _prepare_and_open(suite: Suite, directory: str) -> None:
    _prepare(suite)
    _open(suite, directory)


def _open(suite: Suite, directory: str) -> None:
    import profwin

    _configure(suite, directory)
    _keep.append(profwin.rollout_window(1))
    _keep[0].open()
    suite.work()
    _say(READY)


_keep: list[Any] = []


def _forked(suite: Suite, directory: str) -> None:
    """Fork while a window is open: the child records windows of its own, and the parent's is whole."""
    import multiprocessing

    import profwin
    from profwin.registry.survey import survey

    _open(suite, directory)
    process = multiprocessing.get_context("fork").Process(target=_child, args=(suite,))
    process.start()
    process.join()
    states = survey(os.path.join(directory, "locks"))
    _say(f"child {process.exitcode}, {[each.key for each in states if each.state == 'held']} held")
    suite.work()
    _keep[0].close()
    profwin.shutdown()


def _child(suite: Suite) -> None:
    import profwin

    for step in (1, 2):
        # Its parent waits for it, with the first device in hand.
        with profwin.rollout_window(step, devices="pretend:1"), profwin.span("part"):
            suite.work()
        with profwin.training_step(step), profwin.training_stage("update", devices="pretend:1"):
            suite.work()


def _second(suite: Suite, directory: str) -> None:
    """Open a recording inside another one: it is refused, or both are what they say they are."""
    from profwin.testing.conformance.recorder import Recorder

    recorder = Recorder(suite, directory)
    outer, inner = recorder.take("outer"), recorder.take("inner")
    outer.enter()
    suite.work()
    try:
        inner.enter()
    except Exception as error:  # noqa: BLE001  # a refusal, in whatever form
        _say(f"the inner one is refused: {error}")
    else:
        suite.work()
        inner.leave()
        _say(f"the inner one is lost: {inner.export_or_lose()}")
    suite.work()
    outer.leave()
    _say(f"the outer one is lost: {outer.export_or_lose()}")
    recorder.record("after")


def _full(suite: Suite, directory: str) -> None:
    """Export to a disk that is full: it raises and leaves nothing, or it is small enough to be whole."""
    import resource

    from profwin.testing.conformance.recorder import Recorder

    recorder = Recorder(suite, directory)
    take = recorder.take("full")
    take.enter()
    suite.work()
    take.leave()
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_BYTES, most))
    try:
        _say(f"lost: {take.export_or_lose()}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    recorder.record("after")


_SCENARIOS: dict[str, Callable[[Suite, str], None]] = {
    "forked": _forked, "second": _second, "full": _full,
}  # fmt: skip
