"""A backend that a package of its own publishes, installed for real, does what the page on writing one says."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "write-a-backend.md"


def blocks(mark: str) -> list[str]:
    """Return the page's blocks of a mark."""
    return re.findall(rf"^```{mark}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    """Return the page's files by name."""
    found = {}
    for text in [*blocks("python"), *blocks("toml")]:
        name = re.match(r"# (\S+)\n", text)
        assert name is not None
        found[name[1]] = text
    return found


def entry_points(project: str) -> str:
    """Return what a build tool makes of the entry points of a pyproject.toml."""
    (group,) = re.findall(r'^\[project\.entry-points\."(.*)"\]$', project, re.MULTILINE)
    ((name, target),) = re.findall(r'^(\w+) = "(\w+:\w+)"$', project, re.MULTILINE)
    return f"[{group}]\n{name} = {target}\n"


def wheel(folder: Path, modules: dict[str, str], points: str) -> Path:
    """Make the wheel that a build tool would make: that tool need not be here, and no index is asked for it."""
    path = folder / "profwin_stopwatch-1.0-py3-none-any.whl"
    information = "profwin_stopwatch-1.0.dist-info"
    content = {
        **modules,
        f"{information}/METADATA": "Metadata-Version: 2.1\nName: profwin-stopwatch\nVersion: 1.0\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/entry_points.txt": points,
    }
    lines = []
    for name, text in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(text.encode())}")
    content[f"{information}/RECORD"] = "\n".join([*lines, f"{information}/RECORD,,", ""])
    with zipfile.ZipFile(path, "w") as file:
        for name, text in content.items():
            file.writestr(name, text)
    return path


@pytest.fixture
def user(tmp_path, locks):
    """Return a function that installs modules and entry points, and gives one that runs commands beside them."""
    programs, site, folder = (tmp_path / name for name in ("bin", "site", "page"))
    for each in (programs, site, folder):
        each.mkdir()
    for name, module in {"python": "", "profwin": "-m profwin", "pytest": "-m pytest"}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (programs / name).chmod(0o755)
    dropped = ("PROFWIN_", "COVERAGE_", "PYTEST_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    variables |= {
        "PATH": f"{programs}{os.pathsep}{variables['PATH']}", "PYTHONPATH": f"{site}{os.pathsep}{ROOT}",
        "PROFWIN_LOCK_DIR": locks, "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip

    def run(command: str, status: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-eu", "-c", command], cwd=folder, env=variables, capture_output=True, text=True, timeout=110,
            check=False,
        )  # fmt: skip
        assert done.returncode == status, f"$ {command}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def install(modules: dict[str, str], points: str):
        made = wheel(tmp_path, modules, points)
        options = "--quiet --no-index --no-deps --disable-pip-version-check --root-user-action=ignore"
        run(f"python -m pip install {options} --target {site} {made}")
        return run

    install.folder = folder
    return install


@pytest.mark.slow
def test_the_page_works(user):
    """Installed by pip, the page's backend is found, records, checks clean, and keeps the shared rules."""
    written = files()
    run = user({"stopwatch.py": written["stopwatch.py"]}, entry_points(written["pyproject.toml"]))
    for name, text in written.items():
        if name != "stopwatch.py":
            (user.folder / name).write_text(text)
    commands = [line for text in blocks("sh") for line in text.splitlines()]
    assert commands.pop(0) == "pip install ."
    said = [run(command) for command in commands]
    assert "clean" in said[2]
    assert re.search(r"= \d+ passed in", said[3])


def test_its_name_is_listed(user):
    """A name that nobody publishes is refused with the names that there are, a third party's among them."""
    written = files()
    run = user({"stopwatch.py": written["stopwatch.py"]}, entry_points(written["pyproject.toml"]))
    said = run("python -c 'import profwin; profwin.configure(steps=1, backend=\"stopwach\")'", status=1)
    assert "backend='stopwach' is not allowed: use one or several of: " in said
    assert "; stopwatch" in said


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("import a_driver_that_is_not_here\n", "No module named 'a_driver_that_is_not_here'"),
        ("raise RuntimeError('the driver is too old')\n", "the driver is too old"),
        ("", "Backend"),
    ],
)
def test_one_that_fails_to_import_says_why(user, module, reason):
    """A package that cannot be loaded is refused with what it raised."""
    run = user({"stopwatch.py": module}, "[profwin.backends]\nstopwatch = stopwatch:Backend\n")
    said = run("python -c 'import profwin; profwin.configure(steps=1, backend=\"stopwatch\")'", status=1)
    last = said.strip().splitlines()[-1]
    assert "backend='stopwatch' is not allowed: use another: it failed to load" in last
    assert reason in last


def test_a_built_in_name_is_not_taken_over(user):
    """A package cannot put itself in the place of a built-in backend."""
    run = user({"stopwatch.py": "raise SystemExit('loaded')\n"}, "[profwin.backends]\nrecord = stopwatch:Backend\n")
    script = "import profwin; profwin.configure(steps=1, backend='record'); print('ours')"
    assert "ours" in run(f'python -c "{script}"')
