"""Where Ray is not installed, every part that needs it says so in one sentence, and the rest works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from core_support import ROOT

SENTENCE = "needs Ray, which is not installed here: pip install ray"

CALLS = {
    "environment": "profwin.ray.environment(steps='1')",
    "nsight": "profwin.ray.nsight(2)",
    "actors": "profwin.ray.actors([object()])",
    "agents": "profwin.ray.agents()",
    "collect": "profwin.ray.collect('out')",
}

COMMANDS = [["demo", "--ray"], ["locks", "--cluster"], ["collect", "out"]]


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Return a directory of all packages that are installed, but for Ray."""
    directory = tmp_path_factory.mktemp("packages")
    for path in Path(msgspec.__file__).parents[1].iterdir():
        if not path.name.lower().startswith(("ray", "__editable__", "__pycache__")):
            (directory / path.name).symlink_to(path)
    return directory


def python(packages, directory, *arguments):
    """Run Python without any package but those of a directory."""
    return subprocess.run(
        [sys.executable, "-S", *arguments], cwd=directory, capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(packages), str(ROOT)])},
    )  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_library(packages, tmp_path, name):
    """Importing profwin.ray works, also in a configured process; what needs Ray raises the sentence."""
    script = (
        "import profwin, profwin.ray\n"
        "profwin.configure(steps='1', output='out', devices='pretend:card')\n"
        f"try:\n    {CALLS[name]}\nexcept profwin.errors.ProfwinError as error:\n    print(error)\n"
        "with profwin.rollout_window(1) as window:\n    print(window.recorded)\n"
        "profwin.shutdown()\n"
    )
    done = python(packages, tmp_path, "-c", script)
    assert done.returncode == 0, done.stderr
    [sentence, recorded] = done.stdout.splitlines()
    assert sentence.endswith(SENTENCE)
    assert recorded == "True"


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_command_line(packages, tmp_path, arguments):
    """A command that needs Ray fails with the sentence."""
    done = python(packages, tmp_path, "-m", "profwin", *arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.strip() == f"profwin: profwin.ray {SENTENCE}"


def test_that_ray_is_not_there(packages, tmp_path):
    """Ray cannot be imported in these processes, and what the tests import can: else they would prove nothing."""
    done = python(packages, tmp_path, "-c", "import msgspec, profwin\nimport ray")
    assert done.stderr.strip().endswith("ModuleNotFoundError: No module named 'ray'")
