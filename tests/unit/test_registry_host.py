"""Processes that are of a pretended host: their boot, their name and their locks are not the machine's."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from profwin.errors import SettingError
from profwin.registry.directory import choose
from profwin.registry.host import boot_id, host_name

SCRIPT = """
import json, os
import profwin
from profwin import training_stage, training_step
from profwin.registry.lock import Registry
from profwin.registry.process import identity

@training_stage
def update():
    return [state.state for state in Registry().survey()]

profwin.configure(steps="all", output=os.environ["OUTPUT"], run="run", devices="pretend:card")
with training_step(1):
    states = update()
profwin.shutdown()
print(json.dumps([identity().boot, states]))
"""


def test_name_decides_boot_and_locks(monkeypatch):
    """Processes with one name meet in one lock directory and boot; others, and those without a name, in others."""
    monkeypatch.setenv("PROFWIN_LOCK_DIR", "/locks")
    monkeypatch.delenv("PROFWIN_PRETEND_HOST", raising=False)
    found = {"": (boot_id(), choose()[0], host_name())}
    assert found[""][1:] == ("/locks", os.uname().nodename)
    for name in ("a", "b"):
        monkeypatch.setenv("PROFWIN_PRETEND_HOST", name)
        found[name] = boot_id(), choose()[0], host_name()
        assert found[name] == (boot_id(), f"/locks-host-{name}", name)
        assert "PROFWIN_PRETEND_HOST" in choose()[1]
    assert len({boot for boot, _, _ in found.values()}) == 3


def test_name_that_leads_elsewhere_is_refused(monkeypatch):
    """A name cannot make the lock directory lie in another directory than it would otherwise."""
    monkeypatch.setenv("PROFWIN_PRETEND_HOST", "/../../etc")
    with pytest.raises(SettingError, match="PROFWIN_PRETEND_HOST"):
        choose()


def test_processes_of_two_hosts_do_not_meet(tmp_path):
    """The same device's name in two hosts is two devices: each process sees its own host's alone, and journals it."""
    found = []
    for name in ("a", "b"):
        environment = {
            **os.environ, "PROFWIN_PRETEND_HOST": name, "PROFWIN_LOCK_DIR": str(tmp_path / "locks"),
            "OUTPUT": str(tmp_path / name),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True, text=True, timeout=60
        )
        boot, states = json.loads(done.stdout)
        (journal,) = (tmp_path / name / "run" / "journal").iterdir()
        header = json.loads(journal.read_text().splitlines()[0])
        assert (header["boot"], header["host"]) == (boot, name)
        found.append((boot, states))
    assert [states for _, states in found] == [["held"], ["held"]]
    assert found[0][0] != found[1][0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "locks-host-a", "locks-host-b"]
