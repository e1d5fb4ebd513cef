"""The page on TRL does what it says: its program and its commands, in the page's order, where TRL is installed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from clients_support import PYTHON, needs

pytestmark = [needs("trl"), pytest.mark.slow, pytest.mark.timeout(900)]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "profile-trl.md"
_BLOCK = re.compile(r"^```(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def test_the_commands_of_the_page_print_what_it_shows(tmp_path: Path, locks: str) -> None:
    """Each command succeeds, and prints the lines that the page shows, ``…`` standing for anything."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in {"python": "", "profwin": "-m profwin", "torchrun": "-m torch.distributed.run"}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{PYTHON}" {module} "$@"\n')
        (programs / name).chmod(0o755)
    variables = {
        **os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PROFWIN_LOCK_DIR": locks,
        "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "80",
    }  # fmt: skip
    count = 0
    for mark, text in _BLOCK.findall(PAGE.read_text()):
        if mark == "python":
            (tmp_path / "train.py").write_text(text)
        for command, shown in _COMMAND.findall(text):
            done = subprocess.run(
                ["bash", "-eu", "-c", command], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=200
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr[-4000:]}"
            at = 0
            for piece in filter(None, (piece.strip() for piece in re.split("…|\n", shown))):
                found = done.stdout.find(piece, at)
                assert found >= 0, f"$ {command}\nmissing: {piece}\nprinted:\n{done.stdout}"
                at = found + len(piece)
            count += 1
    assert count == 6
