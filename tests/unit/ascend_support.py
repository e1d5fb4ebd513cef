"""Small `*_ascend_pt` folders, made for the test that needs them."""

from __future__ import annotations

import json
import sqlite3

NAME = "worker_20261130120000000_ascend_pt"
OUTPUT = "ASCEND_PROFILER_OUTPUT"
START = 1_780_000_000_000_000_000
END = START + 5_000_000_000
TICK = 168_723_724_831_520
HARDWARE, OVERLAP, HOST = 3_089_232_288, 3_089_232_608, 4711


def info(level="Level1", exports=("text",), **changes):
    """Return profiler_info.json's value; None leaves a part out."""
    parts = {
        "config": {
            "common_config": {"activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"], "profile_memory": False},
            "experimental_config": {"_profiler_level": level, "_export_type": list(exports), "_l2_cache": False},
        },
        "start_info": {"start_monotonic": TICK},
        "end_info": {"collectionTimeEnd": END, "MonotonicTimeEnd": TICK + END - START},
        "rank_id": "3",
    } | changes
    return {name: value for name, value in parts.items() if value is not None}


def microseconds(time):
    """Write ns as the timeline does: microseconds, in a text."""
    return f"{time // 1000}.{time % 1000:03}"


def row(name, pid, time, length=2.5, tid=1, **more):
    """Return one slice of the timeline."""
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": microseconds(time), "dur": length, **more}


def group(pid, name, label):
    """Return the rows that name a process of the timeline."""
    return [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}},
        {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}},
    ]


def timeline(steps=(1, 2), tasks=2, label="NPU 4"):
    """Return a timeline of steps a second apart; the names of the processes come last, as they may."""
    events = []
    for number, step in enumerate(steps):
        time = START + (number + 1) * 1_000_000_000
        events.append(row(f"ProfilerStep#{step}", HOST, time, 900_000, cat="cpu_op"))
        events += [row("MatMul", HARDWARE, time + 1000 + 10_000 * task) for task in range(tasks)]
        if tasks:
            events.append(row("Computing", OVERLAP, time + 1000, 12.5))
            events.append(row("Free", OVERLAP, time + 20_000, 700, tid=3))
    events += group(HOST, "Python", "CPU") + group(HARDWARE, "Ascend Hardware", label)
    return events + group(OVERLAP, "Overlap Analysis", label)


def kernels(rows):
    """Return kernel_details.csv with so many rows of each step."""
    lines = [
        "Step Id,Name,Duration(us)",
        *(f"{step},MatMul,2.5\t" for step, count in rows.items() for _ in range(count)),
    ]
    return "\r\n".join(lines) + "\r\n"


def text_files(steps=(1, 2), level=1):
    """Return the results that a text export of a level has."""
    names = ["operator_details.csv", "step_trace_time.csv"]
    names += ["op_statistic.csv", "api_statistic.csv"] if level else []
    return {
        "trace_view.json": json.dumps(timeline(steps)),
        "kernel_details.csv": kernels(dict.fromkeys(steps, 2)),
        **dict.fromkeys(names, "a,b\n1,2\n"),
    }


def make(root, told=None, results=None, raw=(), done=True, name=NAME):
    """Write a folder.

    Args:
        root: where.
        told: profiler_info's value or text; None leaves it out.
        results: files of the analysis by name; None leaves their folder out.
        raw: paths of raw files.
        done: whether the analysis says that it is done.
        name: of the folder.
    """
    folder = root / name
    folder.mkdir(parents=True)
    if told is not None:
        (folder / "profiler_info_3.json").write_text(told if isinstance(told, str) else json.dumps(told))
    if results is not None:
        (folder / OUTPUT).mkdir()
        for file, content in results.items():
            (folder / OUTPUT / file).write_bytes(content if isinstance(content, bytes) else content.encode())
        if done:
            (folder / OUTPUT / "analyse.done").touch()
    for path in raw:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"x")
    return name


def database(path, steps=(1, 2), per_step=2, device=4, session=(START + 300, END - 300)):
    """Write the database of a db export, and return its bytes."""
    connection = sqlite3.connect(path, isolation_level=None)
    tables = {
        "HOST_INFO": ("hostUid TEXT, hostName TEXT", [("abc123", "node2")]),
        "SESSION_TIME_INFO": ("startTimeNs INTEGER, endTimeNs INTEGER", [session]),
        "STRING_IDS": ("id INTEGER PRIMARY KEY, value TEXT", [(1, "MatMul"), (2, "aten::mm"), (3, "hcom_allReduce")]),
        "COMPUTE_TASK_INFO": ("name INTEGER, globalTaskId INTEGER", [(1, 0)]),
        "STEP_TIME": ("id INTEGER, startNs INTEGER, endNs INTEGER", []),
        "TASK": ("startNs INTEGER, endNs INTEGER, deviceId INTEGER, globalTaskId INTEGER, streamId INTEGER", []),
        "COMMUNICATION_OP": ("startNs INTEGER, endNs INTEGER, deviceId INTEGER, opName INTEGER, groupName INTEGER", []),
        "PYTORCH_API": ("startNs INTEGER, endNs INTEGER, globalTid INTEGER, name INTEGER", [(START, START + 9, 7, 2)]),
    }
    for number, step in enumerate(steps):
        time = START + (number + 1) * 1_000_000_000
        tables["STEP_TIME"][1].append((step, time, time + 900_000_000))
        count = per_step[number] if isinstance(per_step, list) else per_step
        tables["TASK"][1].extend((time + 100 * task, time + 100 * task + 50, device, 0, 2) for task in range(count))
    try:
        connection.execute("PRAGMA synchronous=OFF")
        for name, (columns, rows) in tables.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            for values in rows:
                connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(values))})", values)
    finally:
        connection.close()
    return path.read_bytes()
