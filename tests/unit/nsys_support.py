"""Small databases in the shape of nsys exports, made for the test that needs them."""

from __future__ import annotations

import sqlite3

WALL = 1_780_000_000_000_000_000
PROCESS = (1 << 48) | (77 << 24)
SECOND = 1_000_000_000

STRINGS = {
    1: "matmul",
    2: "cudaLaunchKernel_v7000",
    3: "cudaStreamBeginCapture_v10000",
    4: "cudaStreamEndCapture_v10000",
}
STRINGS |= {5: "actor_update"}
SCHEMA = {
    "StringIds": "id INTEGER PRIMARY KEY, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, systemClockNs INTEGER",
    "ANALYSIS_DETAILS": "duration INTEGER, startTime INTEGER, stopTime INTEGER",
    "TARGET_INFO_SYSTEM_ENV": "name TEXT, value TEXT",
    "META_DATA_CAPTURE": "name TEXT, value TEXT",
    "META_DATA_EXPORT": "name TEXT, value TEXT",
    "TARGET_INFO_GPU": "id INTEGER, uuid TEXT",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT",
    "DIAGNOSTIC_EVENT": "timestamp INTEGER, severity INTEGER, text TEXT",
    "NVTX_EVENTS": "start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, shortName INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, "
    "nameId INTEGER",
}


def whole():
    """Return the rows of an export that nothing is wrong with: three launches, each with its kernel."""
    times = [SECOND, 2 * SECOND, 3 * SECOND]
    return {
        "StringIds": list(STRINGS.items()),
        "TARGET_INFO_SESSION_START_TIME": [(WALL, 5)],
        "ANALYSIS_DETAILS": [(4 * SECOND, 5, 5 + 4 * SECOND)],
        "TARGET_INFO_SYSTEM_ENV": [("Hostname", "node1")],
        "META_DATA_CAPTURE": [
            ("CAPTURE_EVENT_TYPE", "Cuda"),
            ("PROCESS_0:ENVIRONMENT_VARIABLE", 'RANK="3"'),
            ("PROCESS_0:ENVIRONMENT_VARIABLE", 'SECRET_TOKEN="hidden"'),
        ],
        "META_DATA_EXPORT": [("EXPORT_SCHEMA_VERSION", "3.24.14"), ("EXPORT_PARAM_TIMES_TO_EXPORT", "")],
        "TARGET_INFO_GPU": [(4, "554a6988-03dd")],
        "TARGET_INFO_CUDA_DEVICE": [(4, 0, 77, None)],
        "DIAGNOSTIC_EVENT": [(0, 1, "Profiling has started.")],
        "NVTX_EVENTS": [(SECOND, 3 * SECOND, 59, None, 5, PROCESS | 78)],
        "CUPTI_ACTIVITY_KIND_KERNEL": [(time + 10, time + 20, 0, 7, n, PROCESS, 1) for n, time in enumerate(times)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [(time, time + 5, PROCESS | 78, n, 2) for n, time in enumerate(times)],
    }


def write(path, rows, schema=SCHEMA, journal="delete"):
    """Write an export; a table without an entry in the rows does not exist."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(f"PRAGMA journal_mode={journal}")
        for table, values in rows.items():
            # Newer exports call a table X_V2.
            columns = schema[table if table in schema else table.rpartition("_V")[0]]
            connection.execute(f'CREATE TABLE "{table}" ({columns})')
            if values:
                marks = ", ".join("?" * len(values[0]))
                connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', values)
    finally:
        connection.close()
    return path
