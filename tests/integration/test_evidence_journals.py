"""Real journals, of processes that ran and were killed, and what is said of them."""

from __future__ import annotations

import signal
from collections import Counter

import pytest
from core_support import ROOT, Child, run

from profwin.evidence.expectation import expect
from profwin.evidence.presence import presence
from profwin.evidence.run import Run, find_runs, load
from profwin.evidence.unmixed import unmixed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

CONFIGURE = 'profwin.configure(steps="1-2", output={output!r}, devices="pretend:card", {more})\n'


def script(output: Path, body: str, more: str = "") -> str:
    """Return a script whose steps 1 and 2 are recorded on one pretended card."""
    return CONFIGURE.format(output=str(output), more=more) + body


def codes(output: Path) -> Counter[str]:
    """Return how often each code is raised by the one run below a directory."""
    return codes_of(only(output))


def codes_of(found: Run) -> Counter[str]:
    """Return how often each code is raised by a run."""
    findings = [*found.findings, *presence(found, expect(found)), *unmixed(found)]
    return Counter(finding.code.name for finding in findings)


def only(output: Path) -> Run:
    """Return the one run below a directory."""
    (directory,) = find_runs(str(output))
    return load(directory)


STEPS = """
for step in (1, 2):
    with rollout_window(step):
        with span("prefill"): pass
    with training_stage("update"): pass
"""
STAGE = """
with training_stage("update"): pass
"""
LOSE_LOCK = """
with training_stage("update"):
    folder = os.environ["PROFWIN_LOCK_DIR"]
    for name in os.listdir(folder):
        if name.endswith(".lock") and "card" in name:
            os.unlink(os.path.join(folder, name))
"""
RAISE = """
try:
    with rollout_window(2): raise KeyError
except KeyError: pass
"""
STALE = """
window = rollout_window(1); window.open()
with rollout_window(2): pass
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", {}),
        ("with rollout_window(2):\n    with training_stage('update'): pass", {"window-closed-early": 1}),
        ("with rollout_window(2):\n    with paused(): pass", {"continued": 1}),
        (
            "with rollout_window(2):\n    with paused():\n        with training_stage('update'): pass",
            {"continued": 1, "skipped-paused": 1},
        ),
        ("rollout_window(2).open()", {"closed-early": 1}),
        ("with rollout_window(2, max_seconds=0.01):\n    time.sleep(0.02)\n    with span('x'): pass", {"cut-short": 1}),
        (RAISE, {"failed-body": 1}),
        (STALE, {"stale-window": 1}),
        (LOSE_LOCK, {"lost-lock": 1}),
    ],
)
def test_each_mistake_has_its_code(tmp_path: Path, body: str, expected: dict[str, int]) -> None:
    """A whole run has no finding; with one mistake after it, it has that one's."""
    run(script(tmp_path, STEPS + body))
    assert codes(tmp_path) == expected


def test_a_run_without_stages_or_without_a_step(tmp_path: Path) -> None:
    """Windows alone are said once, as at the exit; a step that the run never came to is said."""
    windows, short = tmp_path / "windows", tmp_path / "short"
    run(script(windows, "for step in (1, 2):\n    with rollout_window(step): pass"))
    assert codes(windows) == {"no-stages": 1}
    run(script(short, "with rollout_window(1): pass" + STAGE))
    assert codes(short) == {"step-not-reached": 1}


def test_stages_of_one_step_together(tmp_path: Path) -> None:
    """A run that collects by step is whole too."""
    run(script(tmp_path, STEPS + STAGE, "collect='step'"))
    assert codes(tmp_path) == {}


@pytest.mark.parametrize("engine", [False, True])
def test_a_process_that_is_killed_while_it_records(tmp_path: Path, engine: bool) -> None:
    """SIGKILL in a window leaves a recording that was never closed, and of an engine a stop never confirmed."""
    window = "rollout_window(2, engine=RecordingEngine(process_ids=[os.getppid()]))" if engine else "rollout_window(2)"
    body = f"from profwin.testing import RecordingEngine\nwith {window}:\n    say('inside')\n    hear()\n"
    with Child(script(tmp_path, STEPS + body, "run='killed'")) as child:
        assert child.hear() == "inside"
        assert child.kill() == -signal.SIGKILL
    found = codes(tmp_path)
    assert found.pop("died-recording") == 1
    assert found == ({"no-stop": 1} if engine else {})
    assert only(tmp_path).processes[0].end is None


def test_a_device_that_another_run_holds(tmp_path: Path) -> None:
    """A stage that is skipped names who held the device; the two runs lie side by side."""
    with Child(script(tmp_path, "with rollout_window(1):\n    say('inside')\n    hear()" + STAGE, "run='a'")) as holder:
        assert holder.hear() == "inside"
        run(script(tmp_path, "with training_step(1):\n    " + STAGE.strip(), "run='b', on_busy='skip'"))
        holder.say()
        assert holder.finish()[0] == 0
    first, second = [load(directory) for directory in find_runs(str(tmp_path))]
    assert codes_of(first)["skipped-busy"] == 0
    (skip,) = second.skips
    assert (skip.reason, skip.device) == ("busy", "pretend-card")
    assert str(first.processes[0].pid) in (skip.holder or "")
    assert codes_of(second)["skipped-busy"] == 1


def test_a_stage_inside_the_window_of_its_driver(tmp_path: Path) -> None:
    """Where the driver waits inside its window for the trainer, the handover is out of order."""
    child = CONFIGURE.format(output=str(tmp_path), more="run='one', wait_budget=0.1")
    with Child(child + "with rollout_window(1):\n    say('inside')\n    hear()" + STAGE) as driver:
        assert driver.hear() == "inside"
        body = "with training_step(1):\n    " + STAGE.strip()
        run(script(tmp_path, body, "run='one', wait_budget=0.1"))
        driver.say()
        assert driver.finish()[0] == 0
    found = codes(tmp_path)
    assert (found["handover-order"], found["skipped-busy"], found["overlap"]) == (1, 1, 0)


LAUNCH = """
import subprocess
code = "import profwin; from profwin import *\\nif 1:" + STEPS.replace("\\n", "\\n  ")
for rank in RANKS:
    variables = profwin.environment() | {"RANK": rank, "WORLD_SIZE": WORLD, "PROFWIN_ROLE": "actor"}
    subprocess.run([sys.executable, "-c", code], env=os.environ | variables, check=True)
"""


@pytest.mark.parametrize(("ranks", "world", "expected"), [("01", "2", {}), ("013", "4", {"missing-rank": 1})])
def test_ranks_of_one_launch(tmp_path: Path, ranks: str, world: str, expected: dict[str, int]) -> None:
    """Ranks that all recorded are whole; of a world of four, the one that never ran is missing."""
    body = f"STEPS, RANKS, WORLD = {STEPS!r}, {ranks!r}, {world!r}\n" + LAUNCH
    run(script(tmp_path, body, "role='driver'"), PYTHONPATH=str(ROOT))
    assert codes(tmp_path) == expected


def test_a_restart_is_an_attempt_of_its_own(tmp_path: Path) -> None:
    """The same steps again, under the run's name, double nothing."""
    for _ in range(2):
        run(script(tmp_path, STEPS, "run='one'"))
    assert only(tmp_path).attempts == [0, 1]
    assert codes(tmp_path) == {}
