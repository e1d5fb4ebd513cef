"""verl's own tests of its profiling pass with the plan installed. See ``README.md`` here for ``VERL_SOURCE``."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from clients_support import needs, run

SOURCE = os.environ.get("VERL_SOURCE", "")
pytestmark = [
    needs("verl"),
    pytest.mark.skipif(not SOURCE, reason="VERL_SOURCE names no checkout of verl: see tests/clients/README.md"),
]

FILES = (
    "tests/trainer/ppo/v1/test_rollout_profiling_on_cpu.py",
    "tests/utils/test_torch_profile.py",
    "tests/utils/test_precision_debugger_profile.py",
)

NEVER_STARTED = "it expects a stop, after the sleep, of a rollout profiler that was never started; profwin stops none"
CHANGED = {
    "test_sync_stops_rollout_after_sampling": NEVER_STARTED,
    "test_colocate_async_stops_rollout_only_after_replicas_sleep": NEVER_STARTED,
    "test_separate_async_closes_hybrid_and_standalone_rollout_once": (
        "it expects that the profiler of hybrid engines starts although they sleep while their device trains: that is "
        "the overlap"
    ),
}
"""verl's tests that assert the very order of starts and stops which profwin must change, and why; while it is on."""


@pytest.mark.parametrize("steps", [None, "1"], ids=["off", "on"])
@pytest.mark.parametrize("file", FILES)
def test_verls_own_tests_pass(file, steps, tmp_path):
    """With the plan installed they all pass while profwin is off; while it is on, all but those named here."""
    path = Path(SOURCE, file)
    if not path.exists():
        pytest.skip(f"this version of verl has no {file}")
    variables = {} if steps is None else {"VERL_DRIVER_STEPS": steps}
    done = run(
        "-m", "pytest", "-q", "-rA", "-W", "ignore", "-p", "no:cacheprovider", "-p", "verl_driver.under_plan",
        "--rootdir", str(tmp_path), str(path), cwd=tmp_path, **variables,
    )  # fmt: skip
    lines = re.findall(r"^(PASSED|FAILED|ERROR) .*::(\w+)", done.stdout, re.MULTILINE)
    outcomes = {name: outcome for outcome, name in lines}
    assert outcomes, done.stdout + done.stderr
    failed = {name for name, outcome in outcomes.items() if outcome != "PASSED"}
    assert failed == (set(CHANGED) & set(outcomes) if steps is not None else set()), done.stdout[-6000:]
