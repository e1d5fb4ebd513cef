"""What the tests of a backend share: which backend, what prepares it, and a host of their own."""

from __future__ import annotations

import pytest

from profwin.testing.conformance.recorder import Recorder, require
from profwin.testing.host import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Any, ClassVar

    from profwin.backends import Backend

__all__ = ["Suite", "reason"]

_ANYWHERE = ("test_says_what_it_is", "test_refuses_where_it_cannot_record")
"""Tests that also run where the backend cannot record."""


def reason(kind: type[Backend]) -> str | None:
    """Say why a backend cannot record here, or why another one does in its place; None: it can."""
    why: str | None = getattr(kind, "unusable", lambda: None)()
    answer = getattr(kind, "stand_in", lambda: None)()
    return why if answer is None else f"{answer[0]} stands in for it: {answer[1]}"


class Suite:
    """One backend under test.

    Attributes:
        backend: name under which profwin finds it.
        settings: further settings, as for :func:`profwin.configure`.
        writes: whether each of its recordings leaves files; False for a backend that reports to another tool.
        patience: seconds that a process of its own may take.
    """

    backend: str = ""
    settings: ClassVar[Mapping[str, Any]] = {}
    writes: bool = True
    patience: float = 90.0

    def prepare(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put in place what the tests need, such as a stand-in for a device; also in each further process."""

    def work(self) -> None:
        """Do something that the profiler sees; also in the further processes, and in several threads."""

    @pytest.fixture(autouse=True)
    def _surroundings(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
    ) -> Iterator[None]:
        self.prepare(monkeypatch)
        from profwin.backends import load

        self.kind: type[Backend] = load(self.backend)
        self.reason = reason(self.kind)
        if self.reason is not None and request.function.__name__ not in _ANYWHERE:
            pytest.skip(f"{self.backend}: {self.reason}")
        self.directory = str(tmp_path)
        with Host(tmp_path / "host") as host:
            self.host = host
            host.may_leave_open = True  # the tests themselves say what was left open
            host.configure(**{"backend": self.backend, **self.settings})
            yield

    def recorder(self) -> Recorder:
        """Return what makes recordings without windows."""
        return Recorder(self, self.directory)

    def test_says_what_it_is(self) -> None:
        """Its name is the one it is found by, its capabilities are true or false, and its reasons are sentences."""
        backend = self.recorder().backend
        require(self.kind.name == self.backend, f"name is {self.kind.name!r}, and it was found as {self.backend!r}")
        # The class is asked, before there is an instance.
        require(isinstance(getattr(self.kind, "exclusive", None), bool), "exclusive is no bool of the class")
        for name in ("thread_bound", "revocable", "ranges"):
            value = getattr(backend, name, None)
            require(isinstance(value, bool), f"{name} is {value!r}, not a bool")
        why = getattr(self.kind, "unusable", lambda: None)()
        require(
            why is None or (isinstance(why, str) and why), f"unusable() returned {why!r}: neither None nor a reason"
        )
        answer = getattr(self.kind, "stand_in", lambda: None)()
        if answer is not None:
            whole = isinstance(answer, tuple) and len(answer) == 2 and all(isinstance(each, str) for each in answer)
            require(whole, f"stand_in() returned {answer!r}: neither None nor a backend's name and a reason")

    def test_refuses_where_it_cannot_record(self) -> None:
        """Where ``unusable`` gives a reason, a window runs, and the journal says that it is not recorded, or lost."""
        import profwin

        if getattr(self.kind, "unusable", lambda: None)() is None:
            return
        with profwin.rollout_window(1):
            self.work()
        record = self.host.record
        said = [*record.skips, *(problem for each in record.collections for problem in each.problems)]
        require(said, f"it says that it cannot record ({self.reason}), and a window counts as recorded all the same")
