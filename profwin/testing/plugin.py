"""The pytest plugin: the fixtures ``profwin_host`` and ``profwin_clock``.

It is loaded by every pytest where profwin is installed, so nothing of profwin is imported before a fixture is used.
``-p no:profwin`` leaves it out.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from profwin.testing.clock import FakeClock
    from profwin.testing.host import Host

__all__ = ["profwin_clock", "profwin_host"]


@pytest.fixture
def profwin_host(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Host]:
    """Give the test a host of its own: pretend devices, profwin set up for every step, and a record of what happened.

    A window or stage that the test leaves open is an error, unless the test has failed already.
    """
    from profwin.testing.host import Host

    failed = request.session.testsfailed
    with Host(tmp_path / "profwin") as host:
        yield host
        if request.session.testsfailed > failed:
            host.may_leave_open = True


@pytest.fixture
def profwin_clock() -> Iterator[FakeClock]:
    """Stand in for the clock by which profwin's waits and ``max_seconds`` go; it moves only when told to."""
    from profwin.testing.clock import FakeClock

    with FakeClock() as clock:
        yield clock
