"""What every test starts from, and what none may leave behind."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import profwin
from profwin.configuration import current
from profwin.switch import SWITCH

# How long an example takes says how busy the machine is.
settings.register_profile("busy", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_collection_finish() -> None:
    """Keep the collector from what all tests share: with torch in sight each full collection takes a quarter second."""
    gc.freeze()


def _descriptors(directory: str) -> list[str]:
    found = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{entry}")
        except OSError:
            continue
        if target.startswith(directory) and target.endswith((".lock", ".fifo", ".ask")):
            found.append(target)
    return found


def _children() -> set[int]:
    found = set()
    for task in os.listdir("/proc/self/task"):
        try:
            found.update(int(pid) for pid in Path(f"/proc/self/task/{task}/children").read_text().split())
        except OSError:
            continue
    return found


class _Errors(logging.Handler):
    """Collect what profwin logs as an error of its own: outside of tests such an error is survived, here it fails."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture(scope="session")
def lock_directories(tmp_path_factory):
    """Return the paths that lock directories may have: pytest's own numbering reads the names of all before."""
    folder = tmp_path_factory.mktemp("locks")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def nothing_left_behind(lock_directories, monkeypatch):
    """No session, lock, recording profiler, thread or child process outlives a test."""
    locks = str(next(lock_directories))
    os.mkdir(locks)
    os.chmod(locks, 0o1777)
    for name in [name for name in os.environ if name.startswith("PROFWIN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PROFWIN_LOCK_DIR", locks)
    threads, children = set(threading.enumerate()), _children()
    assert not SWITCH.on, "an earlier test left profwin on"
    errors = _Errors()
    logging.getLogger("profwin").addHandler(errors)
    yield
    logging.getLogger("profwin").removeHandler(errors)
    assert not errors.messages, "profwin survived an error of its own"
    session = current()
    collections = [] if session is None else list(session.owner.collections)
    profwin.shutdown()
    assert not collections, "collections were left open"
    if _descriptors(locks):
        gc.collect()  # only then: it takes a quarter of a second where torch is loaded
    assert not _descriptors(locks), "device locks were left held"
    torch_profiler = __import__("sys").modules.get("torch.autograd.profiler")
    assert torch_profiler is None or not torch_profiler._is_profiler_enabled, "a profiler was left running"
    new = [thread for thread in threading.enumerate() if thread not in threads and not thread.daemon]
    assert not new, f"threads were left: {new}"
    left = {pid for pid in _children() - children if not _helper(pid)}
    assert not left, f"child processes were left: {left}"


def _helper(pid: int) -> bool:
    """Say whether a child is one that multiprocessing keeps for the life of this process."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True
    return b"resource_tracker" in command or b"forkserver" in command


@pytest.fixture
def locks() -> str:
    """Return the test's own lock directory."""
    return os.environ["PROFWIN_LOCK_DIR"]
