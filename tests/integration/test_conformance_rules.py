"""The shared rules for backends find what breaks them, each by the test that is about it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import faulty_suites
import pytest

HERE = Path(__file__).parent


def outcomes(*nodes: str) -> dict[str, str]:
    """Run tests of the faulty suites in a pytest of their own; return each one's outcome, with its message."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PROFWIN_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", "-rA", "--tb=no",
         *(f"faulty_suites.py::{node}" for node in nodes)],
        cwd=HERE, env={**variables, "COLUMNS": "300"}, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    found = re.findall(
        r"^(PASSED|FAILED|SKIPPED|ERROR) \S*faulty_suites.py::(\w+::\w+(?:\[.*?\])?)(.*)$", done.stdout, re.MULTILINE
    )
    assert found, done.stdout + done.stderr
    return {node: outcome + message for outcome, node, message in found}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_broken_rule_goes_red():
    """A backend with one fault fails the test that is about it."""
    nodes = [f"{name}::{test}" for name, test in faulty_suites.BROKEN.items()]
    found = outcomes(*nodes)
    assert {node: outcome for node, outcome in found.items() if not outcome.startswith("FAILED")} == {}
    assert set(found) == set(nodes)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sound_backend_is_green():
    """The same backend without a fault passes all of them, so that each goes red for its fault alone."""
    found = outcomes(faulty_suites.SOUND)
    assert set(found.values()) == {"PASSED"}
    assert set(faulty_suites.BROKEN.values()) <= {node.partition("::")[2] for node in found}
