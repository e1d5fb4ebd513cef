"""What the tests with verl share: its environment, and how a program runs there."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PYTHON = os.environ.get("CLIENTS_PYTHON", "")


def needs(module: str) -> Any:
    """Return the mark that skips a file of tests where there is no environment with a module."""
    return pytest.mark.environment("CLIENTS_PYTHON", module)


def run(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the environment's Python on a module beside this file, with no variable of ours but those given."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PROFWIN_")}
    environment |= {"PYTHONPATH": str(HERE), **variables}
    return subprocess.run(
        [PYTHON, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=400, check=False
    )


def run_json(*arguments: str, cwd: Path, **variables: str) -> Any:
    """Run it and return the JSON document that it printed."""
    done = run(*arguments, cwd=cwd, **variables)
    assert done.stdout.strip(), done.stderr[-4000:]
    return json.loads(done.stdout)
