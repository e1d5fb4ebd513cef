"""Case 23: whatever fails, the body's own exception is what the caller sees, and nothing is left behind."""

from __future__ import annotations

import asyncio
import logging

import faulty_backend
import pytest
from core_support import Evidence, descriptors

import profwin
from profwin import backends, paused, rollout_window, training_stage, training_step
from profwin.configuration import current
from profwin.errors import BackendError
from profwin.registry.lock import Held, Registry

BODY = [ValueError, KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit, StopIteration]
ACTIONS = ["foreign", "open", "span", "close", "export"]


@pytest.fixture(autouse=True)
def faulty(monkeypatch):
    """Make the faulty backend known by name."""
    faulty_backend.reset()
    monkeypatch.setitem(backends._TABLE, "faulty", "faulty_backend")


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def configure(output, **more):
    """Configure this process with the settings that these tests share."""
    profwin.configure(
        **{"steps": "1-3", "backend": "faulty", "output": str(output), "devices": "pretend:card", "run": "r", **more}
    )


def device_is_free(locks):
    """Assert that the device can be taken at once."""
    held = Registry(locks).acquire(["pretend-card"], kind="rollout", run="t", name="t", step=1)
    assert isinstance(held, Held)
    held.release()


def block(kind):
    """Return a window or a stage as a block."""
    return rollout_window(1) if kind == "window" else training_stage("update")


def call(kind, body):
    """Run a body as a block, or in a decorated function."""
    if kind == "decorated window":
        rollout_window(1)(body)()
    elif kind == "decorated stage":
        training_stage(body)()
    else:
        with block(kind):
            body()


KINDS = ["window", "stage", "decorated window", "decorated stage"]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("error", BODY)
def test_exception_in_the_body(output, locks, error, strict):
    """The very object that the body raised arrives, and what was recorded until then is kept."""
    configure(output, strict=strict)
    with training_step(1):
        for kind in KINDS:
            mine = error("mine")
            with pytest.raises(error) as caught:
                call(kind, lambda mine=mine: stop(mine))
            assert caught.value is mine
            device_is_free(locks)
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    # A generator that is closed early has not failed.
    failed = error is not GeneratorExit
    assert [each["reason"] for each in evidence.collections()] == ["failure" if failed else "end"] * 4
    assert [each.get("error") for each in evidence.of("exit")] == [error.__name__ if failed else None] * 4
    assert len(list(output.glob("r/step_000001/**/*.txt"))) == 4


def stop(error):
    """Raise what is given."""
    raise error


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("error", BODY)
def test_body_and_profiler_fail_at_once(output, locks, error, action, strict):
    """When both fail, the body's exception is what the caller sees, unless under strict no body ran."""
    faulty_backend.faults[action] = OSError("disk full")
    configure(output, strict=strict)
    with training_step(1):
        for kind in KINDS:
            mine = error("mine")
            expected = BackendError if strict and action in ("foreign", "open") else error
            with pytest.raises(expected) as caught:
                call(kind, lambda mine=mine: stop(mine))
            assert expected is BackendError or caught.value is mine
            device_is_free(locks)
    profwin.shutdown()
    Evidence(output).check()


@pytest.mark.parametrize("action", ACTIONS)
def test_profiler_fails_alone(output, locks, action, caplog):
    """Without strict a failing profiler changes nothing for the body; one warning, and the journal has it."""
    faulty_backend.faults[action] = OSError("disk full")
    configure(output)
    ran = []
    with training_step(1):
        for kind in KINDS:
            call(kind, lambda: ran.append(1))
            device_is_free(locks)
    assert len(ran) == 4
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1
    if action in ("foreign", "open"):
        assert [reason for _, reason in evidence.skips()] == ["backend"] * 4
        assert "disk full" in evidence.of("skip")[0]["detail"]
    elif action != "span":
        errors = [each.get("error", "") for each in evidence.of("close" if action == "close" else "export")]
        assert len(errors) == 4
        assert all("disk full" in error for error in errors)
    assert faulty_backend.log.count("open") == (0 if action == "foreign" else 4)
    assert faulty_backend.log.count("close") == (0 if action in ("foreign", "open") else 4)


@pytest.mark.parametrize("action", ["open", "close", "export"])
def test_profiler_fails_alone_under_strict(output, locks, action):
    """Under strict the profiler's failure is raised once the devices are free; the body ran unless the open failed."""
    faulty_backend.faults[action] = OSError("disk full")
    configure(output, strict=True)
    ran = []
    with training_step(1):
        for kind in KINDS:
            with pytest.raises(BackendError, match="disk full") as caught:
                call(kind, lambda: ran.append(1))
            assert caught.value.action == action
            device_is_free(locks)
    assert len(ran) == (0 if action == "open" else 4)
    profwin.shutdown()
    Evidence(output).check()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("action", ["open", "close", "export"])
def test_interrupt_inside_the_profiler_passes(output, locks, error, action):
    """Ctrl-C while a profiler starts, stops or exports is not swallowed, and nothing stays open for it."""
    before = descriptors()
    configure(output)
    faulty_backend.faults[action] = mine = error("now")
    with training_step(1):
        for kind in KINDS:
            with pytest.raises(error) as caught:
                call(kind, lambda: None)
            assert caught.value is mine
            assert not current().owner.collections
            device_is_free(locks)
    profwin.shutdown()
    assert descriptors() == before
    evidence = Evidence(output)
    assert all(each["end"] is not None for each in evidence.collections())


def test_exit_handlers_are_never_truthy(output):
    """No exit of ours swallows an exception."""
    configure(output)
    for kind in ("window", "stage"):
        manager = block(kind)
        manager.__enter__()
        assert not manager.__exit__(None, None, None)
    with training_step(1):
        assert not training_step(1).__exit__(None, None, None)


@pytest.mark.parametrize("error", BODY)
def test_exception_in_a_pause_passes_when_it_cannot_be_resumed(output, error):
    """Under strict a recording that cannot be taken up again does not hide what failed inside paused()."""
    configure(output, strict=True)
    mine = error("mine")

    def body():
        faulty_backend.faults["open"] = OSError("disk full")
        raise mine

    with pytest.raises(error) as caught, rollout_window(1), paused():
        body()
    assert caught.value is mine
    profwin.shutdown()


def test_pause_that_cannot_be_resumed(output):
    """Without a failure inside, strict raises what keeps a paused recording from going on."""
    configure(output, strict=True)
    with pytest.raises(BackendError, match="disk full"), rollout_window(1), paused():
        faulty_backend.faults["open"] = OSError("disk full")
    profwin.shutdown()
