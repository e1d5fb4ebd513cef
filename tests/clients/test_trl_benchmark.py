"""The benchmark of TRL's unprofiled steps, with tiny counts; never a timing."""

from __future__ import annotations

import pytest
from clients_support import needs

from benchmarks.__main__ import main

pytestmark = [needs("trl"), pytest.mark.slow, pytest.mark.timeout(900)]


def test_steps_with_and_without_the_plan_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """A real training goes both ways, and its steps are compared by wall and by CPU time."""
    assert main(["--scale", "0.01", "--only", "trl"]) == 0
    printed = capsys.readouterr().out
    assert "unprofiled step with / without the plan, wall time" in printed
    assert "unprofiled step with / without the plan, cpu time" in printed
