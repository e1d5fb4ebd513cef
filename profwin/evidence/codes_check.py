"""Codes of what concerns a checked directory as a whole, and traces beside the journals that name them."""

from __future__ import annotations

from profwin.evidence.finding import Code

__all__ = [
    "CHECK_FAILED",
    "FEWER_RANKS",
    "FORMAT_MISSING",
    "NOTHING_FOUND",
    "READER_FAILED",
    "READER_KILLED",
    "TRACE_NOT_IN_JOURNAL",
    "TRACE_OF_ANOTHER",
    "TRACE_OUTSIDE_COLLECTION",
    "TRACE_UNREADABLE",
]

NOTHING_FOUND = Code(
    "nothing-found",
    "error",
    "There is no recording and no journal here, so nothing is proven.",
    "Check that the directory is the one the profiler wrote to, that profiling was switched on for a step that ran, "
    "and that the process lived until its traces were written.",
)
CHECK_FAILED = Code(
    "check-failed",
    "error",
    "A part of the check failed in a way that profwin does not foresee, so what it would have found is not known.",
    "Report it, with the detail and if possible the journals.",
)
FORMAT_MISSING = Code(
    "format-missing",
    "error",
    "There is no recording of the format that was asked for.",
    "See which backend the run used; leave --format out to accept any.",
)
FEWER_RANKS = Code(
    "fewer-ranks",
    "warning",
    "There are recordings of fewer ranks than the world has, by what the recordings say of its size.",
    "If only some ranks were to record, name them with --ranks; otherwise see why the others left no recording.",
)
READER_FAILED = Code(
    "reader-failed",
    "error",
    "Reading this file failed in a way that profwin does not foresee, so nothing is known of it.",
    "Report it, with the detail and if possible the file; look at the file with another tool meanwhile.",
)
READER_KILLED = Code(
    "reader-killed",
    "error",
    "The process that read this file was killed, most often because memory ran out, so nothing is known of it.",
    "Check the file on a machine with more free memory, or with fewer processes at work.",
)
TRACE_UNREADABLE = Code(
    "trace-unreadable",
    "error",
    "A journal says that this trace is complete, and the file is no recording of a known profiler.",
    "Something changed the file after it was written: copy it again, and compare its size with the journal's.",
)
TRACE_OF_ANOTHER = Code(
    "trace-of-another",
    "error",
    "What the trace says of itself is not what the journal says of it.",
    "The file was renamed or overwritten: find the right one by its `profwin` entry, or record again.",
)
TRACE_OUTSIDE_COLLECTION = Code(
    "trace-outside-collection",
    "warning",
    "The times inside the trace are not within the collection that the journal names.",
    "If the host's clock was set during the run, ignore it; otherwise the file may be another collection's.",
)
TRACE_NOT_IN_JOURNAL = Code(
    "trace-not-in-journal",
    "remark",
    "This recording lies in the directory of a run whose journals do not name it; it was checked alone.",
    "Nothing, if another profiler wrote it, or an engine that names its own files.",
)
