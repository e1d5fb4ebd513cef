"""The environments of clients: what needs one is skipped where there is none, and waits while ``.ci/run`` makes it."""

from __future__ import annotations

import os
import subprocess
import time
from functools import cache
from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is marked with an environment that is not there."""
    for mark in item.iter_markers("environment"):
        reason = _lacking(*mark.args)
        if reason:
            pytest.skip(reason)


@cache
def _lacking(variable: str, module: str) -> str:
    """Return why an environment does not have a module, nothing where it has.

    Args:
        variable: of the process's environment; it names the interpreter. With ``_MADE`` added it may name a file that
            is written when the environment was made or could not be: the seconds that took, and an exit status.
        module: by name.
    """
    python = os.environ.get(variable)
    if not python:
        return f"{variable} names no environment: see tests/clients/README.md"
    made = os.environ.get(f"{variable}_MADE")
    if made:
        while not os.path.exists(made):
            time.sleep(0.2)  # for as long as the test itself may take
        if Path(made).read_text().split()[1] != "0":
            return f"the environment of {variable} could not be made"
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    if subprocess.run([python, "-c", code], capture_output=True, timeout=300).returncode:
        return f"the environment of {variable} has no {module}"
    return ""
