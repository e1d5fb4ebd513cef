"""What the journal says of the bodies of weight syncs, of `weight_sync` and of `Loop`."""

from __future__ import annotations

import asyncio
import logging
import os
import time

import pytest
from sync_support import Engine, records

import profwin
from profwin import Loop, training_step, weight_sync
from profwin.configuration import current
from profwin.errors import EngineError
from profwin.evidence.run import load as load_run


@pytest.fixture
def output(tmp_path):
    """Configure a run that records steps 2 and 3 of rank 0."""
    profwin.configure(steps="2-3", output=tmp_path, devices="pretend:1", run="run", ranks="0", rank=0)
    yield tmp_path
    profwin.shutdown()


def bodies(output):
    """Return (version, side, devices, status, error) of each body, those that never ended with None."""
    ends = {record["id"]: record for record in records(output, "synced")}
    return [
        (
            record["version"], record["side"], [key.removeprefix("pretend-") for key in record["devices"]],
            ends.get(record["id"], {}).get("status"), ends.get(record["id"], {}).get("error"),
        )
        for record in records(output, "sync")
    ]  # fmt: skip


def test_the_body_lies_right_between_its_records(output):
    """The window is closed before the begin, and the next one opens after the end; the body is all that is between."""
    with weight_sync(1, Engine()):
        pass
    with weight_sync(2, Engine()):
        began = time.monotonic_ns()
        time.sleep(0.01)
        ended = time.monotonic_ns()
    close, (begin, end), opened = (
        records(output, "close")[0]["t"],
        [(a["t"], b["t"]) for a, b in zip(records(output, "sync"), records(output, "synced"), strict=True)][1],
        records(output, "open")[1]["t"],
    )
    assert close <= begin <= began < ended <= end <= opened
    assert bodies(output) == [(1, "rollout", ["0"], "ok", None), (2, "rollout", ["0"], "ok", None)]


def test_syncs_far_from_recorded_steps_are_not_written(output):
    """Only a sync that begins a recorded step, or ends one, is in the journal, on either side."""
    for version in range(6):
        with weight_sync(version, window=False):
            pass
        with weight_sync(version):
            pass
    assert [version for version, *_ in bodies(output)] == [1, 1, 2, 2, 3, 3]
    assert [(side, devices) for _, side, devices, *_ in bodies(output)[:2]] == [("training", ["1"]), ("rollout", ["1"])]


def test_a_rank_that_is_not_recorded_writes_none(tmp_path):
    """Of the ranks that are not selected no sync is written."""
    profwin.configure(steps="1-3", output=tmp_path, devices="pretend:1", ranks="0", rank=1)
    with weight_sync(1):
        pass
    profwin.shutdown()
    assert bodies(tmp_path) == []


def test_a_failing_body_says_so(output):
    """What a body raises passes unchanged and stands in its end, also where it is cancelled."""
    error = KeyError("body")
    with pytest.raises(KeyError) as caught, weight_sync(1, Engine()):
        raise error
    assert caught.value is error

    async def cancelled():
        async with weight_sync(1, Engine()):
            asyncio.current_task().cancel()
            await asyncio.sleep(5)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert [(status, what) for *_, status, what in bodies(output)] == [
        ("error", "KeyError"),
        ("error", "CancelledError"),
    ]


def test_a_sync_that_is_not_entered_has_no_body(tmp_path):
    """Where strict raises before the body, there is no begin without an end."""
    profwin.configure(steps="1-3", output=tmp_path, devices="pretend:1", strict=True)
    engine = Engine("stop")
    with weight_sync(0, engine):
        pass
    with pytest.raises(EngineError), weight_sync(1, engine):
        pytest.fail("the body ran")
    profwin.shutdown()
    assert [version for version, *_ in bodies(tmp_path)] == [0]


@weight_sync(lambda version: version)
def load(version):
    """Load weights."""
    return version


@weight_sync(lambda version: version)
async def aload(version):
    """Load weights."""
    return version


def test_every_way_to_sync_is_written(output):
    """Decorated functions and coroutines, blocks in an event loop and nested ones each have a body of their own."""

    async def block():
        async with weight_sync(2):
            pass

    load(1)
    asyncio.run(aload(1))
    asyncio.run(block())
    with weight_sync(2), weight_sync(2, name="other"), weight_sync(1):
        pass
    assert [(version, status) for version, _, _, status, _ in bodies(output)] == [
        (1, "ok"), (1, "ok"), (2, "ok"), (2, "ok"), (2, "ok"), (1, "ok"),
    ]  # fmt: skip
    order = [(record["kind"], record["id"]) for record in records(output) if record["kind"] in ("sync", "synced")]
    last = [identifier for kind, identifier in order[6:] if kind == "sync"]
    assert [identifier for kind, identifier in order[6:] if kind == "synced"] == last[::-1]


def test_nothing_that_fails_here_breaks_a_body(output, monkeypatch, caplog):
    """A journal that cannot be written, or an engine that cannot say its devices, leaves the body alone."""

    class Mute(Engine):
        devices = property(lambda self: 1 / 0, lambda self, value: None)

    ran = []
    with caplog.at_level(logging.CRITICAL, "profwin"), weight_sync(1, Mute()):
        ran.append(1)
    monkeypatch.setattr(os, "write", _full)
    with weight_sync(2):
        ran.append(2)
    monkeypatch.undo()
    assert ran == [1, 2]
    assert bodies(output) == [(1, "rollout", [], "ok", None)]
    assert current().journal.dropped >= 2


def _full(*_):
    raise OSError("full")


def test_a_body_that_another_run_or_a_child_leaves_is_no_end_there(tmp_path, output):
    """A second configure and a forked child in a body write no end where there is no begin, and open nothing."""
    sync = weight_sync(1)
    sync.__enter__()
    child = os.fork()
    if not child:
        sync.__exit__(None, None, None)
        with weight_sync(2):
            pass
        profwin.shutdown()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    profwin.configure(steps="2-3", output=tmp_path / "second", devices="pretend:1", run="second")
    sync.__exit__(None, None, None)
    run = load_run(str(output / "run"))
    assert not run.findings
    # Sorted: two processes' journals are read in the order of their pids, and those may wrap round.
    assert sorted((sync.process.pid == child, sync.version, sync.status) for sync in run.syncs) == [
        (False, 1, None),
        (True, 2, "ok"),
    ]
    assert [each.step for each in run.intervals if each.process.pid == child] == [3]
    assert records(tmp_path / "second", "synced") == []


def test_off_nothing_is_written(tmp_path):
    """Off, no journal is made."""
    with weight_sync(1):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_loop_hears_when_weights_are_on_their_way(output):
    """The two events of a loop are the begin and the end, between the closing and the opening of its windows."""
    with Loop("fully_async", engine=Engine()) as loop:
        loop.weights_synced(1)
        loop.weights_about_to_sync(2)
        loop.weights_synced(2)
    kinds = [record["kind"] for record in records(output) if record["kind"] in ("open", "close", "sync", "synced")]
    assert kinds == ["open", "close", "sync", "synced", "open", "close"]
    assert bodies(output) == [(2, "rollout", ["0"], "ok", None)]


def test_a_loop_names_the_devices_of_its_parts(output):
    """Those of parts that it was not given are not in the sync."""
    loop = Loop("separate", devices=["pretend:3"], hybrid_devices=["pretend:4"])
    loop.weights_about_to_sync(1)
    loop.weights_synced(1)
    loop = Loop("separate", hybrid_devices=["pretend:4"])
    loop.weights_about_to_sync(1)
    loop.weights_synced(1)
    assert [devices for _, _, devices, *_ in bodies(output)] == [["3", "4"], ["4"]]


def test_odd_events_of_a_loop_leave_no_body_open(output):
    """Repeated, late and missing events: each begin has an end, which says where the weights had not arrived."""
    with training_step(2):
        with pytest.raises(KeyError), Loop("sync") as loop:  # noqa: PT012  # each event is the point
            loop.weights_synced(1)
            loop.weights_about_to_sync(2)
            loop.weights_about_to_sync(2)
            loop.weights_about_to_sync(3)
            loop.weights_synced(2)
            loop.weights_synced(3)
            loop.weights_about_to_sync(4)
            raise KeyError
        with Loop("fully_async") as loop:
            loop.step_begins(2)
            loop.weights_about_to_sync(0)
            loop.weights_about_to_sync(2)
            loop.step_begins(3)
    assert [(version, status, error) for version, _, _, status, error in bodies(output)] == [
        (2, "error", "weights_about_to_sync"),
        (3, "error", "weights_synced"),
        (4, "error", "loop_fails"),
        (2, "ok", None),
    ]


def test_a_loop_in_an_event_loop_and_one_that_others_act_for(output):
    """Told in an event loop it is written too; where the actions are somebody else's, nothing is."""

    async def tell():
        async with Loop("separate") as loop:
            await loop.tell("weights_about_to_sync", 1)
            await loop.tell("weights_synced", 1)

    acted = []
    loop = Loop("separate", perform=acted.append)
    loop.weights_about_to_sync(1)
    loop.weights_synced(1)
    assert (acted, bodies(output)) == ([], [])
    asyncio.run(tell())
    assert [(version, status) for version, _, _, status, _ in bodies(output)] == [(1, "ok")]
