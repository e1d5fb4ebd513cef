"""Codes of findings about databases, above all nsys exports."""

from __future__ import annotations

from profwin.evidence.finding import Code

_EXPORT_AGAIN = "Export it again from its .nsys-rep: nsys export --type sqlite --force-overwrite true FILE.nsys-rep."

HALF = Code(
    "nsys-half", "error", "The sqlite file is shorter than its header says: it was cut off, or its export was killed.",
    _EXPORT_AGAIN,
)  # fmt: skip
DAMAGED = Code("nsys-damaged", "error", "SQLite finds the file damaged.", _EXPORT_AGAIN)
INTERRUPTED = Code(
    "nsys-interrupted", "error", "The journal of an unfinished write lies beside the file: its writer was killed.",
    _EXPORT_AGAIN,
)  # fmt: skip
LOG_UNREAD = Code(
    "nsys-log-unread", "warning", "A write-ahead log with rows lies beside the file and was too large to be read.",
    "Fold it in: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'.",
)  # fmt: skip
NO_DEVICE_TABLES = Code(
    "nsys-no-device-tables", "error", "The export has no table of device activity: no kernel was captured.",
    "See that --trace names cuda, that no other profiler was on, and that the process ended in order.",
)  # fmt: skip
RANGE_OPEN = Code(
    "nsys-range-open", "warning", "An NVTX range began and has no end: the session ended inside, or the process died.",
    "Let the capture end after the range; with capture ranges, let the process live until the report is written.",
)  # fmt: skip
SESSION_LONGER = Code(
    "nsys-session-longer", "warning", "The events cover little of the session: the export was filtered or cut, or the "
    "profiler recorded an idle process.",
    "If it was not filtered on purpose, export it again; else record with --capture-range=cudaProfilerApi.",
)  # fmt: skip
FILTERED = Code(
    "nsys-filtered", "remark", "The export was limited to some times or tables.",
    "Export without --times and --tables for the whole recording.",
)  # fmt: skip
LOSS = Code(
    "nsys-loss", "error", "nsys itself says that it lost data.",
    "Record less at a time, or raise the buffers it names; see the diagnostics in the report.",
)  # fmt: skip
DIAGNOSTIC_ERROR = Code(
    "nsys-diagnostic-error", "error", "nsys recorded an error of its own.", "Read its text; see nsys's own log."
)
DIAGNOSTIC_WARNING = Code("nsys-diagnostic-warning", "remark", "nsys recorded a warning of its own.", "Read its text.")
NONE_COLLECTED = Code(
    "nsys-none-collected", "error", "CUPTI produced events and nsys collected none of them.",
    "Let the process end in order, or use --cuda-flush-interval.",
)  # fmt: skip
FEWER_COLLECTED = Code(
    "nsys-fewer-collected", "remark", "nsys collected fewer events than CUPTI produced; those of other kinds account "
    "for some.",
    "Compare with the number of launches that have no kernel.",
)  # fmt: skip
BAD_TIMES = Code(
    "nsys-bad-times", "warning", "Rows have no usable times: not whole numbers, or an end before the start.",
    _EXPORT_AGAIN,
)  # fmt: skip
