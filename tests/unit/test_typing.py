"""The public API as mypy sees it: what is right passes, and what is wrong is refused where it stands."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mypy", reason="mypy is not installed")

ROOT = pathlib.Path(__file__).parents[2]
IGNORE = "  # type: ignore["


def check(*paths, cache):
    """Run mypy with the project's settings; return its errors as (file name, line, code)."""
    options = ["--config-file=setup.cfg", f"--cache-dir={cache}", "--no-pretty", "--no-error-summary"]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "tests/typing")}
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, paths)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    return [
        (pathlib.Path(line.split(":")[0]).name, int(line.split(":")[1]), line.rsplit("[", 1)[1].rstrip("]"))
        for line in errors
    ]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One cache for all runs of this module."""
    return str(tmp_path_factory.mktemp("mypy"))


def test_right_use_and_refused_misuse(cache):
    """api.py has no error; misuse.py has exactly those that its lines name."""
    paths = [ROOT / "tests/typing/api.py", ROOT / "tests/typing/misuse.py"]
    ours = [error for error in check(*paths, cache=cache) if error[0] in {"api.py", "misuse.py"}]
    assert ours == []


def test_every_named_error_is_really_reported(tmp_path, cache):
    """Without its ignores, misuse.py gives the named error in each of their lines, and none elsewhere."""
    text = (ROOT / "tests/typing/misuse.py").read_text()
    lines = text.splitlines()
    wanted = {
        (number, line.split(IGNORE)[1].split("]")[0]) for number, line in enumerate(lines, start=1) if IGNORE in line
    }
    assert len(wanted) > 15
    bare = tmp_path / "misuse_bare.py"
    bare.write_text("\n".join(line.split(IGNORE)[0] for line in lines) + "\n")
    found = {(line, code) for name, line, code in check(bare, cache=cache) if name == bare.name}
    assert found == wanted


def test_public_names_are_typed():
    """The package says that it is typed, so that checkers read its annotations where it is installed."""
    assert (ROOT / "profwin/py.typed").is_file()
    assert "py.typed" in (ROOT / "setup.cfg").read_text()
