"""Reports of nsys under Ray: what is to come according to the journals, and what counts as there."""

from __future__ import annotations

import json
import os
import sys
import types

import pytest

import profwin
import profwin.ray
from profwin.errors import SettingError, StateError
from profwin.ray import lookout, reports
from profwin.ray.nodes import Node
from profwin.ray.reports import Watch
from profwin.registry.host import known_boot_id
from profwin.registry.process import identity


@pytest.fixture(autouse=True)
def nothing_owed(monkeypatch):
    """Let each test begin with nothing to wait for."""
    monkeypatch.setattr(reports, "_owed", [])


def journal(path, *records, boot="here", pid=7, start=3):
    """Write a journal."""
    lines = [{"kind": "process", "boot": boot, "pid": pid, "start": start, "wall": 1000}, *records]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return str(path)


def opened(number, *backends):
    """Return the record of a collection that begins."""
    return {"kind": "open", "collection": number, "backends": list(backends or ["nsys"])}


@pytest.mark.parametrize(
    ("expected", "records"),
    [
        ((7, 3, 2, 1000), [opened(1), {"kind": "close", "collection": 1, "reason": "end"}, opened(2, "nsys", "nvtx")]),
        ((7, 3, 1, 1000), [opened(1), opened(2), {"kind": "close", "collection": 2, "error": "it is broken"}]),
        (None, [opened(1, "torch")]),
        (None, [opened(1), {"kind": "finding", "code": "nsys-not-there", "detail": ""}]),
        (None, []),
    ],
)
def test_what_is_to_come(tmp_path, expected, records):
    """A process owes a report for each capture range that began, if nsys launched it."""
    assert lookout.ranges(journal(tmp_path / "j.jsonl", *records), "here") == expected


def test_what_is_no_journal_of_this_host(tmp_path):
    """Journals of other hosts, and what is damaged, tell nothing."""
    path = journal(tmp_path / "j.jsonl", opened(1), boot="there")
    assert lookout.ranges(path, "here") is None
    for text in ("", "{", "[]\n", '{"boot":"here"}\n', '{"boot":"here","pid":1,"wall":1}\n{"kind":"open"'):
        (tmp_path / "j.jsonl").write_text(text)
        assert lookout.ranges(path, "here") is None
    assert lookout.ranges(str(tmp_path / "none"), "here") is None


def test_a_look(tmp_path):
    """A look finds reports that are no older than the run's processes there, and what is made into reports."""
    here = {"boot": known_boot_id(), "pid": os.getpid(), "start": identity().start}
    journal(tmp_path / "run/journal/a.jsonl", opened(1), **here)
    journal(tmp_path / "run/journal/b.jsonl", opened(1), **{**here, "pid": 2**22 - 1})
    folder = tmp_path / "nsight"
    folder.mkdir()
    for name, when in (("old.nsys-rep", 999), ("new.nsys-rep", 1000), ("a.qdstrm", 1001), ("a.txt", 1001)):
        (folder / name).write_text("xx")
        os.utime(folder / name, ns=(when, when))
    (folder / "link.nsys-rep").symlink_to("new.nsys-rep")
    seen = lookout.Lookout(str(folder), str(tmp_path / "run"), 0).look()
    assert set(seen["files"]) == {"new.nsys-rep", "a.qdstrm"}
    assert (seen["due"], seen["alive"]) == ({os.getpid(): 1, 2**22 - 1: 1}, [os.getpid()])
    assert set(lookout.Lookout(str(folder), "", 1001).look()["files"]) == {"a.qdstrm"}
    nothing = lookout.Lookout(str(tmp_path / "none"), "", 0).look()
    assert (nothing["files"], nothing["due"]) == ({}, {})


def look(files, due=None, alive=()):
    """Return a look at reports that have all been written this moment."""
    return {"files": {name: (size, 10**18) for name, size in files.items()}, "due": due or {}, "alive": list(alive),
            "folder": (1, 2), "now": 10**18}  # fmt: skip


def test_a_report_is_there_when_it_has_settled():
    """A report counts when it has not grown for a while and is not empty; each process has its own."""
    watch = Watch("/f", None, named=True)
    assert watch.missing
    due = {7: 2, 8: 1}
    watch.take(look({"a_7.1.nsys-rep": 5, "a_8.nsys-rep": 0}, due, [7]), 0.0)
    assert watch.missing == [
        "a_7.1.nsys-rep is still growing", "a_8.nsys-rep is empty",
        "1 of 2 reports of process 7 are there; process 7 still runs, and nsys may write when it ends",
    ]  # fmt: skip
    watch.take(look({"a_7.1.nsys-rep": 6, "a_7.2.nsys-rep": 6, "a_8.nsys-rep": 1, "b.qdstrm": 1}, due), 1.0)
    assert len(watch.missing) == 4
    watch.take(look({"a_7.1.nsys-rep": 6, "a_7.2.nsys-rep": 6, "a_8.nsys-rep": 1}, due), 1.0 + reports.SETTLED)
    assert watch.missing == []
    assert watch.finished == {"a_7.1.nsys-rep": 6, "a_7.2.nsys-rep": 6, "a_8.nsys-rep": 1}
    for moment in (10.0, 20.0):
        watch.take(look({"b.qdstrm": 1}), moment)
        assert watch.missing == ["b.qdstrm has not been made into a report"]


def test_old_reports_need_no_second_look():
    """A report that was last changed some time ago by its node's clock counts at once."""
    watch = Watch("/f", None, named=True)
    watch.take({**look({"a.nsys-rep": 5}), "now": 10**18 + 3 * 10**9}, 0.0)
    assert watch.finished == {"a.nsys-rep": 5}
    assert watch.missing == []


def test_limits_and_names():
    """Of more ranges than nsys records only so many are owed; reports without a process's number are counted."""
    watch = Watch("/f", 1, named=True)
    watch.take(look({}, {7: 3}), 0.0)
    assert watch.missing == ["0 of 1 reports of process 7 are there"]
    watch = Watch("/f", None, named=False)
    watch.take(look({"a.1.nsys-rep": 1}, {7: 3, 8: 1}), 0.0)
    assert watch.missing[-1] == "1 of 4 reports are there"


def test_nodes_of_one_host_have_one_folder():
    """What several nodes see in the folder of their host counts once, though they looked at different moments."""
    early, late, other = (Watch("/f", None, named=True) for _ in range(3))
    early.take({**look({"a.nsys-rep": 1}), "now": 2 * 10**18}, 0.0)
    late.take({**look({"a.nsys-rep": 1, "b.nsys-rep": 1}), "now": 2 * 10**18}, 0.0)
    other.take({**look({"a.nsys-rep": 1}), "now": 2 * 10**18}, 0.0)
    nodes = [Node(letter * 8, "host", address, True, "/s") for letter, address in zip("abc", "112", strict=True)]
    found = reports._result(dict(zip(nodes, (early, late, other), strict=True)), {}, expected=3)
    assert set(found.files) == {
        "aaaaaaaa (1): /f/a.nsys-rep",
        "aaaaaaaa (1): /f/b.nsys-rep",
        "cccccccc (2): /f/a.nsys-rep",
    }
    assert found.whole


def test_wrong_calls():
    """What cannot be waited for is refused at once."""
    pytest.importorskip("ray", reason="ray is not installed: every call is refused")
    for wrong in ({"timeout": 0}, {"timeout": "x"}, {"expected": -1}, {"expected": 1.5}):
        with pytest.raises(SettingError):
            profwin.ray.wait_for_reports(**wrong)
    with pytest.raises(StateError, match=r"before ray.shutdown"):
        profwin.ray.wait_for_reports()


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("connected", [True, False])
def test_the_end_of_the_session(tmp_path, monkeypatch, connected, leaves):
    """The end of a session in which `nsight` was used waits once; without a connection it says that it is too late."""
    pytest.importorskip("ray", reason="ray is not installed: nsight() refuses to work")
    monkeypatch.setitem(sys.modules, "ray", types.SimpleNamespace(is_initialized=lambda: connected))
    waited = []
    monkeypatch.setattr(reports, "_wait", lambda *given: waited.append(given) or reports.Reports(missing=["a", "b"]))
    profwin.configure(steps="1", output=tmp_path, run="run")
    for _ in range(2):
        profwin.ray.nsight(4, output="x_%p")
    if leaves:
        reports._at_exit()
    profwin.shutdown()
    assert len(waited) == connected
    (text,) = [path.read_text() for path in (tmp_path / "run/journal").iterdir()]
    assert text.count('"report-missing"') == 1
    assert ('"a; b"' in text) == connected


def test_the_end_without_reports(tmp_path, monkeypatch):
    """A session without `nsight`, and one whose reports were waited for, ends without a wait."""
    pytest.importorskip("ray", reason="ray is not installed: nsight() refuses to work")
    monkeypatch.setitem(sys.modules, "ray", types.SimpleNamespace(is_initialized=lambda: True))
    waited = []
    monkeypatch.setattr(reports, "_wait", lambda *given: waited.append(given) or reports.Reports())
    profwin.configure(steps="1", output=tmp_path)
    profwin.shutdown()
    assert not waited
    profwin.configure(steps="1", output=tmp_path)
    profwin.ray.nsight(4)
    assert profwin.ray.wait_for_reports(1.0).whole
    profwin.shutdown()
    assert len(waited) == 1
