"""verl's controller and worker in Ray actors, from one ``profwin run``. See ``verl_driver`` and ``README.md`` here."""

from __future__ import annotations

import pytest
from clients_support import PYTHON, needs, run

from profwin.testing import read_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs("verl"), pytest.mark.timeout(900)]

STAGES = ["compute_log_prob", "compute_ref_log_prob", "update_actor"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a run whose steps stand in verl's configuration alone."""
    folder, locks = tmp_path_factory.mktemp("ray"), tmp_path_factory.mktemp("locks")
    locks.chmod(0o1777)
    done = run(
        "-m", "profwin", "run", "--plan", "verl", "--backend", "record", "--output", str(folder), "--lock-dir",
        str(locks), "--", PYTHON, "-W", "ignore", "-m", "verl_driver.ray_run", "global_profiler.steps=[1,2]",
        "global_profiler.tool=torch", "actor_rollout_ref.actor.profiler.tool_config.torch.discrete=True", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    [found] = [path for path in folder.iterdir() if (path / "journal").is_dir()]
    return found


def test_workers_record_what_the_controller_configures(directory):
    """Stages run in verl's own worker group are recorded in the steps that only the controller was told."""
    record = read_record(str(directory))
    assert [(each.step, each.name) for each in record.stages] == [(step, name) for step in (1, 2) for name in STAGES]
    assert all(each.recorded for each in record.stages)
    assert len({each.process for each in record.stages} | {each.process for each in record.windows}) == 2


def test_windows_end_before_stages_begin_in_another_process(directory):
    """In each step the controller's window is over before the worker's first stage is recorded."""
    record = read_record(str(directory))
    assert [each.step for each in record.windows] == [1, 2]
    for window in record.windows:
        assert window.recorded
        first = min(each.entered for each in record.stages if each.step == window.step)
        assert window.end < first
