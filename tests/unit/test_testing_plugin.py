"""The pytest plugin, in a pytest of its own: tests of right and wrong loops, and what it costs where unused."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOOP = """
import profwin
from profwin.testing import assert_all_recorded, assert_no_overlap, assert_rollout_before_training

@profwin.training_stage
def update(samples):
    pass

def right():
    for step in (1, 2):
        with profwin.rollout_window(step):
            samples = [step]
        update(samples)

def wrong():
    for step in (1, 2):
        with profwin.rollout_window(step):
            update([step])
"""
LIGHT = {"profwin", "profwin.testing", "profwin.testing.plugin"}


@pytest.fixture
def user(tmp_path):
    """Return a function that runs pytest on a user's test file, as it runs where profwin is installed."""
    # The entry point as setup.cfg has it, so that this holds also where the sources alone are at hand.
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    plugin = setup["options.entry_points"]["pytest11"]
    information = tmp_path / "installed" / "profwin_sources-0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: profwin-sources\nVersion: 0\n")
    (information / "entry_points.txt").write_text(f"[pytest11]{plugin}\n")
    (information / "RECORD").write_text("profwin/__init__.py,,\nprofwin/testing/plugin.py,,\n")
    # Nothing that a profiler or a framework would bring is needed.
    (tmp_path / "installed" / "torch.py").write_text("raise ImportError('no torch here')\n")
    tests = tmp_path / "tests"
    tests.mkdir()

    def run(text: str, *options: str, loop: str = LOOP, **variables: str) -> tuple[int, str]:
        (tests / "test_loop.py").write_text(loop + text)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PROFWIN_", "PYTEST_"))}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", *options, "test_loop.py"],
            cwd=tests, env={**kept, "PYTHONPATH": f"{tmp_path / 'installed'}{os.pathsep}{ROOT}", **variables},
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return run


def test_right_loop_passes(user):
    """A user's test of a right loop passes, however the shell that runs it is set up."""
    status, said = user(
        """
def test_order(profwin_host):
    right()
    assert_no_overlap(profwin_host.record)
    assert_rollout_before_training(profwin_host.record)
    assert_all_recorded(profwin_host.record, steps=[1, 2], stages=["update"])

def test_nothing_leaks():
    import os
    from profwin.configuration import current
    assert current() is None
    assert [name for name in os.environ if name.startswith("PROFWIN_")] == ["PROFWIN_WAIT_BUDGET"]

def test_time(profwin_host, profwin_clock):
    engine = profwin_host.engine("pretend:0")
    engine.delay("start", 3600)
    import threading
    thread = threading.Thread(target=engine.start_profile)
    thread.start()
    profwin_clock.advance(3600)
    thread.join(10)
    assert engine.recording
""",
        PROFWIN_WAIT_BUDGET="7",
    )
    assert status == 0, said
    assert "3 passed" in said


@pytest.mark.parametrize("check", ["assert_no_overlap", "assert_rollout_before_training", "assert_all_recorded"])
def test_wrong_loop_explains_itself(user, check):
    """A wrong loop fails with both lines of code and the timeline, and without profwin's own frames."""
    status, said = user(f"def test_order(profwin_host):\n    wrong()\n    {check}(profwin_host.record)\n")
    assert status == 1, said
    lines = LOOP.splitlines()
    window, stage = lines.index("            update([step])"), 1 + lines.index("@profwin.training_stage")
    assert f"{os.sep}test_loop.py:{window})" in said
    assert check == "assert_all_recorded" or f"{os.sep}test_loop.py:{stage})" in said
    assert re.search(r"^E +pretend-0$", said, re.MULTILINE)
    assert re.search(r"^E +#+ +step 1 rollout, pid \d+, test_loop.py:\d+, closed: handover$", said, re.MULTILINE)
    assert re.search(r"^E +=+ +step 1 update, pid \d+, test_loop.py:\d+$", said, re.MULTILINE)
    assert "assertions.py" not in said


def test_left_open_is_an_error_of_its_own(user):
    """A window that a passing test leaves open is an error; one that a failing test leaves is not reported again."""
    status, said = user(
        "def test_open(profwin_host):\n    profwin.rollout_window(1).open()\n"
        "def test_failed(profwin_host):\n    profwin.rollout_window(1).open()\n    assert False\n"
        "def test_after(profwin_host):\n    right()\n    assert_all_recorded(profwin_host.record)\n"
    )
    assert status == 1, said
    assert "1 failed, 2 passed, 1 error" in said
    assert "left open at the end of the test" in said


def test_record_in_a_failing_assert(user):
    """A plain assert on the record is explained by pytest, and printing the record shows the timeline."""
    status, said = user(
        "def test_order(profwin_host):\n    wrong()\n    record = profwin_host.record\n    print(record)\n"
        "    assert [event.kind for event in record.events][:2] == ['opened', 'closed']\n"
    )
    assert status == 1, said
    assert "At index 1 diff: 'overlap' != 'closed'" in said
    assert re.search(r"^  #+ +step 1 rollout", said, re.MULTILINE)


def test_it_can_be_left_out(user):
    """Without the plugin its fixtures are unknown, and the assertions still work."""
    text = (
        "def test_plain(tmp_path):\n    from profwin.testing import Host\n    with Host(tmp_path) as host:\n"
        "        right()\n        assert_all_recorded(host.record)\n"
        "def test_fixture(profwin_host):\n    pass\n"
    )
    status, said = user(text, "-p", "no:profwin")
    assert status == 1, said
    assert "fixture 'profwin_host' not found" in said
    assert "1 passed, 1 error" in said


def test_nothing_is_loaded_before_a_fixture_is_used(user):
    """Where the fixtures are unused, a pytest loads three nearly empty modules of profwin's and nothing they use."""
    status, said = user(
        f"def test_loaded():\n    assert BEFORE == {sorted(LIGHT)}\n",
        loop="import sys\nBEFORE = sorted(name for name in sys.modules if name.partition('.')[0] == 'profwin')\n",
    )
    assert status == 0, said


def test_profwin_may_be_imported_before_pytest(user, tmp_path):
    """What imports profwin before pytest, such as a sitecustomize, brings no warning of pytest's."""
    (tmp_path / "installed" / "sitecustomize.py").write_text("import profwin.registry.file\n")
    status, said = user("def test_order(profwin_host):\n    right()\n    assert_all_recorded(profwin_host.record)\n")
    assert status == 0, said


def _loads(code: str) -> set[str]:
    """Return what of profwin, pytest and a few heavy modules a fresh interpreter has loaded after some code."""
    script = f"{code}\nimport sys; print(*sorted(sys.modules))"
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PROFWIN_", "COVERAGE_"))}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**variables, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return {name for name in done.stdout.split() if name.partition(".")[0] in ("profwin", "pytest", "torch", "msgspec")}


def test_nobody_loads_it_unasked():
    """`import profwin`, its decorators and a running session leave the testing package alone."""
    code = (
        "import profwin, tempfile\n"
        "@profwin.training_stage\ndef update(): pass\n"
        "output = tempfile.mkdtemp()\n"
        "profwin.configure(steps='1', devices='pretend:a', output=output, lock_dir=output)\n"
        "with profwin.rollout_window(1): pass\n"
        "update(); profwin.shutdown(); import shutil; shutil.rmtree(output)"
    )
    assert not [name for name in _loads(code) if name.startswith("profwin.testing")]


def test_assertions_need_no_pytest():
    """The package and its assertions load without pytest, torch and the session."""
    loaded = _loads("import profwin.testing as t\nt.assert_no_overlap, t.Record, t.read_record")
    assert not loaded & {"pytest", "torch", "msgspec", "profwin.session"}
    assert not _loads("import profwin.testing") - {"profwin", "profwin.testing"}
    assert "pytest" not in _loads("from profwin.testing import Host, FakeClock, RecordingEngine")
