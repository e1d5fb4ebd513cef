"""Lock directories, journals and outputs that cannot be used: training goes on, and it is said once."""

from __future__ import annotations

import gzip
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from core_support import PRELUDE, Evidence, holder, run

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.errors import RegistryError


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def configure(output, **more):
    """Configure this process with the settings that these tests share."""
    profwin.configure(**{"steps": "1-3", "output": str(output), "devices": "pretend:card", "run": "r", **more})


def warnings_of(caplog):
    """Return the warnings that were logged."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.fixture
def unusable(tmp_path):
    """Return a lock directory that cannot be one."""
    path = tmp_path / "not-a-directory"
    path.write_text("")
    return str(path)


def test_registry_unusable(output, unusable, caplog):
    """Without a registry bodies run unprofiled: skip reason "registry", one warning, and a finding."""
    configure(output, lock_dir=unusable)
    ran = []
    for step in (1, 2):
        with rollout_window(step) as window:
            ran.append(window.recorded)
        with training_stage("update"):
            ran.append(2)
    profwin.shutdown()
    assert ran == [False, 2, False, 2]
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("rollout", "registry"), ("update", "registry")] * 2
    assert len(warnings_of(caplog)) == 1
    assert unusable in warnings_of(caplog)[0]
    assert len([each for each in evidence.of("finding") if unusable in each["detail"]]) == 1


def test_registry_unusable_under_strict(output, unusable):
    """Under strict it is raised, and the body does not run."""
    configure(output, lock_dir=unusable, strict=True)
    ran = []
    for block in (rollout_window(1), training_stage("update")):
        with pytest.raises(RegistryError), block:
            ran.append(1)
    assert not ran
    profwin.shutdown()


def test_processes_without_devices_need_no_registry(output, unusable, caplog):
    """A process that stands for its device is recorded without a registry."""
    configure(output, lock_dir=unusable, devices=None)
    with rollout_window(1) as window:
        assert window.recorded
    profwin.shutdown()
    Evidence(output).check()


def test_lock_directory_deleted_while_held(output, locks):
    """Case 33: a lock file that vanishes under its holder cannot be prevented, but the journal says so."""
    configure(output)
    with rollout_window(1):
        shutil.rmtree(locks)
    with training_step(1), training_stage("update"):
        pass
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    (lost,) = evidence.of("lost")
    assert lost["device"] == "pretend-card"
    assert lost["collection"] == evidence.collections(name="rollout")[0]["collection"]


def test_lock_directory_read_only_to_this_user():
    """A user who may not write the lock directory runs unprofiled, is told once, and ends well."""
    if os.geteuid():
        pytest.skip("needs root, to become another user")
    with tempfile.TemporaryDirectory() as directory:
        locks, output = Path(directory, "locks"), Path(directory, "out")
        os.chmod(directory, 0o755)
        locks.mkdir(mode=0o555)
        output.mkdir()
        os.chmod(output, 0o777)
        script = f"""
def work(output):
    profwin.configure(steps="1", output=output, devices="pretend:card", run="r")
    with rollout_window(1) as window:
        say(window.recorded)
    with training_stage("update"):
        say("trained")
    profwin.shutdown()

os.environ["PROFWIN_LOCK_DIR"], locks = {directory + "/warm"!r}, os.environ["PROFWIN_LOCK_DIR"]
work({directory + "/first"!r})  # what must be imported may not be readable to others
os.environ["PROFWIN_LOCK_DIR"] = locks
os.setgroups([]); os.setgid(65534); os.setuid(65534)
work({str(output)!r})
"""
        out, err = run(script, PROFWIN_LOCK_DIR=str(locks))
        assert out.split() == ["True", "trained", "False", "trained"], err
        assert err.count("profwin:") == 1, err
        assert Evidence(output).skips() == [("rollout", "registry"), ("update", "registry")]


def test_output_that_cannot_be_written(tmp_path, caplog):
    """Where neither journal nor traces can be written the bodies run all the same, and the locks are given back."""
    output = tmp_path / "out"
    output.write_text("a file")
    configure(output)
    ran = []
    with rollout_window(1):
        ran.append(1)
    with training_stage("update"):
        ran.append(2)
    profwin.shutdown()
    assert ran == [1, 2]
    assert len([each for each in warnings_of(caplog) if "journal" in each]) == 1


LIMITED = """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
"""


def test_journal_on_a_full_disk(output):
    """A journal whose disk is full for a while holds whole records only, says how many it lacks, and can be read."""
    script = f"""{LIMITED}
profwin.configure(steps="1-9999", output={str(output)!r}, devices="pretend:card", run="r")
with rollout_window(1):
    pass
journal = profwin.configuration.current().journal
for extra in range(0, 160, 7):
    size = os.stat(journal.path).st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + extra, resource.RLIM_INFINITY))
    with training_stage("update"):
        say(extra)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with training_stage("again"):
        pass
profwin.shutdown()
"""
    out, err = run(script)
    assert len(out.split()) == 23
    evidence = Evidence(output)
    assert evidence.of("end")[0]["dropped"] > 23
    assert evidence.recorded().count("again") == 23
    assert err.count("cannot write its journal") == 1
    assert (output / "r" / "manifest.json").exists()


@pytest.mark.parametrize("trace_format", ["json", "json.gz"])
def test_trace_on_a_full_disk(output, trace_format):
    """A trace that does not fit is no trace: wherever it is cut, no half file is left and the journal has the error."""
    script = f"""{LIMITED}
import torch
profwin.configure(steps="1-9", backend="torch", output={str(output)!r}, devices="pretend:card", run="r",
                  trace_format={trace_format!r})
def record(limit):
    with training_step(1), training_stage("update"):
        for _ in range(200):
            torch.ones(3).sin()
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

from profwin.backends import torch as backend
sizes = []
whole = backend._whole
backend._whole = lambda path: (sizes.append(os.path.getsize(path)), whole(path))[1]
record(resource.RLIM_INFINITY)
backend._whole = whole
for cut in (30, 700, 5000, 20000, sizes[0] // 2):
    record(sizes[0] - cut - 1000)
record(resource.RLIM_INFINITY)
profwin.shutdown()
"""
    run(script)
    evidence = Evidence(output)
    evidence.check()
    exports = evidence.of("export")
    assert ["error" in export for export in exports] == [False] + [True] * 5 + [False]
    assert not [export for export in exports if "error" in export and "path" in export]
    assert len(list(output.glob("r/step_000001/**/*.json*"))) == 2
    assert not list(output.glob("r/step_000001/**/.*"))
    for export in (exports[0], exports[-1]):
        path = output / "r" / export["path"]
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            assert json.load(file)["profwin"]["name"] == "update"


def test_lock_directory_on_a_full_disk(tmp_path, output):
    """On a full file system neither the board nor a lock file ends the process; bodies run unprofiled."""
    mount = tmp_path / "full"
    mount.mkdir()
    script = tmp_path / "script.py"
    script.write_text(f"""{PRELUDE}
profwin.configure(steps="1", output={str(output)!r}, devices="pretend:card", run="r")
with rollout_window(1) as window:
    say(window.recorded)
with training_stage("update"):
    say("trained")
profwin.shutdown()
""")
    command = f"""
mount -t tmpfs -o size=64k,mode=1777 none {mount} || exit 77
dd if=/dev/zero of={mount}/fill bs=4096 2>/dev/null
exec {sys.executable} {script}
"""
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", command],
        env={**os.environ, "PROFWIN_LOCK_DIR": str(mount)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("a file system cannot be mounted here")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "trained"], done.stderr
    assert Evidence(output).skips() == [("rollout", "registry"), ("update", "registry")]


def test_holder_whose_lock_directory_was_deleted(output, locks):
    """Case 33: when its directory was deleted and a newcomer records as well, the holder's journal says so."""
    configure(output)
    with holder(output) as other:
        shutil.rmtree(locks)
        with rollout_window(1) as window:
            recorded = window.recorded
        other.say()
        assert other.hear() == "left"
        other.say()
        other.finish()
    profwin.shutdown()
    evidence = Evidence(output)
    assert not recorded or len(evidence.of("lost")) == 1
