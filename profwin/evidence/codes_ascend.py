"""Codes of findings about `*_ascend_pt` folders."""

from __future__ import annotations

from profwin.evidence.finding import Code

_ANALYSE = "Analyse it: torch_npu.profiler.profiler.analyse('FOLDER')."
_ANALYSE_AGAIN = (
    "See logs/ in the folder and the disk's free space, then analyse it again: "
    "torch_npu.profiler.profiler.analyse('FOLDER')."
)
_LIVE = "Let the process live until profiler.stop has returned."

EMPTY = Code(
    "ascend-empty", "error", "The folder holds neither raw data nor results.",
    "See the log of the process: the profiler was created and never started, or its files were removed.",
)  # fmt: skip
NO_INFO = Code(
    "ascend-no-info",
    "warning",
    "profiler_info.json is missing, so level, window and what to expect are unknown.",
    _LIVE,
)
INFO_DAMAGED = Code("ascend-info-damaged", "error", "profiler_info.json cannot be read as JSON.", _LIVE)
NO_STOP = Code("ascend-no-stop", "error", "No stop is recorded: profiler.stop never ran, or did not finish.", _LIVE)
ODD_WINDOW = Code(
    "ascend-odd-window", "warning", "The times of start and stop contradict each other.",
    "Record again on a host whose clock is not being set.",
)  # fmt: skip
OUTSIDE_WINDOW = Code(
    "ascend-outside-window", "warning", "Device activity lies outside the window from start to stop.",
    "See whether ASCEND_PROFILER_OUTPUT belongs to this folder, and whether the clock was set while recording.",
)  # fmt: skip
NOT_ANALYSED = Code("ascend-not-analysed", "warning", "The raw data has not been analysed; nothing is lost.", _ANALYSE)
UNFINISHED = Code("ascend-unfinished", "error", "The analysis has begun and not ended.", _ANALYSE_AGAIN)
FAILED = Code(
    "ascend-analysis-failed", "error", "The analysis says that it is done, and its result is missing: it failed.",
    _ANALYSE_AGAIN,
)  # fmt: skip
FILE_MISSING = Code(
    "ascend-file-missing", "warning", "Files that the level and the settings should give are missing.", _ANALYSE_AGAIN
)
FILE_CUT = Code("ascend-file-cut", "error", "A result file is empty or ends in the middle of a line.", _ANALYSE_AGAIN)
OTHER_EXPORT = Code(
    "ascend-other-export", "remark", "The results are of another export type than the profiler was set to.",
    "Nothing, if it was analysed so on purpose.",
)  # fmt: skip
NO_DEVICE_DATA = Code(
    "ascend-no-device-data", "error", "NPU activity was asked for, and there is no data of any NPU.",
    "See CANN's own log; another profiler may have held the NPU.",
)  # fmt: skip
SLICE_UNFINISHED = Code(
    "ascend-slice-unfinished", "error", "Pieces of raw data were not completed: they have no .done beside them.", _LIVE
)
HEAD_LOST = Code(
    "ascend-head-lost", "error", "The first steps of the window hold no device task although later ones do.",
    "Let a warm-up step precede the recorded ones: schedule(warmup=1, ...).",
)  # fmt: skip
STEPS_LOST = Code(
    "ascend-steps-lost", "error", "Steps in the middle or at the end of the window hold no device task.",
    "Let the device finish before the stop: torch.npu.synchronize().",
)  # fmt: skip
DAMAGED = Code("ascend-damaged", "error", "SQLite finds the results damaged or cut off.", _ANALYSE_AGAIN)
