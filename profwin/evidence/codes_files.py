"""Codes for what is wrong with one file of a profiler, whichever format it has."""

from __future__ import annotations

from profwin.evidence.finding import Code

AGAIN = "Record that step again; look in the log of the process that wrote the file for why it did not finish."
SPACE = "Check that the process was not killed and that the disk was not full while the file was written."

EMPTY_FILE = Code("empty-file", "error", "The file has no content.", SPACE)
TRUNCATED = Code("truncated", "error", "The file ends before its content does.", SPACE)
TRAILING_GARBAGE = Code(
    "trailing-garbage", "error", "Something follows the end of the content.",
    "Give each process a file of its own, and do not append to a finished trace.",
)  # fmt: skip
BAD_CHECKSUM = Code(
    "bad-checksum", "error", "The content does not have the length or the checksum that gzip wrote down.",
    "Copy the file again from where it was written, or record that step again.",
)  # fmt: skip
BAD_COMPRESSION = Code(
    "bad-compression", "error", "The compressed data is damaged, and cannot be read beyond this place.",
    "Copy the file again from where it was written, or record that step again.",
)  # fmt: skip
INFLATES_TOO_FAR = Code(
    "inflates-too-far", "error", "The file inflates to far more than any trace does; reading was given up.",
    "Find out who made the file; it is no trace.",
)  # fmt: skip
NOT_UTF8 = Code(
    "not-utf8", "error", "The text holds bytes that are not UTF-8.",
    "Give the ranges and operators names in UTF-8; most viewers refuse the file.",
)  # fmt: skip
CONTROL_CHARACTER = Code(
    "control-character", "error", "A text holds a control character that is not escaped.",
    "Rename the range or operator of that name, or update the profiler; most viewers refuse the file.",
)  # fmt: skip
INVALID_ESCAPE = Code(
    "invalid-escape", "error", "A text holds a backslash that starts no escape.",
    "Rename the range or operator of that name, or update the profiler; most viewers refuse the file.",
)  # fmt: skip
NOT_A_NUMBER = Code(
    "not-a-number", "error", "A number is NaN, Infinity or otherwise none that JSON has.",
    "Update the profiler; most viewers refuse the file.",
)  # fmt: skip
HUGE_NUMBER = Code(
    "huge-number", "error", "A time or a length is too large to be one.",
    "Record that step again; if it recurs, report it to the makers of the profiler.",
)  # fmt: skip
MALFORMED = Code("malformed", "error", "The content breaks the rules of its format.", AGAIN)
INTERLEAVED = Code(
    "interleaved", "error", "Two processes have written into the file.",
    "Give each process a file of its own: the name needs rank, role, process id and host.",
)  # fmt: skip
NESTED_TOO_DEEP = Code(
    "nested-too-deep", "error", "Values are nested deeper than any trace needs.", "Find out who made the file."
)
TOO_LARGE = Code(
    "too-large", "warning", "One value is larger than is read into memory; it was passed over.",
    "Record without shapes or stacks if the value matters.",
)  # fmt: skip
ODD_EVENT = Code(
    "odd-event", "warning", "An event has a field of an unexpected type.",
    "Check what wrote or edited the file; other tools may stop at it.",
)  # fmt: skip
BAD_DURATION = Code(
    "bad-duration", "warning", "An event has no time, or no length, or a negative one.",
    "Do not rely on that event; report it to the makers of the profiler.",
)  # fmt: skip
UNFINISHED_SLICE = Code(
    "unfinished-slice", "warning", "An event begins and does not end, or ends without a beginning.",
    "Stop the profiler only after what it records has ended.",
)  # fmt: skip
NO_EVENTS = Code(
    "no-events", "error", "The recording holds no events.",
    "Check that the profiler was started before and stopped after the work, in the process that does it.",
)  # fmt: skip
NO_DEVICE_EVENTS = Code(
    "no-device-events", "error", "Device activity was asked for, and the recording holds none.",
    "Check that no other profiler (nsys, DCGM, a second CUPTI user) had the device, and that work ran in the window.",
)  # fmt: skip
HOST_ONLY = Code(
    "host-only", "remark", "The recording holds host activity alone, and does not say that more was asked for.",
    "Add the device's activity to the profiler's settings if you want it.",
)  # fmt: skip
LAUNCHES_WITHOUT_KERNELS = Code(
    "launches-without-kernels", "warning", "Device work was launched, and the recording does not hold it.",
    "Record a shorter window, or enlarge the profiler's device buffers.",
)  # fmt: skip
MISSING_AT_HEAD = Code(
    "missing-at-head", "error", "The device work at the beginning of the window is missing.",
    "Let the profiler warm up for a step, or open the window earlier.",
)  # fmt: skip
OUT_OF_RANGE = Code(
    "out-of-range", "remark", "The profiler left out records that lie outside the window.",
    "Nothing, as long as no launch lacks its device work; these are mostly records of the warm-up.",
)  # fmt: skip
DROPPED = Code(
    "dropped", "error", "The profiler dropped records.",
    "Record a shorter window, or enlarge the profiler's device buffers.",
)  # fmt: skip
STOPPED_EARLY = Code(
    "stopped-early", "error", "The profiler stopped by itself before the window ended.",
    "Record a shorter window, or enlarge the profiler's device buffers.",
)  # fmt: skip
PROFILER_ERROR = Code(
    "profiler-error", "remark", "The profiler wrote an error into the recording.",
    "Read the message; it may say why something is missing.",
)  # fmt: skip
NO_SPAN = Code(
    "no-span", "remark", "The recording does not say when it began and ended.",
    "Nothing if the file was edited; else record again.",
)  # fmt: skip
NO_CLOCK = Code(
    "no-clock", "warning", "The recording does not say which clock its times are on.",
    "Do not compare its times with those of another file.",
)  # fmt: skip
NOT_JUDGED = Code(
    "not-judged", "remark", "Something was not examined, since it would need more memory than is allowed.",
    "Record a shorter window if you need the answer.",
)  # fmt: skip
