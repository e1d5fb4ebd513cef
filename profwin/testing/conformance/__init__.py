"""The rules that a backend has to keep, as tests that a backend's author subclasses. Needs pytest."""

from __future__ import annotations

from profwin.testing.conformance.processes import ProcessRules
from profwin.testing.conformance.recordings import RecordingRules
from profwin.testing.conformance.windows import WindowRules

__all__ = ["BackendConformance"]


class BackendConformance(RecordingRules, WindowRules, ProcessRules):
    """What every backend promises, as tests.

    A subclass whose name begins with ``Test`` makes pytest run them::

        from profwin.testing import BackendConformance

        class TestMine(BackendConformance):
            backend = "mine"

    Its attributes and its two hooks are those of :class:`profwin.testing.conformance.suite.Suite`. Where the backend's
    ``unusable()`` or ``stand_in()`` gives a reason, all tests but those of what it says are skipped with that reason.
    Some tests run in processes of their own, which import the subclass anew: what it needs is in its module.
    """
