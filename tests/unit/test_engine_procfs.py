"""What other processes show in ``/proc`` is read whatever stands there: hostile names, other encodings, sudden ends."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from profwin.engines import procfs
from profwin.engines.processes import environment_of, server_arguments


@pytest.fixture
def proc(tmp_path, monkeypatch):
    """Return a function that writes a file of a process in a ``/proc`` of the test's own."""
    monkeypatch.setattr(procfs, "PROC", str(tmp_path))

    def write(pid, name, data):
        path = tmp_path / str(pid) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)

    return write


def stat(pid, parent, name=b"python", state=b"S"):
    """Return the beginning of a ``stat`` file."""
    return b"%d (%b) %b %d 1 1 0 -1 4194560 0 0\n" % (pid, name, state, parent)


def test_names_do_not_confuse_the_family(proc):
    """A command's name may hold spaces, parentheses and line ends; what has ended or is torn is left out."""
    proc(10, "stat", stat(10, 1, b"a) S 99 (b\n"))
    proc(11, "stat", stat(11, 10))
    proc(12, "stat", stat(12, 10, state=b"Z"))
    proc(13, "stat", b"")
    proc(14, "stat", b"14 (no end")
    proc(15, "stat", b"15 (x) S")
    proc(16, "cmdline", b"")  # it ends between the listing and the reading
    proc("self", "stat", stat(17, 10))
    assert procfs.parents() == {10: 1, 11: 10}
    assert procfs.parents([11, 12, 99]) == {11: 10}
    assert procfs.within(10, procfs.parents()) == [10, 11]


def test_a_circle_of_numbers_given_out_anew_ends():
    """Numbers are read one after the other: a family that is its own ancestor has each process once."""
    assert procfs.within(1, {2: 1, 3: 2, 1: 3}) == [1, 2, 3]


def test_a_family_is_listed_from_the_top():
    """Parents come before their children."""
    assert procfs.within(5, {9: 5, 6: 9, 7: 6, 8: 1, 4: 9}) == [5, 9, 4, 6, 7]


def test_command_lines_of_any_size_and_encoding(proc):
    """What is no UTF-8 stays; the empty ones are empty; more than a program can be started with is cut."""
    proc(1, "cmdline", b"vllm\0serve\0--api-key\0\xff\xfe\0\0")
    proc(2, "cmdline", b"")
    proc(3, "cmdline", b"x" * (procfs._MOST + (3 << 20)))
    proc(4, "cmdline", b"VLLM::Worker_TP0")
    first, second, third, fourth, fifth = server_arguments([1, 2, 3, 4, 5])
    assert first[:4] == ["vllm", "serve", "--api-key", "\udcff\udcfe"]
    assert second == fifth == []
    assert [len(part) for part in third] == [procfs._MOST]
    assert fourth == ["VLLM::Worker_TP0"]


def test_environments_of_any_encoding(proc):
    """Entries that are none are left out, the first of two counts, as for getenv; a process that is gone has none."""
    proc(1, "environ", b"A=1\0A=2\0=x\0nothing\0B=\xff=\0C=\n\0\0")
    assert environment_of(1) == {"A": "1", "B": "\udcff=", "C": "\n"}
    assert environment_of(2) is None


def test_real_processes_with_strange_variables():
    """The same of the kernel's own files, for a process that was started with what is no text."""
    variables = {b"ODD": b"\xff\xfe", b"PATH": os.fsencode(os.environ["PATH"])}
    line = [sys.executable, "-c", "print(flush=True), input()", b"\xff" * 1000]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables) as process:
        process.stdout.readline()  # it runs: while the kernel starts it, it has no variables
        try:
            assert environment_of(process.pid)["ODD"] == "\udcff\udcfe"
            assert procfs.arguments(process.pid)[-1] == "\udcff" * 1000
            assert procfs.program(process.pid).startswith("python")
            assert procfs.parents()[process.pid] == os.getpid()
        finally:
            process.communicate(b"\n")
    assert (environment_of(process.pid), procfs.arguments(process.pid), procfs.program(process.pid)) == (None, [], "")
    assert process.pid not in procfs.parents()


def test_links_that_may_not_be_seen_are_none(tmp_path, monkeypatch):
    """Nothing of a process that is gone; what is closed while it is read is left out."""
    monkeypatch.setattr(procfs, "PROC", str(tmp_path))
    (tmp_path / "1" / "fd").mkdir(parents=True)
    (tmp_path / "1" / "fd" / "3").symlink_to("socket:[7]")
    (tmp_path / "1" / "fd" / "4").write_text("no link")
    assert [target for _, target in procfs.links(1)] == ["socket:[7]"]
    assert list(procfs.links(2)) == []


def test_without_proc_nobody_is_there(monkeypatch):
    """Where ``/proc`` is missing nothing is found, and nothing raised."""
    monkeypatch.setattr(procfs, "PROC", "/nowhere")
    assert procfs.parents() == {}


FAMILY = """
import os, subprocess
from profwin.engines import procfs

read = []
parents = procfs.parents
procfs.parents = lambda: read.append(True) or parents()
assert (procfs.family(), read) == ([os.getpid()], [])
with subprocess.Popen(["sleep", "100"]) as process:
    assert procfs.family() == [os.getpid(), process.pid]
    process.kill()
    while len(procfs.family()) > 1:
        pass
    assert procfs.family() == [os.getpid()]
    assert process.wait() == -9  # no end was taken from who waits for it
read.clear()
assert (procfs.family(), read) == ([os.getpid()], [])

def refused(*_arguments):
    raise OSError(22, "Invalid argument")

os.waitid = refused
assert (procfs.family(), read) == ([os.getpid()], [True])
"""


def test_family():
    """A process and what is below it; where it has no child, nothing else is read; an old kernel cannot say."""
    # In a process of its own: other tests may have left this one children that have ended and wait to be collected.
    done = subprocess.run([sys.executable, "-c", FAMILY], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
