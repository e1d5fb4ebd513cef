"""Kineto traces: each code has a trace that raises it and a near twin that does not; times are exact."""

from __future__ import annotations

import json

import pytest
from kineto_support import BASE, SPAN, codes_of, kernel, launch, operator, pairs, read_text, trace

from profwin.evidence.formats import kineto
from profwin.evidence.formats.text import head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "b.txt"])
def test_a_whole_trace_has_no_finding(tmp_path: Path, name: str) -> None:
    """Events, window, device time and counts of a plain and of a compressed trace, on the clock of its base."""
    recording = read_text(tmp_path, trace([operator(), *pairs(1, 2, 3)]), name)
    assert recording.findings == []
    assert recording.window == (BASE + 1_000_000, BASE + 1_500_250)
    assert recording.device_busy == {
        "0": [(BASE + 1_000_000 + 1000 * n, BASE + 1_000_500 + 1000 * n) for n in (2, 3, 4)]
    }
    assert (recording.tally.events, recording.tally.slices, recording.tally.device_slices) == (8, 8, 3)
    assert (recording.tally.launches, recording.tally.launches_without_kernel) == (3, 0)
    assert recording.tally.categories == {"cuda_runtime": 3, "kernel": 3, "Trace": 1, "cpu_op": 1}
    assert recording.device_expected is True
    assert (recording.clock.kind, recording.path, recording.format) == ("wall", name, "kineto")
    assert kineto.recognise(name, head(tmp_path / name))


def test_the_base_may_follow_the_events(tmp_path: Path) -> None:
    """Old writers put the base time last; reading and drawing both find it there."""
    body = {"schemaVersion": 1, "traceEvents": [SPAN, *pairs(1)], "displayTimeUnit": "ms", "baseTimeNanoseconds": BASE}
    recording = read_text(tmp_path, json.dumps(body))
    assert recording.window == (BASE + 1_000_000, BASE + 1_500_250)
    for base in (None, recording.metadata["base"]):
        assert next(kineto.slices(str(tmp_path), "a.json", base)).start == BASE + 1_000_000


def test_epoch_times_keep_their_nanoseconds(tmp_path: Path) -> None:
    """Without base, times of day are read exactly, where a float would lose them; other times are on no known clock."""
    event = {**kernel(1), "ts": "SOON", "dur": 1.001}
    text = json.dumps({"traceEvents": [launch(1), event]})
    recording = read_text(
        tmp_path, text.replace('"SOON"', "1712195495406752.797").replace('"ts": 1001', '"ts": 1712195495406751')
    )
    assert recording.device_busy == {"0": [(1712195495406752797, 1712195495406753798)]}
    assert recording.clock.kind == "wall"
    assert codes_of(recording) == ["no-span"]
    recording = read_text(tmp_path, text.replace('"SOON"', "1000.5"))
    assert recording.clock.kind == "unknown"
    assert codes_of(recording) == ["no-span", "no-clock"]


def test_a_list_of_events_is_a_trace(tmp_path: Path) -> None:
    """The events may stand at the top level; a list of anything else is no trace."""
    recording = read_text(tmp_path, json.dumps([SPAN, *pairs(1)]))
    assert recording.tally.device_slices == 1
    assert kineto.recognise("a", b' [{"ph": "X"')
    for other in (b"[1, 2]", b'{"schema": 1, "run": "a"}', b"", b"PK\x03\x04", b'{"t": 1, "kind": "open"}\n{"t": 2}'):
        assert not kineto.recognise("a", other)


def test_the_layout_of_2021(tmp_path: Path) -> None:
    """Categories with capitals, threads as text, whole microseconds, and no base."""
    at = 1623142623460016
    events = [
        {**SPAN, "pid": "Traces", "ts": at, "dur": 1065723},
        {**launch(5), "cat": "Runtime", "tid": "9", "ts": at + 1, "dur": 2},
        {**kernel(5), "cat": "Kernel", "tid": "stream 7", "ts": at + 2, "dur": 2},
    ]
    recording = read_text(tmp_path, json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert recording.findings == []
    assert recording.window == (at * 1000, (at + 1065723) * 1000)
    assert (recording.tally.launches, recording.tally.device_slices) == (1, 1)


@pytest.mark.parametrize(
    ("category", "device"),
    [
        ("kernel", True), ("gpu_memcpy", True), ("gpu_memset", True), ("Memcpy", True), ("mtia_ccp_events", True),
        ("hpu_op", True), ("xpu_kernel", True), ("privateuse1_kernel", True), ("mtia_runtime", False),
        ("privateuse1_runtime", False), ("gpu_user_annotation", False), ("cpu_op", False), ("cuda_sync", False),
        ("mtia_counters", False), ("xpu_driver", False), ("", False),
    ],
)  # fmt: skip
def test_which_categories_are_the_devices_work(tmp_path: Path, category: str, device: bool) -> None:
    """Device work of every maker is told from what the host and annotations do."""
    recording = read_text(tmp_path, trace([operator(), kernel(1, category=category)]))
    assert recording.tally.device_slices == device
    assert bool(recording.device_busy) == device
    assert [one.on_device for one in kineto.slices(str(tmp_path), "a.json")][2] == device


BAD_AND_GOOD: list[tuple[str, list[Any], list[Any]]] = [
    ("no-events", [], pairs(1)),
    ("no-device-events", [launch(1)], pairs(1)),
    ("host-only", [operator()], [operator(), *pairs(1)]),
    ("missing-at-head", [launch(1), *pairs(2, 3)], pairs(1, 2, 3)),
    ("launches-without-kernels", [*pairs(1), launch(2), *pairs(3)], [*pairs(1), launch(2, "cudaMemsetAsync")]),
    ("launches-without-kernels", [*pairs(1, 3), launch(4)], [kernel(1), *pairs(2, 3), launch(4)]),
    ("launches-without-kernels", [*pairs(1), launch(2, "hipMemcpyWithStream")], [*pairs(1), launch(2, "hipFree")]),
    (
        "launches-without-kernels",
        [*pairs(1), launch(2, "cudaGraphLaunch")],
        [*pairs(1), launch(2, "cudaLaunchHostFunc")],
    ),
    ("bad-duration", [{**operator(), "dur": -1}, *pairs(1)], [{**operator(), "dur": 0}, *pairs(1)]),
    ("bad-duration", [{"ph": "X", "cat": "cpu_op", "ts": 1}, *pairs(1)], [{"ph": "i", "ts": 1}, *pairs(1)]),
    ("bad-duration", [{**kernel(2), "dur": None}, *pairs(1)], [{"ph": "i", "name": "i"}, *pairs(1)]),
    ("bad-duration", [{**kernel(2), "ts": "x"}, *pairs(1)], [{**kernel(2), "ts": "1000.25"}, *pairs(1)]),
    ("huge-number", [{**kernel(1), "dur": 10**30}, *pairs(1)], pairs(1)),
    ("huge-number", [{**operator(), "ts": 10**50}, *pairs(1)], pairs(1)),
    ("huge-number", [{**operator(), "ts": "1." + 39 * "0"}, *pairs(1)], [{**operator(), "ts": "1.5"}, *pairs(1)]),
    ("unfinished-slice", [{**operator(), "ph": "B"}, *pairs(1)], [{"ph": "B"}, {"ph": "E"}, *pairs(1)]),
    ("unfinished-slice", [{**operator(), "ph": "E"}, *pairs(1)], pairs(1)),
]


@pytest.mark.parametrize("case", BAD_AND_GOOD, ids=[f"{case[0]}-{number}" for number, case in enumerate(BAD_AND_GOOD)])
def test_each_code_of_events_and_its_near_twin(tmp_path: Path, case: tuple[str, list[Any], list[Any]]) -> None:
    """The trace raises exactly its code, and the twin raises nothing."""
    code, bad, good = case
    assert codes_of(read_text(tmp_path, trace(bad))) == [code]
    assert codes_of(read_text(tmp_path, trace(good))) == []


@pytest.mark.parametrize(
    ("code", "key", "bad", "good"),
    [
        ("out-of-range", "INFO", "a.cpp:1] Record counts: Out-of-range = 7, x = 0", "Record counts: Out-of-range = 0"),
        ("stopped-early", "INFO", "a.cpp:1] x = 0, CUPTI stopped early? = 1", "x = 0, GPU stopped early? = 0"),
        ("stopped-early", "INFO", "a.cpp:1] x = 0, GPU stopped early? = 1", "Enabling GPU tracing"),
        ("dropped", "WARNING", "a.cpp:326] Dropped 12 activity records", "Dropped 0 activity records"),
        ("profiler-error", "ERROR", "a.cpp:47] gpuGetDeviceCount failed with code 35", ""),
    ],
)
def test_each_code_of_messages_and_its_near_twin(tmp_path: Path, code: str, key: str, bad: str, good: str) -> None:
    """What the profiler says of its own losses is found in its messages."""
    line = f"{key}:2026-01-01 00:00:00 1:1 {bad}"
    assert codes_of(read_text(tmp_path, trace(pairs(1), {key: [line, 5, None]}))) == [code]
    assert codes_of(read_text(tmp_path, trace(pairs(1), {key: [good] if good else "none"}))) == []


@pytest.mark.parametrize("own", [True, False])
def test_launches_that_are_captured_need_no_kernel(tmp_path: Path, own: bool) -> None:
    """Between beginning and end of a capture launches go into a graph; after it they need their device work."""
    capture = [launch(4, "cudaStreamBeginCapture_v2"), launch(5), launch(6), launch(7, "cudaStreamEndCapture")]
    events = [*pairs(1), *capture, *pairs(8), *([] if own else [launch(9)]), *pairs(10)]
    recording = read_text(tmp_path, trace(events))
    assert codes_of(recording) == ([] if own else ["launches-without-kernels"])
    assert recording.tally.launches_without_kernel == (not own)
    begun = [launch(1), launch(2, "cudaStreamEndCapture"), *pairs(3), launch(4, "cudaStreamBeginCapture"), launch(5)]
    assert codes_of(read_text(tmp_path, trace(begun))) == []


def test_kernels_and_launches_may_come_in_any_order(tmp_path: Path) -> None:
    """A kernel before its launch, numbers far apart, and several kernels of one graph are all matched."""
    events = [kernel(900_000), kernel(5), kernel(900_000), launch(5), launch(900_000, "hipGraphLaunch"), launch(7)]
    recording = read_text(tmp_path, trace(events))
    assert recording.tally.launches_without_kernel == 1
    assert recording.tally.missing_at_head == 0


def test_a_truncated_trace_says_only_that(tmp_path: Path) -> None:
    """What its lost end would tell is not called missing; its complete events count."""
    text = trace([operator(), launch(1), launch(2), kernel(1), operator()])
    recording = read_text(tmp_path, text[: text.rindex("aten")])
    assert codes_of(recording) == ["truncated"]
    assert recording.tally.events == 5


def test_what_the_metadata_says_comes_first(tmp_path: Path) -> None:
    """The entry of profwin names the recording before its path does; that of torch.distributed fills in the rest."""
    entry = {"purpose": "rollout", "step": 3, "name": "rollout", "occurrence": 2, "role": "actor", "rank": None}
    entry["devices"] = ["GPU-1"]
    info = {"rank": 5, "world_size": 8, "pg_config": ["x"] * 100}
    text = trace(pairs(1), profwin=entry, distributedInfo=info, host_name="node1")
    recording = read_text(tmp_path, text, "step_7/rank1.json")
    name = recording.name
    assert (name.purpose, name.step, name.stage, name.occurrence, name.role) == ("rollout", 3, "rollout", 2, "actor")
    assert (name.rank, name.world, name.source) == (1, 8, "profwin")
    assert recording.clock.host == "node1"
    assert recording.physical == {"0": "GPU-1"}
    assert recording.metadata["distributedInfo"] == {"rank": 5, "world_size": 8}
    wrong = trace(
        pairs(1), profwin={"step": True, "rank": "0", "purpose": [], "devices": {}}, distributedInfo=[], host_name=3
    )
    assert read_text(tmp_path, wrong).name.step is None


def test_two_devices_are_told_apart(tmp_path: Path) -> None:
    """Busy time is kept by device, and a process of two devices does not say which physical ones they are."""
    for devices in (["GPU-1", "GPU-2"], ["GPU-1"]):
        recording = read_text(tmp_path, trace([*pairs(1), kernel(2, 1)], profwin={"devices": devices}))
        assert set(recording.device_busy) == {"0", "1"}
        assert recording.physical == {}


def test_numbers_in_all_their_forms_are_exact(tmp_path: Path) -> None:
    """Three decimals, as all have today, are read together with others, or with what is no time, and none is lost."""
    texts = {"7.250": 7250, "8": 8000, "9.5": 9500, "1e1": 10_000, '"11.0009"': 11_000, "12.999999": 12_999}
    for chosen in [*([text] for text in texts), list(texts), [*texts, "x"]]:
        events = [{**kernel(n), "ts": f"@{1000 * n}.000@", "dur": f"@{text}@"} for n, text in enumerate(chosen)]
        text = trace(events).replace('"@', "").replace('@"', "").replace('\\"', '"').replace(": x", ': "x"')
        recording = read_text(tmp_path, text)
        expected = [(BASE + 10**6 * n, BASE + 10**6 * n + texts[one]) for n, one in enumerate(chosen) if one in texts]
        assert recording.device_busy == {"0": expected}
        assert recording.tally.device_slices == len(chosen)
        assert ("bad-duration" in codes_of(recording)) == ("x" in chosen)


def test_what_has_no_time_is_no_device_work(tmp_path: Path) -> None:
    """Device work with a negative length is a finding, and counts neither as work nor as busy time."""
    recording = read_text(tmp_path, trace([*pairs(1), {**kernel(1), "dur": -5}]))
    assert codes_of(recording) == ["bad-duration"]
    assert recording.tally.device_slices == 1
    assert recording.device_busy == {"0": [(BASE + 1_002_000, BASE + 1_002_500)]}


def test_devices_that_take_turns(tmp_path: Path) -> None:
    """Device work of several devices, told by number, by text, or by process, is told apart however it is mixed."""
    devices: list[Any] = [0, 1, "1", True, None, [1], 1.0]
    events = [{**kernel(n), "pid": "p", "args": {"device": device}} for n, device in enumerate(devices * 2)]
    busy = read_text(tmp_path, trace(events)).device_busy
    assert {key: len(intervals) for key, intervals in busy.items()} == {"0": 2, "1": 4, "True": 2, "p": 6}


def test_slices_are_what_is_drawn(tmp_path: Path) -> None:
    """Tracks of host and device, beginnings paired with ends, and nothing after damage that cannot be passed."""
    begin = {**operator(2000.0), "ph": "B", "name": "outer"}
    events = [begin, *pairs(1), {**operator(2003.0), "ph": "E"}, {**operator(), "dur": -5}, {"ph": "M", "name": "x"}]
    (tmp_path / "a.json").write_text(trace(events))
    found = list(kineto.slices(str(tmp_path), "a.json"))
    assert [one.name for one in found] == ["PyTorch Profiler (0)", "cudaLaunchKernel", "kernel_1", "outer"]
    assert [one.track for one in found[1:]] == ["process 4711 thread 9", "device 0 stream 7", "process 4711 thread 9"]
    assert (found[3].start, found[3].end) == (BASE + 2_000_000, BASE + 2_003_000)
    (tmp_path / "a.json").write_text(trace(events).partition(', "name": "kernel_1"')[0])
    assert [one.name for one in kineto.slices(str(tmp_path), "a.json")] == ["PyTorch Profiler (0)", "cudaLaunchKernel"]
