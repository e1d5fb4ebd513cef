"""Which backends a session uses, and whether it takes device locks for them."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest

import profwin
from profwin import backends, rollout_window, training_stage
from profwin.configuration import current
from profwin.evidence.check import check
from profwin.registry.lock import Registry


class _Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def export(self):
        return []


class Quiet:
    """A backend that disturbs nobody."""

    name, exclusive, thread_bound, ranges, revocable = "quiet", False, False, False, True

    def __init__(self, settings):
        """Take no settings."""

    def foreign(self):
        """Find none."""
        return

    def open(self, request):
        """Return a recording of nothing."""
        return _Nothing()


class Loud(Quiet):
    """A backend that disturbs others, and for which a quiet one stands in where it is told so."""

    name, exclusive = "loud", True
    replaced = False

    @classmethod
    def stand_in(cls):
        """Name the quiet one."""
        return ("quiet", "something else records") if cls.replaced else None


@pytest.fixture
def known(monkeypatch):
    """Make both backends known by name."""
    for kind in (Quiet, Loud):
        module = ModuleType(f"backend_{kind.name}")
        module.BACKEND = kind
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(backends._TABLE, kind.name, module.__name__)


def _run(tmp_path, backend, held):
    profwin.configure(steps="1", backend=backend, output=tmp_path, devices="pretend:0", run="r", on_busy="skip")
    with rollout_window(1):
        held.append(_taken())
    with training_stage("update"):
        held.append(_taken())
    profwin.shutdown()
    (journal,) = (tmp_path / "r" / "journal").iterdir()
    return [json.loads(line) for line in journal.read_text().splitlines()]


def _taken():
    outcome = Registry(None).acquire(("pretend-0",), kind="training", run="other", name="x", step=1)
    free = hasattr(outcome, "release")
    if free:
        outcome.release()
    return not free


def test_a_backend_that_disturbs_nobody_takes_no_lock(tmp_path, known):
    """Windows and stages of non-exclusive backends are recorded, the journal says so, and their devices stay free."""
    held: list[bool] = []
    records = _run(tmp_path, "quiet", held)
    opened = [record for record in records if record["kind"] == "open"]
    assert held == [False, False]
    assert [record["devices"] for record in opened] == [["pretend-0"], ["pretend-0"]]
    assert all(record["unlocked"] for record in opened)


def test_one_backend_that_disturbs_others_is_enough_for_the_lock(tmp_path, known):
    """With an exclusive backend beside it, the lock is held, and the journal says nothing else."""
    held: list[bool] = []
    records = _run(tmp_path, ["quiet", "loud"], held)
    assert held == [True, True]
    assert not any("unlocked" in record for record in records)


def test_it_records_while_somebody_else_holds_the_device(tmp_path, known):
    """A held device keeps nothing from recording that needs no lock, and the run checks clean."""
    with_lock = Registry(None).acquire(("pretend-0",), kind="training", run="other", name="x", step=1)
    try:
        records = _run(tmp_path, "quiet", [])
    finally:
        with_lock.release()
    assert [record["kind"] for record in records].count("open") == 2
    assert not any(record["kind"] == "skip" for record in records)


def test_a_stage_that_joins_from_another_device_takes_no_lock_either(tmp_path, known):
    """What joins a recording that needs no lock brings its devices along without one."""
    profwin.configure(steps="1", backend="quiet", output=tmp_path, devices="pretend:0", run="r")
    with rollout_window(1), training_stage("update", devices="pretend:1"):
        (collection,) = current().owner.collections
        assert collection.keys == ("pretend-0", "pretend-1")
        assert collection.held is None


def test_another_backend_stands_in_and_the_run_says_so(tmp_path, known, monkeypatch, caplog):
    """A backend that cannot record in this process is replaced by the one that it names, once, with a finding."""
    monkeypatch.setattr(Loud, "replaced", True)
    records = _run(tmp_path, ["loud", "quiet"], [])
    assert [record["backends"] for record in records if record["kind"] == "open"] == [["quiet"], ["quiet"]]
    found = [record for record in records if record["kind"] == "finding" and record["code"] == "backend-replaced"]
    assert [record["detail"] for record in found] == ["loud: something else records"]
    assert "loud: something else records" in caplog.text


def test_collections_without_locks_are_no_overlap(tmp_path, known):
    """Two processes' recordings that need no lock may lie over each other, and the check finds nothing mixed."""
    _run(tmp_path, "quiet", [])
    path = next((tmp_path / "r" / "journal").iterdir())
    text = path.read_text()
    header, _, rest = text.partition("\n")
    second = json.loads(header) | {"pid": 4_000_000, "root": False}
    (path.parent / "norank_process_p4000000-0000_a0.jsonl").write_text(json.dumps(second) + "\n" + rest)
    codes = {finding.code.name for finding in check(str(tmp_path)).findings}
    assert not codes & {"overlap", "shared-device", "handover-order"}
