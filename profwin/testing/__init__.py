"""Test a loop's own order on any machine, without profiler and accelerator.

A :class:`Host` with any number of pretend devices, its :class:`Record` of what collected where over all processes, and
assertions on it; fakes that can be told to fail or to be late: :class:`RecordingEngine`, :class:`FakeClock` and the
backend ``testing``. Nothing of this needs pytest; with it, there are the fixtures ``profwin_host`` and
``profwin_clock``. :class:`BackendConformance` is for authors of backends: their rules, as tests of pytest's.

Importing this package imports nothing else: each name is loaded when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.testing.assertions import assert_all_recorded, assert_no_overlap, assert_rollout_before_training
    from profwin.testing.clock import FakeClock
    from profwin.testing.conformance import BackendConformance
    from profwin.testing.engine import RecordingEngine
    from profwin.testing.host import Host
    from profwin.testing.reading import read_record
    from profwin.testing.record import Record

_HOMES = {
    "BackendConformance": "conformance",
    "FakeClock": "clock",
    "Host": "host",
    "Record": "record",
    "RecordingEngine": "engine",
    "assert_all_recorded": "assertions",
    "assert_no_overlap": "assertions",
    "assert_rollout_before_training": "assertions",
    "read_record": "reading",
}

__all__ = [
    "BackendConformance",
    "FakeClock",
    "Host",
    "Record",
    "RecordingEngine",
    "assert_all_recorded",
    "assert_no_overlap",
    "assert_rollout_before_training",
    "read_record",
]

if not TYPE_CHECKING:  # a type checker sees the imports above, and that nothing else exists

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'profwin.testing' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"profwin.testing.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
