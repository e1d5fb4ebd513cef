"""``profwin doctor`` as it is run: on this machine, whatever that has, as text and as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from server_support import stand

from profwin.doctor.examination import PROBES
from profwin.doctor.line import STATES


def doctor(*arguments, **environment):
    """Run the command; return its status, its output and what it said of its progress."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "profwin", "doctor", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def test_text(locks):
    """Every section is there, within 80 columns; nothing is asked for but the journal, which always works."""
    status, text, progress = doctor()
    assert (status, text.splitlines()[-1]) == (0, "Nothing that can be seen keeps record from recording.")
    lines = text.splitlines()
    assert [name for name, _ in PROBES] == [line for line in lines[:-1] if line and not line.startswith(" ")]
    assert all(len(line) <= 80 or "/" in line for line in lines)
    assert any(line.split()[:2] == ["ok", "record"] for line in lines)
    assert all(line.startswith("profwin doctor: looking at ") for line in progress.splitlines())
    assert os.listdir(locks) == []


def test_json(tmp_path):
    """One object that has every field that is documented; the lock folder is not made."""
    folder = tmp_path / "none"
    status, text, _ = doctor("--json", PROFWIN_LOCK_DIR=str(folder), PROFWIN_STPES="1")
    found = json.loads(text)
    assert (status, found["problems"], found["asked"], found["schema"]) == (0, [], ["record"], 1)
    assert list(found["sections"]) == [name for name, _ in PROBES]
    lines = [line for section in found["sections"].values() for line in section]
    assert all(set(line) == {"name", "state", "detail", "remedy", "data"} for line in lines)
    assert {line["state"] for line in lines} <= set(STATES)
    assert "PROFWIN_STEPS" in next(line for line in lines if line["name"] == "PROFWIN_STPES")["remedy"]
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["--backend", "record", "--backend", "no-such"], {}),
        ([], {"PROFWIN_BACKEND": "torch_npu", "PROFWIN_WAIT_BUDGET": "1"}),
        (["--url", "http://127.0.0.1:1"], {"PROFWIN_WAIT_BUDGET": "soon"}),
        (["--backend", "testing"], {"PROFWIN_LOCK_DIR": "/dev/null/x"}),
    ],
)
def test_what_is_asked_for_and_cannot_be(arguments, environment):
    """A backend that is missing, a wrong setting, a server that is not there, a folder that cannot be: status 1."""
    status, text, _ = doctor(*arguments, **environment)
    assert (status, text.count("\n- ")) == (1, 1 + len(environment.get("PROFWIN_WAIT_BUDGET", "")) // 4)
    assert "This does not work:" in text


def test_wrong_usage():
    """Is refused as everywhere."""
    status, text, errors = doctor("--bogus")
    assert (status, text) == (2, "")
    assert "unrecognized arguments" in errors


def test_a_server_of_this_machine(tmp_path):
    """What listens and does not answer is said; its processes are seen all the same."""
    with stand(tmp_path, "listen", "core", "worker") as server:
        status, text, _ = doctor("--json", "--url", server.url)
    lines = {line["name"]: line for line in json.loads(text)["sections"][f"server {server.url}"]}
    assert (status, lines["server"]["state"]) == (1, "no")
    assert sorted(lines["processes"]["data"]["pids"]) == server.all
