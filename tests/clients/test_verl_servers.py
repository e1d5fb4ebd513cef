"""verl's servers lock the devices that they record on in their own processes, where they are Ray actors."""

from __future__ import annotations

import json

import pytest
from clients_support import HERE, PYTHON, needs, run

from profwin.testing import assert_no_overlap, assert_rollout_before_training, read_record

pytestmark = [needs("verl"), pytest.mark.timeout(900)]


def test_servers_and_workers_of_one_card_take_turns(tmp_path):
    """Each server's process has its windows on the cards of its own list, and the worker its stages on one of these."""
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks").chmod(0o1777)
    cards = HERE.parent / "integration" / "card_stand_in"
    done = run(
        "-m", "profwin", "run", "--plan", "verl", "--backend", "record", "--output", str(tmp_path), "--lock-dir",
        str(tmp_path / "locks"), "--", PYTHON, "-W", "ignore", "-m", "verl_driver.ray_run", "servers",
        "global_profiler.steps=[1,2]", "global_profiler.tool=torch", cwd=tmp_path,
        PYTHONPATH=f"{HERE}:{cards}", VERL_DRIVER_DEVICES="cuda:5",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [["start", "stop"] * 2] * 3, done.stdout
    [directory] = [path for path in tmp_path.iterdir() if (path / "journal").is_dir()]
    record = read_record(str(directory))
    assert record.findings == ()
    assert_no_overlap(record)
    for step in (1, 2):
        assert_rollout_before_training(record, step)
        windows = [each for each in record.collections if (each.step, each.purpose) == (step, "rollout")]
        assert sorted(each.devices for each in windows if not each.elsewhere) == [
            ("GPU-2",), ("GPU-3",), ("GPU-4", "GPU-5"),
        ]  # fmt: skip
        assert len({each.process for each in windows}) == 4
        assert {each.devices for each in record.stages if each.step == step} == {("GPU-5",)}
