"""What is drawn of an `*_ascend_pt` folder's database: rows of tables, arrows between them, counters."""

from __future__ import annotations

import sqlite3
from collections import Counter

import pytest
from ascend_support import NAME, START, info, make

from profwin.evidence.formats import ascend

FILE = "ascend_pytorch_profiler_3.db"
MAIN, OTHER = (7 << 32) | 8, (7 << 32) | 9
TABLES = {
    "RANK_DEVICE_MAP": ("rankId, deviceId", [(3, 4)]),
    "STRING_IDS": ("id, value", [(1, "MatMul"), (2, "aten::mm"), (3, "hcom_allReduce"), (5, "read"), (6, "app")]),
    "PYTORCH_API": (
        # As torch_npu writes them: the times as texts.
        "startNs TEXT, endNs TEXT, globalTid, connectionId, name, type",
        [
            (str(START), str(START + 90), MAIN, 10, 2, 50001), (str(START + 5), str(START + 9), MAIN, 11, 2, 50002),
            (str(START + 20), str(START + 30), OTHER, 12, 2, 50002),
            (str(START + 95), str(START + 99), OTHER, 13, 2, 50001),
        ],
    ),
    "CONNECTION_IDS": ("id, connectionId", [(10, 500), (11, 600), (12, 600), (10, 700), (13, 700)]),
    "CANN_API": (
        "startNs, endNs, globalTid, connectionId, name, type", [(START + 22, START + 29, OTHER, 500, 1, 10000)]
    ),
    "COMPUTE_TASK_INFO": ("name, globalTaskId", [(1, 0)]),
    "TASK": (
        "startNs, endNs, deviceId, globalTaskId, streamId, connectionId",
        [(START + 40, START + 60, 4, 0, 2, 500), (START + 70, START + 75, 4, 1, 2, 4294967295)],
    ),
    "COMMUNICATION_OP": ("startNs, endNs, opName, groupName, connectionId", [(START + 41, START + 59, 3, 91, 500)]),
    "HBM": ("deviceId, timestampNs, bandwidth, hbmId, type", [(4, START + 1, 7, 0, 5), (4, START + 2, 9, 0, 5)]),
    "NPU_MEM": ("type, ddr, hbm, timestampNs, deviceId", [(6, 0, 1 << 40, START + 3, 4)]),
    "LLC": ("deviceId, llcId, timestampNs, hitRate, throughput, mode", [(4, 1, START, 78.5, 10, 5)]),
    "AICORE_FREQ": ("deviceId, timestampNs, freq", [(4, START, 1800)]),
}  # fmt: skip


@pytest.fixture
def drawn(tmp_path):
    """Return a function that writes tables, and returns what is read and what is drawn of them."""

    def write(**changes):
        connection = sqlite3.connect(tmp_path / "made.db", isolation_level=None)
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("BEGIN")
        for name, (columns, rows) in {**TABLES, **changes}.items():
            if columns:
                connection.execute(f"CREATE TABLE {name} ({columns})")
                connection.executemany(f"INSERT INTO {name} VALUES ({','.join('?' * len(columns.split(',')))})", rows)
        connection.execute("COMMIT")
        connection.close()
        make(tmp_path, info(exports=["db"]), {FILE: (tmp_path / "made.db").read_bytes()})
        return ascend.read(str(tmp_path), NAME), list(ascend.slices(str(tmp_path), NAME))

    return write


def arrows(found):
    """Return the name of each arrow, and time and row of its ends."""
    ends = {}
    for each in found:
        if each.kind.startswith("flow"):
            ends.setdefault(each.flow, {"name": each.name})[each.kind] = (each.start - START, each.track)
    return sorted((each["name"], each["flow-start"], each["flow-end"]) for each in ends.values())


def test_times_that_are_texts(drawn):
    """Calls of the framework have their times as texts: they are times, they are drawn, and nothing is wrong."""
    recording, found = drawn()
    assert [finding.code.name for finding in recording.findings] == []
    assert [(each.start - START, each.end - START, each.track) for each in found if each.category == "PYTORCH_API"] == [
        (0, 90, "PYTORCH_API pid 7 thread 8"), (5, 9, "PYTORCH_API pid 7 thread 8"),
        (20, 30, "PYTORCH_API pid 7 thread 9"), (95, 99, "PYTORCH_API pid 7 thread 9"),
    ]  # fmt: skip


@pytest.mark.parametrize("time", ["soon", "", "-5", "1.5", "9" * 20, None, 1.5, b"1"])
def test_texts_that_are_no_times(drawn, time):
    """They are counted, and not drawn."""
    columns = TABLES["PYTORCH_API"][0]
    recording, found = drawn(PYTORCH_API=(columns.replace(" TEXT", ""), [(time, time, MAIN, 10, 2, 50001)]))
    assert [finding.code.name for finding in recording.findings] == ["bad-duration"]
    assert not [each for each in found if each.category == "PYTORCH_API"]


def test_communication_is_the_device_s(drawn):
    """Its table has no device: where the database is of one, it is that."""
    recording, found = drawn()
    assert list(recording.device_busy) == ["NPU 4"]
    assert [each.track for each in found if each.on_device and each.kind == "slice"] == [
        "NPU 4 stream 2", "NPU 4 stream 2", "NPU 4 communication 91"
    ]  # fmt: skip


def test_communication_of_several_devices(drawn):
    """Then whose it is cannot be told."""
    recording, found = drawn(RANK_DEVICE_MAP=("rankId, deviceId", [(3, 4), (4, 5)]))
    assert list(recording.device_busy) == ["NPU", "NPU 4"]
    assert [each.track for each in found if each.category == "COMMUNICATION_OP"] == ["NPU communication 91"]


def test_arrows(drawn):
    """From calls to the device's work, from the queue's one end to the other, from forwards to backwards."""
    _recording, found = drawn()
    torch, other, cann = (f"{kind} pid 7 thread {thread}" for kind, thread in
                          (("PYTORCH_API", 8), ("PYTORCH_API", 9), ("CANN_API", 9)))  # fmt: skip
    task, communication = (40, "NPU 4 stream 2"), (41, "NPU 4 communication 91")
    assert arrows(found) == [
        ("HostToDevice", (22, cann), task), ("HostToDevice", (22, cann), communication),
        ("enqueue_to_dequeue", (5, torch), (20, other)), ("fwdbwd", (0, torch), (95, other)),
        ("torch_to_npu", (0, torch), task), ("torch_to_npu", (0, torch), communication),
    ]  # fmt: skip


def test_no_arrow_to_what_is_not_drawn(drawn):
    """A task without an end has no slice, and no arrow."""
    _recording, found = drawn(TASK=(TABLES["TASK"][0], [(START + 40, None, 4, 0, 2, 500)]))
    assert not [each for each in arrows(found) if "stream" in each[2][1]]


def test_arrows_do_not_multiply(drawn):
    """Where all have one number there is one arrow for each end, from the first of those that may have sent it."""
    size = 300
    _recording, found = drawn(
        CANN_API=(TABLES["CANN_API"][0], [(START + at, START + at, OTHER, 1, 1, 0) for at in range(size)]),
        TASK=(TABLES["TASK"][0], [(START + at, START + at, 4, 0, 2, 1) for at in range(size)]),
        CONNECTION_IDS=("id, connectionId", [(1, 1)] * size),
        PYTORCH_API=(TABLES["PYTORCH_API"][0], [(START + at, START + at, MAIN, 1, 2, 50001) for at in range(size)]),
    )
    counts = Counter(each.name for each in found if each.kind == "flow-end")
    assert counts == {"HostToDevice": size, "torch_to_npu": size}
    assert {each.start - START for each in found if each.kind == "flow-start"} == {0}


@pytest.mark.parametrize(
    "missing", ["CONNECTION_IDS", "CANN_API", "PYTORCH_API", "TASK", "COMMUNICATION_OP", "STRING_IDS"]
)
def test_tables_that_are_missing(drawn, missing):
    """What remains is drawn."""
    _recording, found = drawn(**{missing: ("", [])})
    assert not [each for each in found if each.category == missing]
    assert Counter(each.kind for each in found)["flow-start"] == Counter(each.kind for each in found)["flow-end"] < 7


@pytest.mark.parametrize(
    "name", ["CONNECTION_IDS", "CANN_API", "PYTORCH_API", "TASK", "COMMUNICATION_OP", "HBM", "LLC"]
)
def test_columns_that_are_missing(drawn, name):
    """A table of another kind under a known name is no error."""
    _recording, found = drawn(**{name: ("something", [(1,)])})
    assert not [each for each in found if each.category == name]


def test_counters(drawn):
    """Values have names that say of what they are, and units."""
    _recording, found = drawn()
    assert [(each.track, each.start - START, each.value) for each in found if each.kind == "counter"] == [
        ("NPU 4 AICORE_FREQ freq MHz", 0, 1800), ("NPU 4 NPU_MEM app ddr bytes", 3, 0),
        ("NPU 4 NPU_MEM app hbm bytes", 3, 1 << 40), ("NPU 4 HBM 0 read bandwidth bytes/s", 1, 7),
        ("NPU 4 HBM 0 read bandwidth bytes/s", 2, 9), ("NPU 4 LLC 1 read hitRate %", 0, 78.5),
        ("NPU 4 LLC 1 read throughput bytes/s", 0, 10),
    ]  # fmt: skip


def test_values_that_are_none(drawn):
    """Texts, nothing, infinity and times that are none are left out."""
    rows = [(4, START, value) for value in ("x", None, float("inf"), b"1")] + [
        (4, "soon", 1),
        (4, -1, 1),
        (4, START, 5),
    ]
    _recording, found = drawn(AICORE_FREQ=(TABLES["AICORE_FREQ"][0], rows))
    assert [each.value for each in found if each.category == "AICORE_FREQ"] == [5]
