"""Codes of findings about files that are named and not read, and about the tree they lie in."""

from __future__ import annotations

from profwin.evidence.finding import Code

NSYS_REPORT = Code(
    "nsys-report", "warning", "A report of nsys, which only nsys can read.",
    "Export it and check again: nsys export --type sqlite FILE.nsys-rep.",
)  # fmt: skip
NSYS_UNFINISHED = Code(
    "nsys-unfinished", "error", "nsys never made a report of this stream: it was killed, or is still at work.",
    "Let processes end before the job does; try QdstrmImporter -i FILE.qdstrm.",
)  # fmt: skip
LEFTOVER = Code(
    "leftover-temporary", "error", "A temporary file was left: its writer was killed or the disk was full.",
    "Record that step again, and let the process live until the export has ended; then delete the file.",
)  # fmt: skip
PERFETTO = Code(
    "perfetto-trace", "remark", "A Perfetto trace, which is not read.", "Open it in ui.perfetto.dev, or keep the JSON."
)
ROCPROF = Code(
    "rocprof-output", "remark", "Output of rocprof, which is not read.",
    "Record with torch.profiler to have it checked; open this one in ui.perfetto.dev.",
)  # fmt: skip
XPLANE = Code(
    "xplane", "remark", "An XPlane file of XLA or TensorFlow, which is not read.", "Open it with xprof or TensorBoard."
)
XTRACE = Code("xtrace", "remark", "An .xtrace file, which is not read.", "Open it with the tool that wrote it.")
SNAPSHOT = Code(
    "memory-snapshot", "remark", "A memory snapshot of torch: a pickle, which is never loaded.",
    "Open it at pytorch.org/memory_viz, if you trust who wrote it.",
)  # fmt: skip
PICKLE = Code("pickle", "remark", "A pickle or an archive of torch.save, which is never loaded.", "Nothing.")
OTHER_DATABASE = Code(
    "other-database", "remark", "An sqlite database without tables of nsys, which is not read.", "Nothing."
)
ASCEND_DATABASE = Code(
    "ascend-database", "warning", "A database of CANN outside an *_ascend_pt folder, which is not read.",
    "Check the folder that it was taken from: FOLDER_ascend_pt/ASCEND_PROFILER_OUTPUT.",
)  # fmt: skip
MSPROF = Code(
    "msprof-raw", "warning", "Raw data of CANN outside an *_ascend_pt folder, which is not read.",
    "Record with torch_npu.profiler; or analyse it: msprof --export=on --output=FOLDER.",
)  # fmt: skip
UNKNOWN = Code(
    "unknown-file", "warning", "The file is named like a trace, and its content is of no known kind.",
    "Find out what wrote it; if it is a damaged trace, record again.",
)  # fmt: skip
UNREADABLE = Code(
    "unreadable",
    "error",
    "A file or folder cannot be read.",
    "Check its owner and mode, or run as the user who owns it.",
)
SPECIAL_FILE = Code(
    "special-file", "warning", "A FIFO, socket or device lies among the files; it was not opened.", "Remove it."
)
LINK = Code(
    "link-not-followed", "remark", "A link to a folder outside, to nothing, or to itself was not followed.",
    "Check the folder that it leads to, by its own name.",
)  # fmt: skip
FOLDER_LIKE_FILE = Code(
    "folder-named-like-trace", "warning", "A folder has the name of a trace file.",
    "See what was meant to be written there; a trace of this name could not be.",
)  # fmt: skip
TOO_DEEP = Code("too-deep", "error", "Folders lie deeper than are looked into.", "Check the inner folder by itself.")
TOO_MANY = Code("too-many-files", "error", "There are more files than are looked at.", "Check the folders one by one.")
ODD_NAME = Code(
    "odd-name", "remark", "A name holds control characters, or is not UTF-8.", "Rename it; many tools stumble over it."
)
