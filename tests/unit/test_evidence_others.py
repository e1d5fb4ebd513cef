"""Files that are named for what they are: by content first, and never loaded."""

from __future__ import annotations

import gzip
import io
import pickle
import sqlite3
import zipfile

import pytest

from profwin.evidence.finding import SEVERITIES
from profwin.evidence.formats import others


def varint(number):
    """Write a number as protobuf does."""
    data = b""
    while number > 0x7F:
        data += bytes([number & 0x7F | 0x80])
        number >>= 7
    return data + bytes([number])


def message(field, content):
    """Write a message inside another one."""
    return varint(field << 3 | 2) + varint(len(content)) + content


PACKET = message(1, varint(8 << 3) + varint(123456) + message(11, b"slice"))
PERFETTO = PACKET * 3
PLANE = varint(1 << 3) + varint(7) + message(2, b"/device:GPU:0") + message(3, b"lines" * 30_000)
XPLANE = message(1, PLANE)


class Trap:
    """Loading it would raise."""

    def __reduce__(self):
        return eval, ("1/0",)


SNAPSHOT = pickle.dumps({"segments": [], "device_traces": [], "trap": Trap()})


def database(tmp_path, statement):
    """Return the bytes of a database with one table."""
    connection = sqlite3.connect(tmp_path / "made", isolation_level=None)
    connection.execute(statement)
    connection.close()
    return (tmp_path / "made").read_bytes()


def archive(name):
    """Return a zip archive with one member."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(name, b"x")
    return buffer.getvalue()


CASES = [
    ("perfetto", PERFETTO), ("perfetto", PACKET), ("perfetto", PERFETTO[:-4]),
    ("perfetto", gzip.compress(PERFETTO, mtime=0)),
    ("xplane", XPLANE), ("xplane", message(1, message(2, b"/host:CPU") + b"\x08\x01")),
    ("memory-snapshot", SNAPSHOT), ("pickle", pickle.dumps([1, 2])), ("pickle", archive("model/data.pkl")),
    ("rocprof", b'{"rocprofiler-sdk-tool": [{"agents": []}]}'),
    ("rocprof", b'{ "traceEvents":[{}\n,{"args":{"name":"1 CPU HIP API"},"ph":"M"}]}'),
    ("text", b"step 1 took 3 s\n"), ("text", b"x" + b"\xc3\xa4" * 40_000),
    ("unknown", b"ab\xc3"), ("unknown", b"\x0a\xff\xff\xff\x00"), ("text", b"\x0a\x02\x0c\x01" * 2),
    ("unknown", b"\x0a\x04\xff\xff\xff\xff"), ("unknown", archive("notes.txt")), ("unknown", b"\x7fELF\0\0"),
    ("unknown", b"\xff\xfe text"), ("text", b'{"a": 1}'), ("text", b"\x0a\n a text that begins with empty lines"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "content"), CASES)
def test_content_tells_the_kind(tmp_path, kind, content):
    """Whatever the name is; and what begins alike and is something else is told apart."""
    (tmp_path / "a.bin").write_bytes(content)
    recording = others.read(str(tmp_path), "a.bin")
    assert recording.format == kind
    assert list(others.slices(str(tmp_path), "a.bin")) == []


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("other-database", "CREATE TABLE notes (text TEXT)"), ("rocprof", "CREATE TABLE rocpd_string (id INTEGER)"),
        ("ascend-database", "CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER)"),
    ],
)  # fmt: skip
def test_databases_are_told_by_their_tables(tmp_path, kind, statement):
    """Several tools write sqlite."""
    (tmp_path / "a.db").write_bytes(database(tmp_path, statement))
    assert others.read(str(tmp_path), "a.db").format == kind


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.nsys-rep", b"\x01\x02\0", "nsys-report"), ("a.qdrep", b"\x01\x02\0", "nsys-report"),
        ("a.qdstrm", b"\x01\x02\0", "nsys-unfinished"), ("a.xtrace", b"\x01\x02\0", "xtrace"),
        ("a.pt.trace.json.gz.tmp", b"{", "leftover-temporary"), (".a.tmp.gz", b"{", "leftover-temporary"),
        ("a.pftrace", PERFETTO, "perfetto-trace"), ("a.xplane.pb", XPLANE, "xplane"),
        ("a.json", b'{"rocprofiler-sdk-tool": []}', "rocprof-output"), ("a.pickle", SNAPSHOT, "memory-snapshot"),
        ("a.pt", archive("a/data.pkl"), "pickle"), ("a.json.gz", b"\x7fELF\0", "unknown-file"),
        ("a.sqlite", b"hello", "unknown-file"), ("a.tmpl", b"hello", None), ("a.bin", b"\x7fELF\0", None),
        ("a.json", b'{"learning_rate": 1}', None), ("a.trace.json", b'{"learning_rate": 1}', None),
        ("nsys-rep", b"hello", None), ("a.log", b"hello", None),
    ],
)  # fmt: skip
def test_each_code_has_a_file_that_raises_it(tmp_path, name, content, code):
    """What should not lie among traces is named with what to do; what may lie there is not."""
    (tmp_path / name).write_bytes(content)
    found = others.read(str(tmp_path), name).findings
    assert [finding.code.name for finding in found] == ([code] if code else [])
    assert all(finding.code.severity in SEVERITIES and finding.code.remedy for finding in found)


def test_content_counts_more_than_the_name(tmp_path):
    """A Perfetto trace that is called a report of nsys is a Perfetto trace."""
    (tmp_path / "a.nsys-rep").write_bytes(PERFETTO)
    assert others.read(str(tmp_path), "a.nsys-rep").format == "perfetto"


@pytest.mark.parametrize("size", range(1, 40))
def test_cut_anywhere_nothing_raises(size):
    """Heads of any length are told, or not, and raise nothing."""
    for content in (PERFETTO, XPLANE, SNAPSHOT, b"\x0a" + b"\xff" * 40):
        others.identify(content[:size])
