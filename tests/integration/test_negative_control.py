"""Without the device lock the evidence must show what the lock prevents: a check that cannot fail proves nothing.

The demo's and the stress run's own negative controls stand beside their tests, in ``test_demo.py`` and
``test_stress.py``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from core_support import ROOT, Child, Evidence

NO_LOCK = Path(__file__).with_name("no_lock")
HERE = "tests/integration"

PROCESS = """
profwin.configure(steps="1", output={output!r}, devices="pretend:0", run="control", wait_budget=60)
say("ready")
hear()
with {block}:
    try:
        # The witness is a file that only one process at a time can make: it knows nothing of locks and journals.
        os.close(os.open({witness!r}, os.O_CREAT | os.O_EXCL))
        alone = True
    except FileExistsError:
        alone = False
    say("alone" if alone else "overlap")
    hear()
    if alone:
        os.unlink({witness!r})
say("left")
profwin.shutdown()
"""

WINDOW, STAGE = "rollout_window(1)", "training_step(1), training_stage('update')"

PROVEN = [
    f"{HERE}/test_lock_exclusion.py::test_two_processes_exclude_each_other",
    f"{HERE}/test_conflict_elsewhere.py::test_stage_waits_for_a_rollout_window_elsewhere",
    f"{HERE}/test_conflict_elsewhere.py::test_window_waits_for_a_stage_elsewhere",
    f"{HERE}/test_fault_death.py::test_device_of_an_orphaned_engine_is_unknown",
]
"""Tests of exclusion between processes, and of the mark; each must fail where the lock excludes nobody."""


def python_path(*, locked: bool) -> str:
    """Return the ``PYTHONPATH`` of the processes of a test."""
    return os.pathsep.join([str(ROOT)] if locked else [str(NO_LOCK), str(ROOT)])


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "no lock"])
@pytest.mark.parametrize(("first", "second"), [(WINDOW, STAGE), (STAGE, WINDOW)], ids=["stage", "window"])
def test_witness_and_journals_agree(tmp_path, locked, first, second):
    """A stage that begins in another process's window, or the reverse, overlaps it exactly where there is no lock."""
    output, witness = tmp_path / "out", str(tmp_path / "witness")
    scripts = [PROCESS.format(output=str(output), witness=witness, block=block) for block in (first, second)]
    path = python_path(locked=locked)
    with Child(scripts[0], PYTHONPATH=path) as holder, Child(scripts[1], PYTHONPATH=path) as other:
        assert [holder.hear(), other.hear()] == ["ready", "ready"]
        holder.say()
        assert holder.hear() == "alone"
        other.say()
        if locked:
            with pytest.raises(TimeoutError):
                other.hear(patience=0.5)
            holder.say()
            assert holder.hear() == "left"
            assert other.hear() == "alone"
        else:
            assert other.hear() == "overlap"
            holder.say()
            assert holder.hear() == "left"
        other.say()
        assert other.hear() == "left"
        assert [child.finish()[0] for child in (holder, other)] == [0, 0]
    evidence = Evidence(output)
    assert len(evidence.collections()) == 2
    assert not evidence.of("skip")
    before, after = evidence.collections()
    assert (before["end"] <= after["t"]) is locked
    if not locked:
        with pytest.raises(AssertionError, match="collections overlap on pretend-0"):
            evidence.check()
    else:
        evidence.check()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("locked", [True, False], ids=["locked", "no lock"])
def test_tests_of_the_lock_can_fail(locked):
    """Tests that two processes exclude each other pass, and without the lock every one of them fails."""
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--timeout=60", *PROVEN],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": python_path(locked=locked)},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    found = {test: outcome for outcome, test in re.findall(r"^(PASSED|FAILED) (\S+)", process.stdout, re.MULTILINE)}
    assert found == dict.fromkeys(PROVEN, "PASSED" if locked else "FAILED"), process.stdout
    assert process.returncode == (0 if locked else 1)
    assert ("collections overlap on" in process.stdout) is not locked
